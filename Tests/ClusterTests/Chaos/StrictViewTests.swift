#if Cluster
import RoostAPI
import Testing

/// The kill test's client detects each fault that it exists to detect.
@Suite struct StrictViewTests {
    private static let time = Timestamp(milliseconds: 0)

    private func view(at seq: Seq) -> StrictView {
        var view = StrictView(user: "ann")
        let counters = ChannelCounters(seq: seq, memberCount: 1, messageCount: 0, lastActivity: Self.time)
        let channel = Channel(
            channelId: "general", type: .community, counters: counters, createdBy: "ann", createdAt: Self.time, updatedAt: Self.time
        )
        let joined = membership(.member, at: seq)
        let changes = Changes(
            stream: .channel("general"), rows: Rows(channel: channel, [joined]), seq: seq, hasMore: false,
            isFresh: true)
        let user = Changes(stream: .user("ann"), rows: Rows(), seq: 1, hasMore: false)
        view.apply(Resumption(user: user, channels: [changes], hasMore: false))
        return view
    }

    private func membership(_ state: MembershipState, at seq: Seq) -> Membership {
        Membership(
            channelId: "general", role: .member, state: state, joinedAt: Self.time, joinedSeq: 1, readSeq: seq, readCount: 0,
            channelSeq: seq, userSeq: 0)
    }

    private func message(_ seq: Seq, clientId: String, after: Seq? = nil) -> Event {
        let message = Message(
            messageId: MessageID(rawValue: seq), channelId: "general", seq: seq, changeSeq: seq, sender: "bob",
            clientId: ClientID(clientId), text: "hi", createdAt: Self.time)
        return Event(
            kind: .messageNew, stream: .channel("general"), seq: seq, after: after, actor: "bob", rows: Rows([message]))
    }

    private func leaving(_ userSeq: Seq, at seq: Seq) -> Event {
        Event(
            kind: .memberLeft, stream: .user("ann"), seq: userSeq, actor: "ann",
            rows: Rows([membership(.none, at: seq)]))
    }

    private func faults(after events: [Event]) -> [StrictView.Fault] {
        var view = view(at: 5)
        for event in events {
            view.note(event)
            view.apply(event)
        }
        return view.faults.map(\.kind)
    }

    @Test("I3 I4 I9 a gap, an event out of order, a message twice, and one after leaving are each detected; correct events aren't")
    func seesFaults() {
        #expect(faults(after: [message(6, clientId: "a"), message(7, clientId: "b")]) == [])
        #expect(faults(after: [message(8, clientId: "a", after: 5), message(9, clientId: "b", after: 7)]) == [])
        #expect(faults(after: [message(7, clientId: "a")]) == [.gap])
        #expect(faults(after: [message(9, clientId: "a", after: 6)]) == [.gap])
        #expect(faults(after: [message(6, clientId: "a"), message(6, clientId: "a")]) == [.order])
        #expect(faults(after: [message(7, clientId: "a"), message(6, clientId: "b")]) == [.gap, .order])
        #expect(faults(after: [message(6, clientId: "a"), message(7, clientId: "a")]) == [.twice])
        #expect(faults(after: [leaving(2, at: 6), message(6, clientId: "a")]) == [])
        #expect(faults(after: [leaving(2, at: 6), message(7, clientId: "a")]) == [.afterLeaving])
        #expect(faults(after: [message(6, clientId: "a"), message(7, clientId: "b"), leaving(2, at: 6)]) == [.afterLeaving])
        #expect(faults(after: [leaving(3, at: 6)]) == [.gap])
    }
}
#endif
