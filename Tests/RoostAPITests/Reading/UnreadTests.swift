import RoostAPI
import Testing

@Suite("Unread")
struct UnreadTests {
    private let now = Timestamp(milliseconds: 0)

    private func membership(readCount: Int, state: MembershipState = .member) -> Membership {
        Membership(
            channelId: "c", role: .member, state: state, joinedAt: now, joinedSeq: 0, readSeq: 0, readCount: readCount,
            channelSeq: 0, userSeq: 0)
    }

    @Test("AM-43 unread is what the channel has more than the member has read; none for non-members")
    func counts() {
        let counters = ChannelCounters(seq: 9, memberCount: 2, messageCount: 5, lastActivity: now)
        let counts = [
            Unread.count(in: counters, for: membership(readCount: 2)), Unread.count(in: counters, for: membership(readCount: 5)),
            Unread.count(in: counters, for: membership(readCount: 6)),
            Unread.count(in: counters, for: membership(readCount: 0, state: .none)),
        ]
        #expect(counts == [3, 0, 0, 0])
    }

    @Test("AM-43 SB-27 unread and automatic unhiding go by the messages that count, not by all in the channel")
    func ordinals() {
        let counters = ChannelCounters(seq: 9, memberCount: 2, messageCount: 9, ordinal: 5, lastActivity: now)
        #expect(Unread.count(in: counters, for: membership(readCount: 2)) == 3)
        var hidden = membership(readCount: 2)
        hidden.hiddenState = .hiddenAllowAutoUnhide
        let states = [4, 5].map { ordinal in
            hidden.hiddenOrdinal = ordinal
            return hidden.visibility(in: counters)
        }
        #expect(states == [.unhidden, .hiddenAllowAutoUnhide])
    }

    @Test("I8 a user's own message is never unread")
    func receives() {
        var membership = membership(readCount: 2)
        let message = Message(
            messageId: MessageID(rawValue: 1), channelId: "c", seq: 3, changeSeq: 3, sender: "ann", clientId: "1", text: "hi",
            createdAt: now)
        Unread.receive(message, as: "bob", in: &membership)
        #expect(membership.readCount == 2)
        Unread.receive(message, as: "ann", in: &membership)
        #expect(membership.readCount == 3)
    }
}
