import RoostAPI
import RoostCore
import Testing

@testable import RoostServer

/// How often positions are stored when many connections read one channel.
@Suite("Many readers")
struct ManyReadersTests {
    /// Returns which of the connections that read a channel are taken in each of ten turns after a message.
    private func turns(ofReaders count: Int) -> [[String]] {
        var subscriptions = Subscriptions<String>()
        var notices: [Notice] = []
        for number in 1...Int64(count) {
            let connection = ConnectionID(rawValue: number)
            subscriptions.add("\(number)", as: connection)
            notices += [
                .connected(connection, UserID("\(number)"), UserStreams(user: 0, channels: ["general": 1])),
                .reading(connection, "general", since: 1, at: 1),
            ]
        }
        let message = Message(
            messageId: MessageID(rawValue: 2), channelId: "general", seq: 2, changeSeq: 2, sender: "ann", clientId: "c", text: "hi",
            createdAt: Timestamp(milliseconds: 0))
        let event = Event(kind: .messageNew, stream: .channel("general"), seq: 2, actor: "ann", rows: Rows([message]))
        notices.append(.event(event, .channel("general", Readers(others: .user))))
        for step in EventFrames.steps(for: [Committed(notices: notices, answer: .waiting {})]) {
            subscriptions.deliver(step) { _ in }
        }
        return (1...10).map { turn in subscriptions.takeReadable(turn).map(\.0) }
    }

    @Test("AM-45 if 100 connections read one channel, all are taken every time")
    func atTheLimit() {
        let taken = turns(ofReaders: Limits.manyReaders)
        #expect(taken.map(\.count) == [Limits.manyReaders] + Array(repeating: 0, count: 9))
        #expect(Set(taken.joined()).count == Limits.manyReaders)
    }

    @Test("AM-45 if more than 100 read one channel, each is taken every tenth time, and not all at once")
    func aboveTheLimit() {
        let taken = turns(ofReaders: Limits.manyReaders + 1)
        #expect(Set(taken.joined()).count == Limits.manyReaders + 1)
        #expect(taken.map(\.count).allSatisfy { 10...11 ~= $0 })
    }
}
