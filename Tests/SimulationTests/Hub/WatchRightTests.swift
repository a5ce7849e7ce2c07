import NIOCore
import RoostAPI
import RoostCore
import Testing

@testable import RoostServer

/// What a member gets who may watch a channel but not read it, and for how long.
@Suite("Watching without reading")
struct WatchRightTests {
    private static let operators = Readers(members: .moderator, others: .nobody, roles: [.operator])
    /// As `operators`, and guides may watch.
    private static let guides = Readers(
        members: .moderator, others: .nobody, roles: [.operator], watchRoles: ["guide", .operator])
    private let gus = ConnectionID(rawValue: 1)
    private var subscriptions = Subscriptions<String>()

    init() {
        subscriptions.add("gus", as: gus)
        let streams = UserStreams(user: 0, channels: ["general": 1], roles: ["general": "guide"])
        _ = deliver([.connected(gus, "gus", streams), .watching(gus, "gus", "general", at: 1)])
    }

    /// An event of the channel, with a message or without one.
    private func event(_ seq: Seq, _ readers: Readers, hasMessage: Bool = false) -> Notice {
        let message = Message(
            messageId: MessageID(rawValue: seq), channelId: "general", seq: seq, changeSeq: seq, sender: "ann", clientId: "c",
            text: "secret", createdAt: Timestamp(milliseconds: 0))
        let event = Event(
            kind: hasMessage ? .messageNew : .channelUpdated, stream: .channel("general"), seq: seq, actor: "ann",
            rows: hasMessage ? Rows([message]) : Rows())
        return .event(event, .channel("general", readers))
    }

    /// Delivers, and returns what gus gets, in words.
    private mutating func deliver(_ notices: [Notice]) -> [String] {
        var got: [String] = []
        for step in EventFrames.steps(for: [Committed(notices: notices, answer: .waiting {})]) {
            subscriptions.deliver(step) { action in
                switch action {
                case .send(let bytes, _, _): got.append(Self.words(for: bytes))
                case .signal(let frame, _): got.append(frame.key.kind.rawValue)
                default: break
                }
            }
        }
        return got
    }

    private static func words(for bytes: ByteBuffer) -> String {
        let text = String(buffer: bytes)
        if text.contains(#"{"unwatched":{"channel":"general"}}"#) { return "unwatched" }
        let mark = text.contains(#""watching":true"#) ? "live" : "notification"
        return text.contains("secret") ? "\(mark) message" : mark
    }

    /// The signals of a channel that reach gus.
    private mutating func signals(to audience: Audience) -> [String] {
        let kinds: [Signal.Kind] = [.typingChanged, .watchingChanged, .readUpdated, .presenceChanged, .usersChanged, .custom]
        return deliver(kinds.map { .signal(Signal(kind: $0, channel: "general"), audience) })
    }

    @Test("ST-05 I9 they continue to watch whatever the first event is, and get no messages")
    mutating func staysWatching() {
        // Others read and watch by the last event: everyone is checked again.
        let more = Readers(
            members: .moderator, others: .nobody, roles: [.operator, "reader"], watchRoles: ["guide", .operator, "usher"])
        let got = deliver([
            event(2, Self.guides, hasMessage: true), event(3, Self.guides), event(4, more, hasMessage: true),
        ])
        #expect(got == ["live", "live", "live"])
    }

    @Test("ST-05 I9 they get the signals that reveal nothing of messages, unless the right to watch has ended without an event")
    mutating func signals() {
        _ = deliver([event(2, Self.guides)])
        let others = Readers(members: .moderator, others: .moderator, roles: [.operator], watchRoles: ["guide", .operator])
        let sent = ["typing.changed", "watching.changed", "presence.changed", "users.changed"]
        for audience in [Audience.watchers("general", Self.guides), .channel("general", Self.guides), .watchers("general", others)]
        {
            let got = signals(to: audience)
            #expect(got == sent, "\(audience)")
        }
        let withoutRight = signals(to: .watchers("general", Self.operators))
        #expect(withoutRight == [])
        // Without a watch they are a member who may not read.
        _ = deliver([.stoppedWatching(gus, "gus", "general")])
        let withoutWatch = signals(to: .channel("general", Self.guides))
        #expect(withoutWatch == [])
    }

    @Test("ST-05 I9 the watch ends before the next event once they may no longer watch, by the rules or by another role")
    mutating func ends() {
        let byRules = deliver([event(2, Self.operators, hasMessage: true)])
        #expect(byRules == ["unwatched", "notification"])
        _ = deliver([.watching(gus, "gus", "general", at: 2), event(3, Self.guides)])
        let byRole = deliver([.role("gus", "general", .member, at: 4), event(5, Self.guides)])
        #expect(byRole == ["unwatched", "notification"])
    }

    @Test("ST-05 I9 a watch that begins after the event that ended the right gets no signals, and ends before the next event")
    mutating func beginsTooLate() {
        let late = deliver([
            .stoppedWatching(gus, "gus", "general"), event(2, Self.operators), .watching(gus, "gus", "general", at: 1),
        ])
        #expect(late == ["notification"])
        let sent = signals(to: .watchers("general", Self.operators))
        #expect(sent == [])
        let next = deliver([event(3, Self.operators)])
        #expect(next == ["unwatched", "notification"])
    }

    @Test("ST-05 I9 a watch allowed by rules newer than the last event outlasts another role that may watch too")
    mutating func newerRules() {
        let helpers = Readers(
            members: .moderator, others: .nobody, roles: [.operator], watchRoles: ["guide", "helper", .operator])
        _ = deliver([
            .stoppedWatching(gus, "gus", "general"), event(2, Self.operators), .watching(gus, "gus", "general", at: 2),
        ])
        let got = deliver([.role("gus", "general", "helper", at: 3), event(3, helpers)])
        #expect(got == ["live"])
    }

    @Test("ST-05 I10 a user who starts to watch and may read by now gets the signals of readers before the channel's next event")
    mutating func readsByNow() {
        let readers = Readers(members: .moderator, others: .nobody, roles: ["guide", .operator])
        _ = deliver([
            .stoppedWatching(gus, "gus", "general"), event(2, Self.operators), .mayRead(gus, "general"),
            .watching(gus, "gus", "general", at: 2),
        ])
        let sent = signals(to: .watchers("general", readers))
        #expect(sent.count == 6)
        // A signal with an audience of operators only still isn't for them.
        let others = signals(to: .watchers("general", Self.operators))
        #expect(others == [])
        let next = deliver([event(3, readers, hasMessage: true)])
        #expect(next == ["live message"])
    }

    @Test("ST-05 I9 another role is judged by its own event: its rights may have changed since the event before")
    mutating func newerRoles() {
        let helpers = Readers(
            members: .moderator, others: .nobody, roles: [.operator], watchRoles: ["guide", "helper", .operator])
        let gained = deliver([event(2, Self.guides), .role("gus", "general", "helper", at: 3), event(3, helpers)])
        #expect(gained == ["live", "live"])
        let lost = deliver([.role("gus", "general", "guide", at: 4), event(4, Self.operators, hasMessage: true)])
        #expect(lost == ["unwatched", "notification"])
    }

    /// Connects members of the channel who don't watch.
    private mutating func connectMembers(_ count: Int) {
        for number in 100..<100 + count {
            let connection = ConnectionID(rawValue: Int64(number))
            subscriptions.add("\(number)", as: connection)
            let streams = UserStreams(user: 0, channels: ["general": 1])
            _ = deliver([.connected(connection, UserID("user-\(number)"), streams)])
        }
    }

    @Test(
        "AM-45 I10 an event that ends the session of a user whose joining isn't known yet is concealed from all who may not read it"
    )
    mutating func endsSessionOfNonMember() {
        connectMembers(30)
        let wes = ConnectionID(rawValue: 2)
        subscriptions.add("wes", as: wes)
        _ = deliver([
            .connected(wes, "wes", UserStreams(user: 0)), .watching(wes, "wes", "general", at: 1),
            event(2, Readers(others: .user)), .reading(wes, "general", since: 2, at: 1),
        ])
        let got = deliver([event(3, Self.operators, hasMessage: true)])
        let session = subscriptions.readingSession(of: "general", wes)
        #expect(session == nil)
        #expect(got.filter { $0.hasSuffix("message") } == [])
    }

    @Test("ST-05 I9 an event that arrives late doesn't end a watch that began after it, by a right that the next event shows")
    mutating func olderEvent() {
        _ = deliver([.stoppedWatching(gus, "gus", "general"), event(10, Self.operators)])
        // Another node has stored 11 and 12, and gus may watch as of 12.
        let got = deliver([
            .watching(gus, "gus", "general", at: 12), event(11, Self.operators, hasMessage: true),
            event(12, Readers(others: .nobody), hasMessage: true),
        ])
        #expect(got == ["live", "live message"])
        let next = deliver([event(13, Self.operators)])
        #expect(next == ["unwatched", "notification"])
    }

    @Test("ST-05 I10 an event that is older than a member's watch, or session, is concealed from everyone who may not read it")
    mutating func olderEventAndOthers() {
        connectMembers(30)
        // An older session ends; the watch is newer than the event.
        let got = deliver([
            .reading(gus, "general", since: 1, at: 1, channelSeq: 10), .watching(gus, "gus", "general", at: 12),
            event(11, Self.operators, hasMessage: true),
        ])
        let session = subscriptions.readingSession(of: "general", gus)
        #expect(session == nil && got.filter { $0.hasSuffix("message") } == [])
        #expect(got.contains("live"))
    }

    @Test("ST-05 a user whose role may read and not watch gets the messages as a member who doesn't watch")
    mutating func readsWithoutWatching() {
        let readers = Readers(members: .moderator, others: .nobody, roles: ["guide"], watchRoles: [.operator])
        let got = deliver([event(2, readers, hasMessage: true)])
        #expect(got == ["unwatched", "notification message"])
    }
}
