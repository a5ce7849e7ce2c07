import RoostAPI
import RoostCore
import Testing

@testable import Roost
@testable import RoostClientModel

/// A run without findings proves something only if the checker finds real faults.
@Suite("The checker of simulations")
struct CheckerTests {
    private let general: ChannelID = "general"

    private func message(_ seq: Seq, _ clientId: ClientID, by sender: UserID = "ann", text: String = "hi") -> Message {
        Message(
            messageId: MessageID(rawValue: seq), channelId: general, seq: seq, changeSeq: seq, sender: sender, clientId: clientId,
            text: text, createdAt: Timestamp(milliseconds: seq))
    }

    private func counters(_ seq: Seq, _ messageCount: Int) -> ChannelCounters {
        ChannelCounters(seq: seq, memberCount: 1, messageCount: messageCount, lastActivity: Timestamp(milliseconds: seq))
    }

    private func born(_ message: Message) -> Event {
        Event(
            kind: .messageNew, stream: .channel(general), seq: message.seq, actor: message.sender,
            rows: Rows(counters: counters(message.seq, Int(message.seq) - 1), [message]))
    }

    /// Ann has created the channel and sent two messages, seq 2 and 3, with client ids a and b.
    private func checker() -> Checker {
        var checker = Checker()
        let channel = Channel(
            channelId: general, type: .community, counters: counters(1, 0), createdBy: "ann", createdAt: Timestamp(milliseconds: 1),
            updatedAt: Timestamp(milliseconds: 1))
        checker.committed(
            Event(kind: .channelCreated, stream: .user("ann"), seq: 1, actor: "ann", rows: Rows(channel: channel)))
        for message in [message(2, "a"), message(3, "b")] {
            checker.sent(message.name, message.text)
            checker.committed(born(message))
            checker.acknowledged(message)
        }
        return checker
    }

    /// A client's store that has followed the channel to seq 3.
    private func store(_ change: [Message]? = nil, readCount: Int = 2) -> MemoryStore {
        var store = MemoryStore(user: "ann")
        let channel = Channel(
            channelId: general, type: .community, counters: counters(3, 2), createdBy: "ann", createdAt: Timestamp(milliseconds: 1),
            updatedAt: Timestamp(milliseconds: 1))
        store.apply([
            .channel(channel), .position(general, .init(cursor: 3, windowStart: 0)),
            .rows(Rows(change ?? [message(2, "a"), message(3, "b")]), of: .channel("general")),
            .membership(
                Membership(
                    channelId: general, role: .owner, state: .member, joinedAt: Timestamp(milliseconds: 1), joinedSeq: 1,
                    readSeq: 1, readCount: readCount, channelSeq: 3, userSeq: 1)),
        ])
        return store
    }

    private func invariants(_ checker: Checker) -> [String] { checker.verdicts.map(\.invariant) }

    @Test("a sound history has no verdict")
    func sound() {
        var checker = checker()
        checker.stored(store(), by: "ann-1", touching: [general], isExact: true)
        checker.delivered(.channel(general), 3, to: "ann")
        checker.disk([message(2, "a"), message(3, "b")], heads: [general: 3])
        checker.waiting([])
        checker.atRest(store(), beside: store(), "ann-1")
        #expect(checker.verdicts == [])
    }

    @Test("I1 an acknowledged message that isn't on disk is found")
    func lostAck() {
        var checker = checker()
        checker.disk([message(2, "a")], heads: [general: 3])
        #expect(Set(invariants(checker)) == ["I1"])
    }

    @Test("I1 an acknowledgement of a message that was never committed is found")
    func emptyAck() {
        var checker = checker()
        checker.acknowledged(message(4, "c"))
        #expect(invariants(checker) == ["I1"])
    }

    @Test("I1 a changed message may be acknowledged with another text only to a sender who left in between, and with one they sent")
    func sentAgain() {
        for hasLeft in [false, true] {
            var checker = checker()
            var edited = message(3, "b")
            (edited.changeSeq, edited.content.text) = (4, "edited")
            checker.committed(
                Event(kind: .messageUpdated, stream: .channel(general), seq: 4, actor: "ann", rows: Rows([edited])))
            if hasLeft {
                let left = Member(
                    userId: "ann", role: .owner, state: .none, joinedAt: Timestamp(milliseconds: 1), joinedSeq: 1, changeSeq: 5)
                checker.committed(Event(kind: .memberLeft, stream: .channel(general), seq: 5, actor: "ann", rows: Rows([left])))
            }
            checker.acknowledged(edited)
            checker.sent(edited.name, "again")
            checker.acknowledged(message(3, "b", text: "again"))
            #expect(invariants(checker) == (hasLeft ? [] : ["I1"]))
            checker.acknowledged(message(3, "b", text: "nobody's"))
            #expect(invariants(checker) == (hasLeft ? ["I1"] : ["I1", "I1"]))
        }
    }

    @Test("I1 a message that has vanished is found")
    func vanished() {
        var checker = checker()
        checker.sent(.init(sender: "ann", channel: general, clientId: "c"), "lost")
        checker.waiting([])
        #expect(invariants(checker) == ["I1"])
    }

    @Test("I2 a message that was never sent is found")
    func unsent() {
        var checker = checker()
        checker.committed(born(message(4, "c")))
        #expect(invariants(checker) == ["I2"])
    }

    @Test("I3 a gap in a stream is found")
    func streamHole() {
        var checker = checker()
        let late = message(5, "c")
        checker.sent(late.name, late.text)
        checker.committed(born(late))
        #expect(invariants(checker) == ["I3"])
    }

    @Test("I3 a gap in a client's messages is found")
    func clientHole() {
        var checker = checker()
        checker.stored(store([message(3, "b")]), by: "ann-1", touching: [general], isExact: true)
        #expect(invariants(checker) == ["I3"])
    }

    @Test("I4 a message that is stored twice is found")
    func duplicate() {
        var checker = checker()
        checker.committed(born(message(4, "b")))
        #expect(invariants(checker) == ["I4"])
    }

    @Test("I5 a client that missed something is found")
    func stale() {
        var checker = checker()
        checker.atRest(store([message(2, "a")]), beside: store(), "ann-1")
        #expect(invariants(checker) == ["I5"])
    }

    @Test("I6 a message that disappears from a list is found, unless the list started over")
    func flicker() {
        var checker = checker()
        checker.showed([message(2, "a").name, message(3, "b").name], of: general, on: "ann-1", isRenewed: false)
        checker.showed([message(3, "b").name], of: general, on: "ann-1", isRenewed: false)
        checker.showed([], of: general, on: "ann-1", isRenewed: true)
        #expect(invariants(checker) == ["I6"])
    }

    @Test("I7 an unread count that is off by one is found")
    func unread() {
        var checker = checker()
        checker.stored(store(readCount: 1), by: "ann-1", touching: [general], isExact: true)
        #expect(invariants(checker) == ["I7"])
    }

    @Test("I8 a read position that goes back is found")
    func reading() {
        var checker = checker()
        checker.stored(store(readCount: 3), by: "ann-1", touching: [general], isExact: false)
        checker.stored(store(readCount: 2), by: "ann-1", touching: [general], isExact: false)
        #expect(invariants(checker) == ["I8"])
    }

    @Test("I5 a client that missed an invitation, or a change of preferences, is found")
    func missedOwnRows() {
        let invitation = Invitation(
            channelId: general, userId: "ann", inviter: "bob", state: .pending, invitedAt: Timestamp(milliseconds: 1), revision: 1)
        for rows in [Rows([invitation]), Rows([Preferences(autoAcceptInvitations: false)])] {
            var (checker, fresh) = (checker(), store())
            fresh.apply([.rows(rows, of: .user("ann"))])
            checker.atRest(store(), beside: fresh, "ann-1")
            #expect(invariants(checker) == ["I5"])
        }
    }

    @Test("I9 an event for a user who has left is found, whatever their role was")
    func formerMember() {
        var checker = checker()
        func commit(_ kind: Event.Kind, at seq: Seq, _ role: ChannelRole, _ state: MembershipState) {
            let bob = Member(
                userId: "bob", role: role, state: state, joinedAt: Timestamp(milliseconds: 1), joinedSeq: 4, changeSeq: seq)
            checker.committed(Event(kind: kind, stream: .channel(general), seq: seq, actor: "ann", rows: Rows([bob])))
        }
        commit(.memberJoined, at: 4, .member, .member)
        commit(.memberRoleChanged, at: 5, .operator, .member)
        commit(.memberLeft, at: 6, .member, .none)
        checker.delivered(.channel(general), 5, to: "bob")
        #expect(checker.verdicts == [])
        checker.delivered(.channel(general), 7, to: "bob")
        #expect(invariants(checker) == ["I9"])
    }

    @Test("I9 an event for a non-member is found")
    func stranger() {
        var checker = checker()
        checker.delivered(.channel(general), 3, to: "bob")
        #expect(invariants(checker) == ["I9"])
    }

    @Test("I9 events and operations of a device after it was signed out are found, and not those of its next sign-in")
    func signedOutDevice() {
        var checker = checker()
        let (first, second) = (DeviceIdentity(id: "phone", signIn: 1), DeviceIdentity(id: "phone", signIn: 2))
        checker.delivered(.channel(general), 3, to: first, of: "ann")
        checker.signedOut("phone", of: "ann", upTo: 1)
        // Earlier commits may still be on their way.
        checker.delivered(.channel(general), 3, to: first, of: "ann")
        checker.sent(message(4, "c").name, "hi")
        checker.committed(born(message(4, "c")))
        checker.delivered(.channel(general), 4, to: second, of: "ann")
        checker.acted(second, of: "ann", .messageNew)
        checker.delivered(.channel(general), 4, to: DeviceIdentity(id: "tablet", signIn: 1), of: "ann")
        #expect(checker.verdicts == [])
        checker.delivered(.channel(general), 4, to: first, of: "ann")
        checker.acted(first, of: "ann", .messageNew)
        #expect(invariants(checker) == ["I9", "I9"])
    }

    @Test("I12 a receipt that was never reported, goes back or is lost is found")
    func receipts() {
        var checker = checker()
        func receipt(_ seq: Seq) -> ReadPosition {
            ReadPosition(userId: "ann", readSeq: 1, deliveredSeq: seq, lastDeliveredAt: Timestamp(milliseconds: seq))
        }
        func member(_ user: UserID) -> Member {
            Member(
                userId: user, role: .member, state: .member, joinedAt: Timestamp(milliseconds: 1), joinedSeq: 1, changeSeq: 1)
        }
        let mark = MarkDelivered(channel: general, seq: 2)
        let membership = checker.reports(mark, by: "ann")
        checker.sentReceipt(receipt(2), in: general)
        checker.reported(mark, by: "ann", in: membership)
        var answer = receipt(2)
        answer.joinedSeq = 1
        checker.atRest([answer], in: general, members: [member("ann"), member("bob")], as: "bob")
        #expect(checker.verdicts == [])
        checker.sentReceipt(receipt(2), in: general)
        checker.sentReceipt(receipt(3), in: general)
        #expect(invariants(checker) == ["I12", "I12"])
        // Neither as it was sent, nor as far as was reported.
        answer.deliveredSeq = nil
        checker.atRest([answer], in: general, members: [member("ann")], as: "bob")
        checker.atRest([], in: general, members: [member("ann")], as: "bob")
        #expect(invariants(checker) == ["I12", "I12", "I12", "I12", "I12"])
    }

    @Test("I22 a queued edit that is made a second time is found, whatever the text was in between")
    func repeatedEdit() {
        var checker = checker()
        func commit(_ text: String, at seq: Seq) {
            var edited = message(3, "b")
            (edited.changeSeq, edited.content.text) = (seq, text)
            checker.committed(
                Event(kind: .messageUpdated, stream: .channel(general), seq: seq, actor: "ann", rows: Rows([edited])))
        }
        commit("\(Checker.queuedEdit) 1", at: 4)
        commit("\(Checker.queuedEdit) 2", at: 5)
        #expect(checker.verdicts == [])
        commit("\(Checker.queuedEdit) 1", at: 6)
        #expect(invariants(checker) == ["I22"])
    }
}
