import NIOCore
import NIOEmbedded
import RoostAPI
import RoostCore
import Synchronization
import Testing

@testable import RoostServer

/// Which signals are sent immediately and which are queued. The clock is the test's.
@Suite struct SignalDeskTests {
    private static func signal(_ sender: UserID, _ type: String, _ number: Int64) -> Notice {
        let custom = CustomSignal(type: type, metadata: ["n": .integer(number)])
        return notice(Signal(kind: .custom, channel: "stage", sender: sender, custom: custom))
    }

    private static func notice(_ signal: Signal) -> Notice { .signal(signal, .watchers("stage")) }

    /// A new message of bob's.
    private static func message(_ kind: MessageKind) -> Notice {
        let message = Message(
            messageId: MessageID(rawValue: 2), channelId: "stage", seq: 2, changeSeq: 2, sender: "bob", clientId: "c", text: "hi",
            kind: kind, createdAt: Timestamp(milliseconds: 0))
        let event = Event(kind: .messageNew, stream: .channel("stage"), seq: 2, actor: "bob", rows: Rows([message]))
        return .event(event, .channel("stage"))
    }

    /// Returns the users of each typing signal that is sent if bob types and this notice follows at once.
    private static func typing(before notice: Notice) throws -> [[UserID]] {
        let loop = EmbeddedEventLoop()
        let sent = Mutex<[Signal]>([])
        let desk = SignalScheduler(
            presence: PresenceBoard(), on: loop, send: { signals, _ in sent.withLock { $0 += signals } }, findViewers: { _, _ in })
        desk.take([Notice.typing("bob", "stage")])
        desk.take([notice])
        withExtendedLifetime(desk) { loop.advanceTime(by: .milliseconds(100)) }
        try loop.syncShutdownGracefully()
        return sent.withLock { $0 }.compactMap { $0.typing?.users }
    }

    @Test("X-32 watchers who don't share that count for many: each of them gets the signals")
    func hidden() throws {
        let loop = EmbeddedEventLoop()
        let presence = PresenceBoard()
        let desk = SignalScheduler(presence: presence, on: loop, send: { _, _ in }, findViewers: { _, _ in })
        func isTaken(_ number: Int64) -> Bool { desk.takeCrowded([Self.signal("u\(number)", "cursor", number)]).now.isEmpty }
        // Each of them counts once, however many of their connections watch.
        for number in 0..<Limits.manyWatchers {
            for _ in 0..<2 { presence.startedWatching(UserID("u\(number)"), "stage", isShown: number < 60) }
        }
        #expect(!isTaken(1))
        presence.startedWatching("ann", "stage", isShown: false)
        #expect(presence.watcherCount(of: "stage") == 60 && isTaken(2))
        presence.stoppedWatching("ann", ["stage"], isShown: false)
        #expect(presence.hiddenWatcherCount(of: "stage") == 40 && !presence.isCrowded("stage", above: Limits.manyWatchers))
        try loop.syncShutdownGracefully()
    }

    @Test("SB-02 R26 X-33 a user who sends a message stops typing, and a system message about a user doesn't end their typing")
    func sent() throws {
        #expect(try Self.typing(before: Self.message(.text)) == [])
        #expect(try Self.typing(before: Self.message(.system)) == [["bob"]])
    }

    @Test("SB-02 R26 ST-08 a member who leaves stops typing at once, and other members don't")
    func left() throws {
        #expect(try Self.typing(before: .left("bob", "stage", at: 2)) == [])
        #expect(try Self.typing(before: .left("cid", "stage", at: 2)) == [["bob"]])
    }

    @Test("an app's own signals stay in their sender's order when watchers leave and few are left")
    func order() throws {
        let loop = EmbeddedEventLoop()
        let presence = PresenceBoard()
        let sent = Mutex<[Signal]>([])
        let desk = SignalScheduler(
            presence: presence, on: loop, send: { signals, _ in sent.withLock { $0 += signals } }, findViewers: { _, _ in })
        for number in 0...Limits.manyWatchers { presence.startedWatching(UserID("u\(number)"), "stage") }
        #expect(desk.takeCrowded([Self.signal("ann", "cursor", 1)]).now == [])
        presence.stoppedWatching("u0", ["stage"])
        // Ann's first signal is queued: her next ones must not overtake it. No other sender waits for that.
        let (now, taken) = desk.takeCrowded([
            Self.signal("ann", "cursor", 2), Self.signal("bob", "cursor", 1), Self.signal("ann", "click", 1),
        ])
        #expect(now == [Self.signal("bob", "cursor", 1)])
        #expect(taken == [Self.signal("ann", "cursor", 2), Self.signal("ann", "click", 1)])
        loop.advanceTime(by: .milliseconds(100))
        #expect(sent.withLock { $0 }.map(Self.notice) == taken)
        #expect(desk.takeCrowded([Self.signal("ann", "cursor", 3)]).now == [Self.signal("ann", "cursor", 3)])
        try loop.syncShutdownGracefully()
    }
}
