import RoostAPI
import Testing

@testable import RoostCommand

/// What a chat in lines takes for new, for changed, and for another message than the one at its place before.
@Suite struct PrintedMessagesTests {
    /// - Parameter time: Also the number of its id, which is another one in another history.
    private func message(_ seq: Seq, at time: Int64, editedAt: Int64? = nil, deletedAt: Int64? = nil) -> Message {
        Message(
            messageId: MessageID(rawValue: time), channelId: "team", seq: seq, changeSeq: seq, sender: "ann",
            clientId: ClientID("\(time)"), text: "text \(time)", createdAt: Timestamp(milliseconds: time),
            editedAt: editedAt.map { Timestamp(milliseconds: $0) }, deletedAt: deletedAt.map { Timestamp(milliseconds: $0) })
    }

    /// A chat that has printed messages with these seqs, each sent at the time of its seq.
    private func printed(_ seqs: ClosedRange<Seq>) -> PrintedMessages {
        var printed = PrintedMessages()
        for seq in seqs { printed.add(message(seq, at: seq)) }
        printed.hasBegun = true
        return printed
    }

    /// The seqs of those that are new once other messages are forgotten.
    private func new(_ messages: [Message], to printed: PrintedMessages) -> [Seq] {
        var printed = printed
        printed.forgetOtherHistory(than: messages)
        return messages.filter(printed.isNew).map(\.seq)
    }

    @Test(
        "messages may be missing before one that comes after the last, also where nothing was printed, but not before the chat has begun"
    )
    func missing() {
        var empty = PrintedMessages()
        #expect(!empty.isMissingSome(before: 6))
        empty.hasBegun = true
        #expect(empty.isMissingSome(before: 6) && !empty.isMissingSome(before: nil))
        #expect(printed(1...5).isMissingSome(before: 6) && !printed(1...5).isMissingSome(before: 5))
    }

    @Test("an edit and a deletion are told once, and nothing of what was deleted when it was seen first")
    func changes() {
        var printed = printed(1...2)
        printed.add(message(3, at: 3, deletedAt: 4))
        let (edited, deleted) = (message(1, at: 1, editedAt: 5), message(2, at: 2, deletedAt: 6))
        let seen = [
            message(1, at: 1), edited, edited, deleted, deleted, message(3, at: 3, deletedAt: 4), message(4, at: 4),
        ]
        var told: [PrintedMessages.Change?] = []
        for message in seen { told.append(printed.noteChange(of: message)) }
        #expect(told == [nil, .edited, nil, .deleted, nil, nil, nil])
    }

    @Test(
        "I20 after a restored backup the messages at places that had others before are new, and so are those at places that had none"
    )
    func otherHistory() {
        let before = printed(11...30)
        let kept = (1...15 as ClosedRange<Seq>).map { message($0, at: $0) }
        #expect(new(kept, to: before) == [])
        #expect(new(kept + [message(16, at: 40)], to: before) == [16])
        #expect(new([message(20, at: 44), message(21, at: 45)], to: before) == [20, 21])
        // What was sent before the first one that was printed isn't new, but what was sent later is.
        #expect(new([message(5, at: 5), message(6, at: 46)], to: before) == [6])
        // A deleted message keeps its place.
        var withDeleted = before
        withDeleted.add(message(31, at: 31, deletedAt: 32))
        #expect(new([message(31, at: 31, deletedAt: 32)], to: withDeleted) == [])
        #expect(new([message(31, at: 47)], to: withDeleted) == [31])
    }
}
