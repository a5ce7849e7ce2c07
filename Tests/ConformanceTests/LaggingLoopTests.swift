import Dispatch
import Logging
import NIOCore
import NIOPosix
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Synchronization
import Testing

@testable import RoostServer

/// An event loop that lags while others keep up.
@Suite("Lagging event loops")
struct LaggingLoopTests {
    @Test(
        "I18 a lane waits for an event loop with more than 32 MB left to deliver, and continues once it has caught up, or after a while"
    )
    func waits() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
        let hub = try await Hub(group: group)
        let isFree = DispatchSemaphore(value: 0)
        let loop = try #require(Array(group.makeIterator()).last)
        loop.execute { isFree.wait() }

        let answer = [UInt8](repeating: 32, count: 1 << 20)
        let socket = hub.nextSocketID(on: loop)
        for _ in 0..<31 { hub.deliver([.reply(socket, answer)]) }
        #expect(hub.waitForLoops(atMost: .zero))
        hub.deliver([.reply(socket, answer)])
        // The other loop has nothing to deliver; the wait times out.
        #expect(!hub.waitForLoops(atMost: .milliseconds(10)))
        isFree.signal()
        #expect(hub.waitForLoops(atMost: .seconds(60)))
        hub.deliver([.reply(socket, answer)])
        #expect(hub.waitForLoops(atMost: .seconds(60)))
        try await group.shutdownGracefully()
    }

    @Test("I18 events for many users count towards that backlog before they are written")
    func told() async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let hub = try await Hub(group: group)
        let isFree = DispatchSemaphore(value: 0)
        group.next().execute { isFree.wait() }
        // A loop that is behind gets everything, whether or not it has receivers.
        hub.deliver([.change(.accessChanged([]))])
        let message = Message(
            messageId: MessageID(rawValue: 1), channelId: "general", seq: 1, changeSeq: 1, sender: "bob", clientId: "a",
            text: String(repeating: "x", count: 400_000), createdAt: Timestamp(milliseconds: 0))
        for rows in [Rows(), Rows([message])] {
            let event = Event(kind: .memberJoined, stream: .user("ann"), seq: 1, actor: nil, rows: rows)
            hub.deliver((0..<100).map { .sendToUser(UserID(rawValue: "user\($0)"), event) })
            #expect(hub.waitForLoops(atMost: .milliseconds(10)) == rows.isEmptyOfFeatures)
        }
        isFree.signal()
        #expect(hub.waitForLoops(atMost: .seconds(60)))
        try await group.shutdownGracefully()
    }

    @Test("I18 an event for one user is encoded once, not a second time for a watching device")
    func toldOnce() {
        let json = [UInt8](repeating: 32, count: 1000)
        var frames = EventFrames()
        frames.add(json, of: .user("ann"), at: 1, oldestMessage: nil, to: .user("ann"))
        frames.add(json, of: .channel("general"), at: 1, oldestMessage: nil, to: .channel("general", Readers()))
        #expect(frames.steps.map { $0.sizeBytes / 1000 } == [1, 2])
    }

    @Test("I18 I13 a node takes no events while a loop has more than 32 MB left to deliver, and keeps sending heartbeats")
    func waitsWithEventsOfOtherNodes() async throws {
        let lagging = try await LaggingNode()
        try await lagging.fill()
        for seq in Seq(17)...20 { lagging.receive(seq) }
        let heartbeats = lagging.bus.heartbeatCount
        try await eventually("two heartbeats") { lagging.bus.heartbeatCount >= heartbeats + 2 }
        #expect(lagging.deliveredCount == 16)
        lagging.isFree.signal()
        try await eventually("all events") { lagging.deliveredCount == 20 }
        lagging.node.stop()
        try await lagging.end()
    }

    @Test("I18 a node that waits for a lagging loop can still be stopped")
    func stopsMeanwhile() async throws {
        let lagging = try await LaggingNode()
        try await lagging.fill()
        lagging.node.stop()
        #expect(lagging.deliveredCount == 16)
        try await lagging.end()
    }

    @Test("I9 once the bus is back it is settled, since streams opened just before didn't wait for their subscriptions")
    func settled() async throws {
        let lagging = try await LaggingNode()
        let before = lagging.bus.settleCount
        lagging.bus.comeBack()
        try await eventually("a settlement") { lagging.bus.settleCount == before + 1 }
        lagging.node.stop()
        try await lagging.end()
    }
}

/// A node of a cluster with a connection of `ann`. The last of its two event loops is blocked until it is freed.
private struct LaggingNode {
    let node: ClusterNode
    let bus: HandBus
    let isFree = DispatchSemaphore(value: 0)
    private let group: MultiThreadedEventLoopGroup
    private let database: any RoostDatabase.Database

    init() async throws {
        group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
        let hub = try await Hub(group: group)
        bus = HandBus()
        database = try SQLiteDatabase(directory: TemporaryPlace.make())
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        node = try ClusterNode(
            node: NodeID("here"), hub: hub, bus: bus, database: database, readiness: Readiness(), logger: logger)
        // The node follows her stream from here on.
        let isConnected = Mailbox<Bool>()
        let connected = Notice.connected(ConnectionID(rawValue: 1), "ann", UserStreams(user: 0))
        node.deliver([Committed(notices: [connected], answer: .waiting { isConnected.put(true) })])
        guard await isConnected.next() == true else { throw Missed("the connection's answer") }
        let isFree = isFree
        Array(group.makeIterator()).last?.execute { isFree.wait() }
        // A loop that is behind gets everything, whether or not it has receivers.
        hub.deliver([.change(.accessChanged([]))])
    }

    /// Has the node receive one event of ann's stream, which gives the loops two megabytes.
    func receive(_ seq: Seq) {
        let json = [UInt8](repeating: 32, count: 2 << 20)
        bus.bring([StreamItem(stream: .user("ann"), after: seq - 1, seq: seq, json: json)])
    }

    /// Has the node receive as many events as a lagging loop may have queued, one by one.
    func fill() async throws {
        for seq in Seq(1)...16 {
            receive(seq)
            try await eventually("event \(seq)") { deliveredCount == Double(seq) }
        }
    }

    /// How many events the node has passed to its loops.
    var deliveredCount: Double? {
        let sample = node.samples.first { $0.series.name == "roost_cluster_events_delivered_total" }
        guard case .counter(let count)? = sample?.value else { return nil }
        return count
    }

    /// Frees the loop, and closes the resources of the stopped node.
    func end() async throws {
        isFree.signal()
        try database.close()
        try await group.shutdownGracefully()
    }
}

/// A bus that delivers the packets a test gives it, and counts broadcasts to all nodes: heartbeats, if there are no watchers.
private final class HandBus: Bus {
    private struct State {
        var handler: (@Sendable (BusEvent) -> Void)?
        var heartbeatCount = 0
        var settleCount = 0
    }
    private let state = Mutex(State())

    var heartbeatCount: Int { state.withLock { $0.heartbeatCount } }
    var settleCount: Int { state.withLock { $0.settleCount } }

    func comeBack() { state.withLock { $0.handler }?(.reconnected) }

    func bring(_ items: [StreamItem]) {
        guard let handler = state.withLock({ $0.handler }) else { return }
        for packet in Packet.encode(items) { handler(.received(.stream(packet.stream), packet.bytes)) }
    }

    func start(_ handler: @escaping @Sendable (BusEvent) -> Void) { state.withLock { $0.handler = handler } }

    func publish(_ payload: [UInt8], to topic: BusTopic) {
        if topic == .nodes { state.withLock { $0.heartbeatCount += 1 } }
    }

    func subscribe(to topic: BusTopic) {}
    func unsubscribe(from topic: BusTopic) {}
    func settle() { state.withLock { $0.settleCount += 1 } }
    var isConnected: Bool { true }
    func stop() { state.withLock { $0.handler = nil } }
}
