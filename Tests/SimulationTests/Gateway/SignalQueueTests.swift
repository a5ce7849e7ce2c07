import NIOCore
import RoostAPI
import RoostCore
import Testing

@testable import RoostServer

/// The signals queued for a client that doesn't read.
@Suite("Waiting signals")
struct SignalQueueTests {
    @Test("a signal that replaces another for a client that doesn't read says that it isn't all, if it only has what is new")
    func lostSignals() throws {
        func users(_ version: Int64, isWhole: Bool = true) -> Signal {
            let user = UserSummary(userId: "bob", displayName: "Bob", version: version)
            return Signal(kind: .usersChanged, channel: "general", users: UsersChange(users: [user], isWhole: isWhole))
        }
        func watching(_ user: UserID, isWhole: Bool = true) -> Signal {
            let change = WatcherChange(watcherCount: 1, started: [user], stopped: [], isWhole: isWhole)
            return Signal(kind: .watchingChanged, channel: "general", watching: change)
        }
        var queue = SignalQueue()
        queue.put(SignalFrame(users(1)))
        queue.put(SignalFrame(watching("ann")))
        queue.put(SignalFrame(users(2)))
        #expect(queue.takeAll() == [SignalFrame(watching("ann")).bytes, SignalFrame(users(2, isWhole: false)).bytes])
        queue.put(SignalFrame(users(3)))
        #expect(queue.takeAll() == [SignalFrame(users(3)).bytes])
        // A signal that is dropped to make room leaves a marker for clients that have to ask.
        let half = String(repeating: "x", count: SignalQueue.sizeBytesMax / 2)
        func custom(_ type: String) -> Signal {
            Signal(kind: .custom, channel: "general", sender: "bob", custom: CustomSignal(type: type, metadata: .string(half)))
        }
        queue.put(SignalFrame(users(4)))
        for type in ["a", "b"] { queue.put(SignalFrame(custom(type))) }
        let rest = Signal(kind: .usersChanged, channel: "general", users: UsersChange(users: [], isWhole: false))
        #expect(queue.takeAll() == [SignalFrame(rest).bytes, SignalFrame(custom("b")).bytes])
        // The same holds for several delivered at once.
        var frames = EventFrames()
        frames.add(watching("ann"), to: .watchers("general"))
        frames.add(watching("bob"), to: .watchers("general"))
        let sent = frames.steps.map { if case .signal(let frame, _) = $0 { frame.bytes } else { ByteBuffer() } }
        #expect(sent == [SignalFrame(watching("bob", isWhole: false)).bytes])
    }

    private static func presence(of channel: Int) -> Signal {
        let change = PresenceChange(onlineCount: 1, online: ["bob"], offline: [], isWhole: true)
        return Signal(kind: .presenceChanged, channel: ChannelID("channel-\(channel)"), presence: change)
    }

    @Test("§4 with more channels than signals may wait, a client that doesn't read is notified of each that it has to ask about")
    func manyChannels() {
        let count = 4 * SignalQueue.countMax
        var queue = SignalQueue()
        for channel in 0..<count { queue.put(SignalFrame(Self.presence(of: channel))) }
        let sent = queue.takeAll().map { String(buffer: $0) }
        #expect(sent.count == count)
        let isAsked = sent.map { $0.contains(#""isWhole":false"#) }
        let left = Array(repeating: true, count: count - SignalQueue.countMax)
        #expect(isAsked == left + Array(repeating: false, count: SignalQueue.countMax))
        for (channel, text) in sent.enumerated() { #expect(text.contains(#""channel":"channel-\#(channel)""#)) }
    }

    @Test("if a client can no longer be notified of its losses, its connection is to end, and nothing more is queued")
    func overfull() {
        var queue = SignalQueue()
        var channel = 0
        while !queue.isOverfull, channel < 10_000 {
            queue.put(SignalFrame(Self.presence(of: channel)))
            #expect(queue.sizeBytes <= SignalQueue.lossMarkersSizeBytesMax)
            channel += 1
        }
        #expect(queue.isOverfull && queue.isEmpty && queue.sizeBytes == 0)
        queue.put(SignalFrame(Self.presence(of: 0)))
        #expect(queue.isEmpty)
    }
}
