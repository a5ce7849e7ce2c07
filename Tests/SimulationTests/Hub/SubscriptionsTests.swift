import NIOCore
import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@testable import RoostServer

/// Who receives what, by the value that the hub drives. Connections have names, and no sockets.
@Suite("Subscriptions")
struct SubscriptionsTests {
    private typealias Action = Subscriptions<String>.Action

    /// The connection whose number is the first byte of its name.
    private static func id(_ socket: String) -> ConnectionID { ConnectionID(rawValue: Int64(socket.utf8.first ?? 0)) }

    /// The value under test. Its actions are returned.
    private struct Recorder {
        var value = Subscriptions<String>()
        private let interest = StreamInterest()

        init() { value.interest = interest }

        mutating func connect(_ socket: String, _ user: UserID, _ streams: UserStreams) -> [Action] {
            value.add(socket, as: SubscriptionsTests.id(socket))
            return deliver([.connected(SubscriptionsTests.id(socket), user, streams)])
        }

        mutating func deliver(_ notices: [Notice]) -> [Action] {
            EventFrames.steps(for: [Committed(notices: notices, answer: .waiting {})]).flatMap { deliver($0) }
        }

        mutating func deliver(_ step: EventFrames.Step) -> [Action] {
            let mayHaveReceivers = interest.mayConcern([step], shard: 0)
            var actions: [Action] = []
            value.deliver(step) { actions.append($0) }
            #expect(actions.isEmpty || mayHaveReceivers, "a loop would have missed a step with receivers")
            return actions
        }

        mutating func remove(_ socket: String) -> [Action] {
            var actions: [Action] = []
            value.remove(SubscriptionsTests.id(socket)) { actions.append($0) }
            #expect(!value.subscribers.isEmpty || interest.streamCount == 0, "a stream counts without receivers")
            return actions
        }
    }

    private static let everybody = Readers(others: .user)

    private static func message(_ seq: Seq, changed changeSeq: Seq? = nil) -> Event {
        let message = Message(
            messageId: MessageID(rawValue: seq), channelId: "general", seq: seq, changeSeq: changeSeq ?? seq, sender: "ann",
            clientId: "c", text: "hi", createdAt: Timestamp(milliseconds: 0))
        let kind = changeSeq == nil ? Event.Kind.messageNew : .messageUpdated
        return Event(
            kind: kind, stream: .channel("general"), seq: changeSeq ?? seq, actor: "ann", rows: Rows([message]))
    }

    private static func frames(_ event: Event, _ readers: Readers) -> EventFrames.Frames {
        var frames = EventFrames.Frames()
        frames.append(event.members(isConcealable: event.oldestMessage(to: readers) != nil), at: event.seq)
        return frames
    }

    private static func live(_ event: Event, _ readers: Readers = everybody, to socket: String) -> Action {
        .send(frames(event, readers).watching, eventCount: 1, to: socket)
    }

    private static func notification(_ event: Event, _ readers: Readers = everybody, to socket: String) -> Action {
        .send(frames(event, readers).notification, eventCount: 1, to: socket)
    }

    private static func notice(_ event: Event, _ readers: Readers = everybody) -> Notice {
        .event(event, .channel("general", readers))
    }

    private static func unwatched(_ socket: String) -> Action {
        var frame = ByteBuffer()
        frame.writeTextFrame("", Array(#"{"unwatched":{"channel":"general"}}"#.utf8))
        return .send(frame, eventCount: 0, to: socket)
    }

    @Test(
        "ST-10 calls under way at once watch no more than a connection may: it is notified of the others, and gets none of their events"
    )
    func manyWatched() {
        var subscriptions = Recorder()
        _ = subscriptions.connect("a", "ann", UserStreams(user: 0, channels: [:]))
        let channels = (1...Limits.watchedChannels).map { ChannelID("c\($0)") }
        for channel in channels { _ = subscriptions.deliver([.watching(Self.id("a"), "ann", channel, at: 1)]) }
        #expect(subscriptions.deliver([.watching(Self.id("a"), "ann", "general", at: 1)]) == [Self.unwatched("a")])
        #expect((subscriptions.deliver([Self.notice(Self.message(2))]), subscriptions.remove("a").isEmpty) == ([], false))
        #expect(subscriptions.value.used(among: [.channel("general"), .channel("c1")]) == [])
    }

    @Test("§4 a member gets a channel's events as notifications, and live while they watch")
    func watching() {
        var subscriptions = Recorder()
        let event = Self.message(2)
        #expect(
            subscriptions.connect("a", "ann", UserStreams(user: 0, channels: ["general": 1]))
                == [.connected("ann"), .appeared("ann"), .cameOnline("ann", ["general"])])
        #expect(subscriptions.deliver([Self.notice(event)]) == [Self.notification(event, to: "a")])
        #expect(
            subscriptions.deliver([.watching(Self.id("a"), "ann", "general", at: 2), Self.notice(event)])
                == [.startedWatching("ann", "general", isShown: true), Self.live(event, to: "a")])
        // Again, with the number of members online from the answer.
        #expect(
            subscriptions.deliver([.watching(Self.id("a"), "ann", "general", at: 2, online: 3)]) == [.answeredOnline(3, "general")])
        #expect(
            subscriptions.deliver([.stoppedWatching(Self.id("a"), "ann", "general"), Self.notice(event)])
                == [.stoppedWatching("ann", ["general"], isShown: true), Self.notification(event, to: "a")])
    }

    @Test("I9 a new member gets later events, on every device; a former one gets nothing more, watching or not")
    func membership() {
        var subscriptions = Recorder()
        let event = Self.message(2)
        _ = subscriptions.connect("a", "ann", UserStreams(user: 0))
        #expect(subscriptions.deliver([Self.notice(event)]) == [])
        #expect(
            subscriptions.deliver([.joined("ann", "general", at: 1), Self.notice(event)])
                == [.cameOnline("ann", ["general"]), Self.notification(event, to: "a")])
        #expect(subscriptions.deliver([.joined("ann", "general", at: 1)]) == [], "joined twice")
        _ = subscriptions.deliver([.watching(Self.id("a"), "ann", "general", at: 2)])
        #expect(
            subscriptions.deliver([.left("ann", "general", at: 3), Self.notice(event)]) == [
                .wentOffline("ann", ["general"]), .stoppedWatching("ann", ["general"], isShown: true),
                .emptied(.channel("general")),
            ])
        #expect(subscriptions.deliver([.left("ann", "general", at: 3)]) == [], "left twice")
    }

    @Test("X-37 a user who doesn't share presence isn't shown online or watching, on any connection, until they share it again")
    func invisible() {
        var subscriptions = Recorder()
        let streams = UserStreams(user: 0, channels: ["general": 1])
        for socket in ["a", "A"] { _ = subscriptions.connect(socket, "ann", streams) }
        _ = subscriptions.deliver([.watching(Self.id("a"), "ann", "general", at: 1)])
        let hidden = subscriptions.deliver([.presenceShared("ann", false)])
        #expect(
            hidden == [
                .disappeared("ann"), .wentOffline("ann", ["general"]),
                // Such a connection is still sent what happens there, at each moment.
                .startedWatching("ann", "general", isShown: false), .stoppedWatching("ann", ["general"], isShown: true),
                .disappeared("ann"), .wentOffline("ann", ["general"]),
            ])
        #expect(subscriptions.deliver([.presenceShared("ann", false)]) == [])
        // Everything else continues, unseen.
        let event = Self.message(2)
        #expect(subscriptions.deliver([Self.notice(event)]).contains(Self.live(event, to: "a")))
        let unseen = UserStreams(user: 0, channels: ["general": 1], sharesPresence: false)
        #expect(subscriptions.connect("b", "ann", unseen) == [.connected("ann")])
        #expect(
            subscriptions.deliver([.joined("ann", "other", at: 1), .watching(Self.id("b"), "ann", "other", at: 1)])
                == [.startedWatching("ann", "other", isShown: false)])
        #expect(
            subscriptions.deliver([.stoppedWatching(Self.id("b"), "ann", "other")])
                == [.stoppedWatching("ann", ["other"], isShown: false)])
        #expect(subscriptions.remove("A") == [.disconnected("ann")])
        let shown = subscriptions.deliver([.presenceShared("ann", true)])
        #expect(
            shown == [
                .appeared("ann"), .cameOnline("ann", ["general", "other"]), .startedWatching("ann", "general", isShown: true),
                .stoppedWatching("ann", ["general"], isShown: false), .appeared("ann"), .cameOnline("ann", ["general", "other"]),
            ])
    }

    /// What connections were given while their users read, in one look or in ten.
    private static func readable(_ subscriptions: inout Recorder, _ turns: ClosedRange<Int> = 1...1) -> [String: [ChannelID: Seq]] {
        turns.reduce(into: [:]) { taken, turn in
            for (socket, seqs) in subscriptions.value.takeReadable(turn) { taken[socket, default: [:]].merge(seqs) { max($0, $1) } }
        }
    }

    @Test(
        "AM-45 events given to a connection while its user reads are noted, once and up to the newest; none before, after, or of others"
    )
    func reading() {
        var subscriptions = Recorder()
        let streams = UserStreams(user: 0, channels: ["general": 1])
        for (socket, user) in [("a", "ann"), ("A", "ann"), ("b", "bob")] as [(String, UserID)] {
            _ = subscriptions.connect(socket, user, streams)
        }
        _ = subscriptions.deliver([
            Self.notice(Self.message(2)), .reading(Self.id("a"), "general", since: 1, at: 1),
            .reading(Self.id("b"), "other", since: 1, at: 1),
        ])
        #expect(Self.readable(&subscriptions).isEmpty)
        _ = subscriptions.deliver([Self.notice(Self.message(3)), Self.notice(Self.message(2, changed: 4))])
        #expect(Self.readable(&subscriptions) == ["a": ["general": 4]])
        #expect(Self.readable(&subscriptions).isEmpty)
        // A position that couldn't be stored is given again; events before the end are read.
        subscriptions.value.noteReadable(["general": 4], of: Self.id("a"))
        _ = subscriptions.deliver([
            Self.notice(Self.message(5)), .stoppedReading(Self.id("a"), "general"), Self.notice(Self.message(6)),
        ])
        #expect(Self.readable(&subscriptions) == ["a": ["general": 5]])
        // Marking as unread ends it on all devices, and drops the positions not taken yet; so do leaving and the end of the connection.
        let actions = subscriptions.deliver([
            .reading(Self.id("a"), "general", since: 1, at: 1), .reading(Self.id("A"), "general", since: 1, at: 1),
            Self.notice(Self.message(7)),
            .markedUnread("ann", "general", at: 1), Self.notice(Self.message(8)),
        ])
        for socket in ["a", "A"] { #expect(actions.contains(.forgetReading("general", of: socket))) }
        #expect(Self.readable(&subscriptions).isEmpty)
        _ = subscriptions.deliver([
            .reading(Self.id("b"), "general", since: 1, at: 1), Self.notice(Self.message(9)), .left("bob", "general", at: 10),
        ])
        #expect(Self.readable(&subscriptions).isEmpty)
        _ = subscriptions.deliver([.reading(Self.id("a"), "general", since: 1, at: 1), Self.notice(Self.message(11))])
        _ = subscriptions.remove("a")
        subscriptions.value.noteReadable(["general": 11], of: Self.id("a"))
        #expect(Self.readable(&subscriptions).isEmpty)
    }

    @Test("AM-45 R23 a user who may no longer read a message has nothing of it to confirm")
    func hiddenReading() {
        var subscriptions = Recorder()
        _ = subscriptions.connect("a", "ann", UserStreams(user: 0, channels: ["general": 1]))
        _ = subscriptions.connect("b", "bob", UserStreams(user: 0, channels: ["general": 1], roles: ["general": .operator]))
        _ = subscriptions.deliver([
            .reading(Self.id("a"), "general", since: 1, at: 1), .reading(Self.id("b"), "general", since: 1, at: 1),
            Self.notice(Self.message(2), Readers(members: .nobody, others: .nobody, roles: [.operator])),
        ])
        #expect(Self.readable(&subscriptions) == ["b": ["general": 2]])
        // An event without messages goes to every member, and gives nothing to read to a member who may not read.
        let renamed = Event(kind: .channelUpdated, stream: .channel("general"), seq: 3, actor: "bob", rows: Rows())
        _ = subscriptions.deliver([Self.notice(renamed, Readers(members: .nobody, others: .nobody, roles: [.operator]))])
        #expect(Self.readable(&subscriptions) == ["b": ["general": 3]])
    }

    @Test("AM-17 ST-06 a lost right to read ends the watch before the next event, which goes only to users with the right")
    func readers() {
        var subscriptions = Recorder()
        let event = Self.message(2)
        let membersOnly = Readers(others: .nobody)
        _ = subscriptions.connect("a", "ann", UserStreams(user: 0))
        _ = subscriptions.deliver([.watching(Self.id("a"), "ann", "general", at: 1)])
        #expect(subscriptions.deliver([Self.notice(event)]) == [Self.live(event, to: "a")])
        #expect(
            subscriptions.deliver([Self.notice(event, membersOnly)])
                == [.stoppedWatching("ann", ["general"], isShown: true), Self.unwatched("a"), .emptied(.channel("general"))])
    }

    @Test("I10 a member who may not read gets the position without the message, and all of the next one once they read")
    func membersWhoMayNotRead() {
        var subscriptions = Recorder()
        let (hidden, shown) = (Self.message(2), Self.message(3))
        let operators = Readers(members: .moderator, roles: [.operator])
        _ = subscriptions.connect("a", "ann", UserStreams(user: 0, channels: ["general": 1]))
        #expect(
            subscriptions.deliver([Self.notice(hidden, operators)])
                == [Self.notification(hidden.concealing(messagesUpTo: .max), to: "a")])
        // Changes of a role on two streams arrive in any order: an older one changes nothing.
        _ = subscriptions.deliver([.role("ann", "general", .operator, at: 3)])
        _ = subscriptions.deliver([.role("ann", "general", .member, at: 1)])
        #expect(subscriptions.deliver([Self.notice(shown, operators)]) == [Self.notification(shown, operators, to: "a")])
    }

    @Test("SB-14 SB-26 a change of a message from before the floor is sent without it, and a floor never goes down")
    func floors() {
        var subscriptions = Recorder()
        let edited = Self.message(2, changed: 5)
        _ = subscriptions.connect("a", "ann", UserStreams(user: 0, channels: ["general": 1]))
        #expect(subscriptions.deliver([Self.notice(edited)]) == [Self.notification(edited, to: "a")])
        _ = subscriptions.deliver([.floor("ann", "general", 3)])
        _ = subscriptions.deliver([.floor("ann", "general", 1)])
        #expect(subscriptions.deliver([Self.notice(edited)]) == [Self.notification(edited.concealing(messagesUpTo: 3), to: "a")])
    }

    @Test("SB-14 a floor is a member's: a former member who watches gets changes of all messages, until they join again")
    func floorsOfFormerMembers() {
        var subscriptions = Recorder()
        let edited = Self.message(2, changed: 5)
        _ = subscriptions.connect("a", "ann", UserStreams(user: 0, channels: ["general": 1], floors: ["general": 3]))
        #expect(subscriptions.deliver([Self.notice(edited)]) == [Self.notification(edited.concealing(messagesUpTo: 3), to: "a")])
        _ = subscriptions.deliver([.left("ann", "general", at: 6)])
        _ = subscriptions.deliver(.watches(Self.id("a"), "ann", "general", at: 6))
        let past = EventFrames.Step.catchUpConcealable(
            .watcher(Self.id("a")),
            ConcealableEvent(
                edited.members(isConcealable: true), of: "general", at: 5, oldestMessage: 2, readers: Self.everybody))
        #expect(subscriptions.deliver(past) == [Self.live(edited, to: "a")])
        _ = subscriptions.deliver([.watching(Self.id("a"), "ann", "general", at: 6)])
        #expect(subscriptions.deliver([Self.notice(edited)]) == [Self.live(edited, to: "a")])
        _ = subscriptions.deliver([.joined("ann", "general", at: 7)])
        #expect(subscriptions.deliver([Self.notice(edited)]) == [Self.live(edited.concealing(messagesUpTo: 3), to: "a")])
    }

    @Test("I18 what a connection keeps of channels that were deleted or left doesn't grow with them")
    func forgotten() throws {
        var subscriptions = Recorder()
        _ = subscriptions.connect("a", "ann", UserStreams(user: 0))
        for number in 0..<10_000 {
            let channel = ChannelID("c\(number)")
            _ = subscriptions.deliver([.joined("ann", channel, at: 1, as: .owner), .floor("ann", channel, 1)])
            _ = subscriptions.deliver([number.isMultiple(of: 2) ? .channelDeleted(channel) : .left("ann", channel, at: 2)])
        }
        let subscriber = try #require(subscriptions.value.subscribers[Self.id("a")])
        #expect(subscriber.floors.count <= 8193 && subscriber.roles.isEmpty)
        // The newest are known: a membership may begin before the end of the last one is delivered.
        #expect(subscriber.floors["c9999"] == 1 && subscriber.floors["c9998"] == nil)
    }

    @Test("a connection that ends needs nothing more, and one that ended before it was connected stays away")
    func removal() {
        var subscriptions = Recorder()
        _ = subscriptions.connect("a", "ann", UserStreams(user: 0, channels: ["general": 1]))
        _ = subscriptions.deliver([.watching(Self.id("a"), "ann", "general", at: 1)])
        #expect(
            subscriptions.value.used(among: [.channel("general"), .user("ann"), .user("bob")]) == [
                .channel("general"), .user("ann"),
            ])
        #expect(
            subscriptions.remove("a") == [
                .emptied(.user("ann")), .emptied(.channel("general")), .disappeared("ann"), .wentOffline("ann", ["general"]),
                .stoppedWatching("ann", ["general"], isShown: true), .disconnected("ann"),
            ])
        #expect(subscriptions.remove("a") == [])
        #expect(subscriptions.deliver([.connected(Self.id("a"), "ann", UserStreams(user: 0, channels: ["general": 1]))]) == [])
        #expect(subscriptions.deliver([Self.notice(Self.message(2))]) == [])
        #expect(subscriptions.value.used(among: [.channel("general"), .user("ann")]) == [])
    }

    @Test("I6 a user who starts to get a channel is sent its past once, and only until they get it live")
    func pastEvents() {
        var subscriptions = Recorder()
        let event = Self.message(2)
        _ = subscriptions.connect("a", "ann", UserStreams(user: 0))
        let past = EventFrames.Step.catchUp(.member("ann"), "general", Self.everybody, Self.frames(event, Self.everybody))
        #expect(subscriptions.deliver(past) == [Self.notification(event, to: "a")])
        #expect(Self.readable(&subscriptions).isEmpty)
        // A reader has it to confirm.
        _ = subscriptions.deliver([.reading(Self.id("a"), "general", since: 1, at: 1)])
        _ = subscriptions.deliver(past)
        #expect(Self.readable(&subscriptions) == ["a": ["general": 2]])
        _ = subscriptions.deliver(.attach(Self.id("a"), "general"))
        #expect(subscriptions.deliver(past) == [])
        // Past events of a channel are only sent to non-members who may read it.
        let closed = EventFrames.Step.catchUp(
            .watcher(Self.id("b")), "general", Readers(others: .nobody), Self.frames(event, Self.everybody))
        _ = subscriptions.connect("b", "bob", UserStreams(user: 0))
        #expect(subscriptions.deliver(closed) == [])
    }

    @Test("ST-08 ST-13 I9 a non-member who may not read the events they catch up with stops watching, and doesn't start after them")
    func endsCatchingUp() {
        var subscriptions = Recorder()
        let event = Self.message(2)
        func past(_ readers: Readers) -> EventFrames.Step {
            .catchUp(.watcher(Self.id("b")), "general", readers, Self.frames(event, readers))
        }
        _ = subscriptions.connect("b", "bob", UserStreams(user: 0))
        _ = subscriptions.deliver(.watches(Self.id("b"), "bob", "general", at: 1))
        #expect(subscriptions.deliver(past(Self.everybody)) == [Self.live(event, to: "b")])
        let ended = subscriptions.deliver(past(Readers(others: .nobody)))
        #expect(ended == [.stoppedWatching("bob", ["general"], isShown: true), Self.unwatched("b")])
        // A right that returns starts no watch.
        #expect(subscriptions.deliver(past(Self.everybody)) == [])
        #expect(subscriptions.deliver(.attachWatcher(Self.id("b"), "general")) == [])
        #expect(subscriptions.deliver([Self.notice(event)]) == [])
        _ = subscriptions.deliver(.watches(Self.id("b"), "bob", "general", at: 1))
        _ = subscriptions.deliver(.attachWatcher(Self.id("b"), "general"))
        #expect(subscriptions.deliver([Self.notice(event)]) == [Self.live(event, to: "b")])
    }

    @Test("a reply goes to its connection alone, even before the welcome; changes of access are shown to every connection")
    func repliesAndAccess() {
        var subscriptions = Recorder()
        subscriptions.value.add("a", as: Self.id("a"))
        let socket = SocketID(shard: 0, connection: Self.id("a"))
        #expect(subscriptions.deliver(.reply(socket, [1])) == [.reply([1], to: "a")])
        #expect(subscriptions.deliver(.reply(SocketID(shard: 0, connection: Self.id("b")), [1])) == [])
        let change = AccessChange.user("ann", isDeactivated: true, validFrom: nil)
        #expect(subscriptions.deliver([.accessChanged([change])]) == [.checkAccess([.user("ann"): change], of: "a")])
    }

    // MARK: Signals

    private static func signal(_ number: Double = 0, by sender: UserID = "bob") -> Signal {
        Signal(kind: .custom, channel: "general", sender: sender, custom: CustomSignal(type: "number", metadata: .number(number)))
    }

    /// The connections that a signal reaches, by name.
    private static func reached(_ actions: [Action]) -> Set<String> {
        Set(actions.compactMap { if case .signal(_, let socket) = $0 { socket } else { nil } })
    }

    /// ann owns `general`, oda is an operator, bob and cid are members; cid and wes, a non-member, watch. dan is a stranger.
    private func audience() -> Recorder {
        var subscriptions = Recorder()
        for (socket, user, role) in [
            ("a", "ann", ChannelRole.owner), ("o", "oda", .operator), ("b", "bob", .member), ("c", "cid", .member),
        ] {
            let roles: [ChannelID: ChannelRole] = role == .member ? [:] : ["general": role]
            _ = subscriptions.connect(socket, UserID(user), UserStreams(user: 0, channels: ["general": 1], roles: roles))
        }
        for (socket, user) in [("w", "wes"), ("d", "dan")] { _ = subscriptions.connect(socket, UserID(user), UserStreams(user: 0)) }
        for (socket, user) in [("c", "cid"), ("w", "wes")] {
            _ = subscriptions.deliver([.watching(Self.id(socket), UserID(user), "general", at: 1)])
        }
        return subscriptions
    }

    @Test("§4 ST-13 a signal reaches its audience alone: a channel, those who watch it, or a user")
    func signals() {
        var subscriptions = audience()
        func reached(_ audience: Audience) -> Set<String> {
            Self.reached(subscriptions.deliver([.signal(Self.signal(), audience)]))
        }
        #expect(reached(.channel("general", Self.everybody)) == ["a", "o", "b", "c", "w"])
        #expect(reached(.watchers("general", Self.everybody)) == ["c", "w"])
        #expect(reached(.user("bob")) == ["b"])
        #expect(reached(.watchers("elsewhere")) == [])
        // Members and watchers as they change.
        _ = subscriptions.deliver([.stoppedWatching(Self.id("c"), "cid", "general")])
        #expect(reached(.watchers("general", Self.everybody)) == ["w"])
        _ = subscriptions.deliver([.left("bob", "general", at: 3)])
        _ = subscriptions.remove("w")
        #expect(reached(.channel("general", Self.everybody)) == ["a", "o", "c"])
        #expect(reached(.watchers("general", Self.everybody)) == [])
    }

    @Test("ST-13 I9 a watcher gets signals from the answer on, before events that take a while, as far as they may")
    func signalsBeforeEvents() {
        var subscriptions = audience()
        func reached(_ readers: Readers) -> [String] {
            subscriptions.deliver([.signal(Self.signal(), .watchers("general", readers))]).flatMap { Self.reached([$0]) }.sorted()
        }
        let began = subscriptions.deliver(.watches(Self.id("d"), "dan", "general", at: 1, online: 3))
        #expect(began == [.startedWatching("dan", "general", isShown: true), .answeredOnline(3, "general")])
        #expect(reached(Self.everybody) == ["c", "d", "w"] && reached(Readers(others: .nobody)) == ["c"])
        _ = subscriptions.deliver(.attachWatcher(Self.id("d"), "general"))
        #expect(reached(Self.everybody) == ["c", "d", "w"])
        _ = subscriptions.deliver([.stoppedWatching(Self.id("d"), "dan", "general")])
        #expect(reached(Self.everybody) == ["c", "w"])
    }

    @Test("I9 I10 a signal goes to no user who may not read, by the last event or by the signal itself, and ends no watch")
    func signalsAndReaders() {
        var subscriptions = audience()
        let membersOnly = Readers(others: .nobody)
        // The right of non-members has ended without an event.
        #expect(Self.reached(subscriptions.deliver([.signal(Self.signal(), .watchers("general", membersOnly))])) == ["c"])
        #expect(
            Self.reached(subscriptions.deliver([.signal(Self.signal(), .channel("general", membersOnly))])) == ["a", "o", "b", "c"])
        #expect(Self.reached(subscriptions.deliver([.signal(Self.signal(), .watchers("general", Self.everybody))])) == ["c", "w"])
        // An event took the right from ordinary members: an older signal doesn't restore it.
        _ = subscriptions.deliver([
            Self.notice(Self.message(2), Readers(members: .moderator, others: .user, roles: [.owner, .operator]))
        ])
        #expect(
            Self.reached(subscriptions.deliver([.signal(Self.signal(), .channel("general", Self.everybody))])) == ["a", "o", "w"])
    }

    @Test("§4 SB-02 no user is notified of their own typing, on any of their connections; the others are")
    func ownTyping() {
        var subscriptions = audience()
        _ = subscriptions.connect("e", "bob", UserStreams(user: 0, channels: ["general": 1]))
        let signal = Signal(
            kind: .typingChanged, channel: "general", typing: TypingUsers(users: ["bob", "cid"], hasMore: false))
        func form(_ users: UserID...) -> SignalFrame {
            var form = signal
            form.typing?.users = users
            return SignalFrame(form)
        }
        var got: [String: SignalFrame] = [:]
        for case .signal(let frame, let socket) in subscriptions.deliver([.signal(signal, .channel("general", Self.everybody))]) {
            got[socket] = frame
        }
        #expect(
            got.mapValues(\.bytes)
                == [
                    "a": form("bob", "cid"), "o": form("bob", "cid"), "w": form("bob", "cid"), "b": form("cid"), "e": form("cid"),
                    "c": form("bob"),
                ].mapValues(\.bytes))
    }

    @Test("of several signals of one kind and sender that are delivered together only the newest is sent; events keep their order")
    func mergedSignals() {
        var subscriptions = audience()
        let event = Self.message(2)
        let actions = subscriptions.deliver([
            .signal(Self.signal(1), .user("dan")), Self.notice(event), .signal(Self.signal(2), .user("dan")),
            .signal(Self.signal(3, by: "cid"), .user("dan")), .signal(Self.signal(4), .user("dan")),
        ])
        let signals = actions.compactMap { if case .signal(let frame, _) = $0 { frame } else { nil } }
        #expect(signals == [SignalFrame(Self.signal(4)), SignalFrame(Self.signal(3, by: "cid"))])
        #expect(actions.count == 2 + 5)
    }
}
