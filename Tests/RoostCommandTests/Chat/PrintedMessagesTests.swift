import RoostAPI
import Testing

@testable import RoostCommand

/// How a plain chat recognises messages as new, as changed, or as other ones than those formerly at their places.
@Suite struct PrintedMessagesTests {
    /// - Parameter time: Also the number of its id, which differs in another history.
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

    /// The seqs of the new messages, after forgetting those from another history.
    private func new(_ messages: [Message], to printed: PrintedMessages) -> [Seq] {
        var printed = printed
        printed.forgetOtherHistory(than: messages)
        return messages.filter(printed.isNew).map(\.seq)
    }

    @Test(
        "messages may be missing before one after the last, even if none was printed, but not before the chat began"
    )
    func missing() {
        var empty = PrintedMessages()
        #expect(!empty.isMissingSome(before: 6))
        empty.hasBegun = true
        #expect(empty.isMissingSome(before: 6) && !empty.isMissingSome(before: nil))
        #expect(printed(1...5).isMissingSome(before: 6) && !printed(1...5).isMissingSome(before: 5))
    }

    @Test("an edit and a deletion are printed once, and nothing for a message first seen as deleted")
    func changes() {
        var printed = printed(1...2)
        printed.add(message(3, at: 3, deletedAt: 4))
        let (edited, deleted) = (message(1, at: 1, editedAt: 5), message(2, at: 2, deletedAt: 6))
        let seen = [
            message(1, at: 1), edited, edited, deleted, deleted, message(3, at: 3, deletedAt: 4), message(4, at: 4),
        ]
        var reported: [PrintedMessages.Change?] = []
        for message in seen { reported.append(printed.noteChange(of: message)) }
        #expect(reported == [nil, .edited, nil, .deleted, nil, nil, nil])
    }

    @Test(
        "I20 after a restored backup messages at places that had others or none before are new"
    )
    func otherHistory() {
        let before = printed(11...30)
        let kept = (1...15 as ClosedRange<Seq>).map { message($0, at: $0) }
        #expect(new(kept, to: before) == [])
        #expect(new(kept + [message(16, at: 40)], to: before) == [16])
        #expect(new([message(20, at: 44), message(21, at: 45)], to: before) == [20, 21])
        // Messages sent before the first printed one aren't new, but later ones are.
        #expect(new([message(5, at: 5), message(6, at: 46)], to: before) == [6])
        // A deleted message keeps its place.
        var withDeleted = before
        withDeleted.add(message(31, at: 31, deletedAt: 32))
        #expect(new([message(31, at: 31, deletedAt: 32)], to: withDeleted) == [])
        #expect(new([message(31, at: 47)], to: withDeleted) == [31])
    }
}
