import Metrics
import NIOCore
import RoostAPI
import RoostCore
import RoostDatabase
import Synchronization

/// Delivers committed events to the sockets of their audience, and replies to their callers.
///
/// It has one shard for each event loop. A batch is encoded once, on the engine's thread, and handed to the loops that may have receivers, in
/// the order of the commits, so every socket sees every stream in order. The hub stores nothing: offline clients catch up by `changes`.
final class Hub: Delivery {
    let board = PresenceBoard()
    /// An event loop for scheduled work.
    var anyLoop: any EventLoop { loops[0] }
    var presence: any Presence & Sendable { board }
    private let loops: [any EventLoop]
    private let shards: [NIOLoopBound<HubShard>]
    /// For each loop, how many deliveries it has been handed and not finished.
    private let backlogs: [Backlog]
    /// For each loop, the streams that its sockets are receivers of.
    private let interests: [StreamInterest]
    /// The bytes of deliveries that not all of their loops have finished.
    private let undelivered = ByteLedger(sizeBytesMax: 32 << 20)
    /// Held while a delivery is handed to the loops; none begins it before all have it.
    private let handing = Mutex(())
    private let lastConnection = Atomic<Int64>(0)

    /// How often sockets are checked for pings and timeouts.
    private static let tickInterval = TimeAmount.seconds(1)

    /// Returns how many channels all connections of one user to one event loop may get together, if a user may be in this many.
    static func receivedMax(channelsPerUser: Int) -> Int {
        Limits.connectionsWithAllChannels * max(Limits.watchedChannels, channelsPerUser)
    }

    /// - Parameter receivedMax: How many channels all connections of one user to one event loop may get together.
    init(
        group: any EventLoopGroup, receivedMax: Int = Hub.receivedMax(channelsPerUser: AppOptions().channelsPerUser)
    ) async throws {
        let presence = board
        var loops: [any EventLoop] = []
        var shards: [NIOLoopBound<HubShard>] = []
        var interests: [StreamInterest] = []
        for loop in group.makeIterator() {
            let number = loops.count
            loops.append(loop)
            let interest = StreamInterest()
            interests.append(interest)
            shards.append(
                try await loop.submit {
                    let shard = HubShard(
                        number: number, eventLoop: loop, presence: presence, receivedMax: receivedMax, interest: interest)
                    return NIOLoopBound(shard, eventLoop: loop)
                }.get())
        }
        self.loops = loops
        self.shards = shards
        backlogs = loops.map { _ in Backlog() }
        self.interests = interests
        for (loop, shard) in zip(loops, shards) {
            loop.scheduleRepeatedTask(initialDelay: Self.tickInterval, delay: Self.tickInterval) { _ in
                shard.value.tick(.now())
            }
        }
    }

    /// Returns the id of a new socket on an event loop.
    func nextSocketID(on loop: any EventLoop) -> SocketID {
        let connection = lastConnection.add(1, ordering: .relaxed).newValue
        return SocketID(
            shard: loops.firstIndex { $0 === loop } ?? 0, connection: ConnectionID(rawValue: connection))
    }

    /// The shard of a socket. Only on the socket's event loop.
    func shard(of socket: SocketID) -> HubShard { shards[socket.shard].value }

    /// Delivers a batch if there is a single lane, whose order of commits is the order of everything.
    ///
    /// A socket sees its own replies and the events of its user's stream in the order of the operations, so no reply restores a state that
    /// an event has already changed.
    func deliver(_ committed: [Committed]) {
        deliver(EventFrames.steps(for: committed))
        for operation in committed { if case .waiting(let resume) = operation.answer { resume() } }
    }

    /// Hands steps to every loop that may have receivers of them, in the order of the calls of this function.
    ///
    /// A loop that hasn't finished everything handed to it gets them in any case: a step that it has still to take can make one of its sockets a
    /// receiver.
    ///
    /// A client that has seen a reply or an event can immediately make a call over another socket. Its answer comes after the same delivery
    /// there, because no loop begins a delivery before all have it. Otherwise, if the thread is interrupted between two loops, the answer
    /// could overtake the delivery.
    func deliver(_ steps: [EventFrames.Step]) {
        guard !steps.isEmpty else { return }
        let held = HeldBytes(steps.reduce(0) { $0 + $1.sizeBytes }, in: [undelivered])
        handing.withLock { _ in
            for (number, loop) in loops.enumerated() {
                let (shard, backlog) = (shards[number], backlogs[number])
                guard
                    backlog.count.load(ordering: .acquiring) > 0 || interests[number].mayConcern(steps, shard: number)
                else { continue }
                backlog.count.add(1, ordering: .relaxed)
                loop.execute { [self] in
                    handing.withLock { _ in }
                    withExtendedLifetime(held) { shard.value.deliver(steps) }
                    backlog.count.subtract(1, ordering: .releasing)
                }
            }
        }
    }

    func waitForLoops(atMost time: Duration) -> Bool {
        guard undelivered.isFull else { return true }
        let done = MonotonicSemaphore()
        waitForBacklogs { done.signal() }
        return done.wait(atMost: time)
    }

    func send(_ notices: [Notice]) {
        var frames = EventFrames()
        for case .signal(let signal, let audience) in notices { frames.add(signal, to: audience) }
        deliver(frames.steps)
    }

    /// There is no other node.
    func publish(_ notices: [Notice]) {}

    /// There is no other node.
    func onRemoteNotices(_ take: @escaping @Sendable ([Notice]) -> Void) {}

    func onWatching(_ report: @escaping @Sendable (UserID?, ChannelID) -> Void) { board.onWatching { report($0, $1) } }

    func onOnline(_ report: @escaping @Sendable (UserID?, ChannelID) -> Void) {
        board.onOnline { report($0, $1) }
        board.onAnswer { [weak board = board] count, channel in
            if board?.onlineMemberCount(of: channel) != count { report(nil, channel) }
        }
    }

    func onConnection(_ report: @escaping @Sendable (_ user: UserID, _ isConnected: Bool) -> Void) { board.onConnection(report) }

    /// There is no other node.
    func prepareConnected(_ users: [UserID], then run: @escaping @Sendable (_ elsewhere: Set<UserID>) -> Void) -> Bool {
        waitForBacklogs { run([]) }
        return true
    }

    /// There is no other node.
    func prepareWatchers(of channel: ChannelID, upTo count: Int, then run: @escaping @Sendable ([UserID]?) -> Void) -> Bool {
        run(nil)
        return true
    }

    /// Waits for every loop that has yet to deliver what others have already seen: users who became members in that delivery aren't on the board yet.
    func preparePresence(of channel: ChannelID, then run: @escaping @Sendable () -> Void) { waitForBacklogs(then: run) }

    private func waitForBacklogs(then run: @escaping @Sendable () -> Void) {
        let behind = zip(loops, backlogs).filter { $1.count.load(ordering: .acquiring) > 0 }.map(\.0)
        guard let first = behind.first else { return run() }
        // A loop runs its tasks in order, so an empty one runs after every delivery handed over before.
        EventLoopFuture.andAllComplete(behind.map { $0.submit {} }, on: first).whenComplete { _ in run() }
    }

    /// Finds the streams that no socket of any shard still needs.
    func findUnused(among streams: [StreamID], then report: @escaping @Sendable ([StreamID]) -> Void) {
        guard let first = loops.first else { return }
        let asked = zip(loops, shards).map { loop, shard in loop.submit { shard.value.used(among: streams) } }
        EventLoopFuture.whenAllSucceed(asked, on: first).whenSuccess { used in
            let used = Set(used.joined())
            report(streams.filter { !used.contains($0) })
        }
    }

    /// Finds the channels watched or read on a socket of this node.
    func findFollowed(then report: @escaping @Sendable (Set<ChannelID>) -> Void) {
        guard let first = loops.first else { return }
        let asked = zip(loops, shards).map { loop, shard in loop.submit { shard.value.followed } }
        EventLoopFuture.whenAllSucceed(asked, on: first).whenSuccess { report(Set($0.joined())) }
    }

    /// Makes every shard report when its last socket of a stream is gone. Set once, before the first socket.
    func onEmptied(_ emptied: @escaping @Sendable (StreamID) -> Void) {
        for (loop, shard) in zip(loops, shards) { loop.execute { shard.value.emptied = emptied } }
    }

    /// Delivers the answer of a read-only operation.
    ///
    /// - Parameters:
    ///   - memory: Where the answer is counted until the socket has it.
    ///   - callerMemory: Where it is counted as well.
    func reply(to socket: SocketID, _ payload: [UInt8], countedIn memory: ByteLedger?, _ callerMemory: ByteLedger?) {
        let shard = shards[socket.shard]
        loops[socket.shard].execute {
            shard.value.deliver(payload, toReadOf: socket.connection)
            memory?.add(-payload.count)
            callerMemory?.add(-payload.count)
        }
    }

    private final class Backlog: Sendable {
        let count = Atomic<Int>(0)
    }

    /// The sums of the shards' counts.
    struct Counts: Sendable {
        var sockets = 0
        var authenticated = 0
        var deliveries: Int64 = 0
        var sentBytes: Int64 = 0
        var writes: Int64 = 0
    }

    func counts() async throws -> Counts {
        var counts = Counts()
        for (loop, shard) in zip(loops, shards) {
            let own = try await loop.submit {
                let shard = shard.value
                return Counts(
                    sockets: shard.socketCount, authenticated: shard.authenticatedCount, deliveries: shard.deliveryCount,
                    sentBytes: shard.sentByteCount, writes: shard.writeCount)
            }.get()
            counts.sockets += own.sockets
            counts.authenticated += own.authenticated
            counts.deliveries += own.deliveries
            counts.sentBytes += own.sentBytes
            counts.writes += own.writes
        }
        return counts
    }
}
