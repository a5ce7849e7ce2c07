import RoostAPI
import Testing

/// Events as sent to users who may not read old messages.
@Suite("Concealing")
struct EventConcealingTests {
    private static func message(_ seq: Seq) -> Message {
        Message(
            messageId: MessageID(rawValue: seq), channelId: "general", seq: seq, changeSeq: 9, sender: "ann",
            clientId: ClientID("\(seq)"), text: "text of \(seq)", createdAt: Timestamp(milliseconds: 0))
    }

    private static func event(_ seqs: [Seq]?) -> Event {
        Event(
            kind: .changes, stream: .channel("general"), seq: 9, after: 1, actor: nil,
            rows: Rows(
                counters: ChannelCounters(seq: 9, memberCount: 2, messageCount: 4, lastActivity: Timestamp(milliseconds: 0)),
                seqs.map { $0.map(message) }))
    }

    @Test(
        "I10 SB-14 SB-26 messages up to the floor are left out, and nothing else of the event",
        arguments: [
            ([3, 5, 9], 2, [3, 5, 9]), ([3, 5, 9], 3, [5, 9]), ([3, 5, 9], 8, [9]), ([5, 3], 4, [5]), ([3, 5], 5, nil),
            ([3], 0, [3]), ([], 9, []),
            (nil, 9, nil),
        ] as [([Seq]?, Seq, [Seq]?)])
    func conceals(held: [Seq]?, floor: Seq, left: [Seq]?) {
        #expect(Self.event(held).concealing(messagesUpTo: floor) == Self.event(left))
    }

    @Test(
        "I10 an event holds old messages if one of them is older than itself",
        arguments: [([3, 5, 9], 3), ([9, 4], 4), ([9], nil), ([], nil), (nil, nil)] as [([Seq]?, Seq?)])
    func oldest(held: [Seq]?, oldest: Seq?) {
        #expect(Self.event(held).oldestMessage == oldest)
    }

    @Test("I10 MN-12 the user who changed a concealed message isn't named, though other messages' mentions are sent with it")
    func whoChanged() {
        let mentions = ([3, 8] as [Seq]).map { ChannelMention(seq: $0, changeSeq: $0, mentionSeq: $0, sender: "ben") }
        func changed(_ seq: Seq?, _ mentions: [ChannelMention], by user: UserID?) -> Event {
            let messages: [Message]? = seq.map { [Self.message($0)] }
            return Event(
                kind: .messageUpdated, stream: .channel("general"), seq: 9, actor: user, rows: Rows(messages, mentions))
        }
        let (low, high) = (changed(2, mentions, by: "ann"), changed(7, mentions, by: "ann"))
        #expect(low.concealing(messagesUpTo: 1) == low)
        #expect(low.concealing(messagesUpTo: 5) == changed(nil, [mentions[1]], by: nil))
        #expect(high.concealing(messagesUpTo: 5) == changed(7, [mentions[1]], by: "ann"))
    }
}
