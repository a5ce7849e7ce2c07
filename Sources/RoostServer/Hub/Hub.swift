import Metrics
import NIOCore
import RoostAPI
import RoostCore
import Synchronization

/// Brings committed events to the sockets of their audience, and replies to those who asked.
///
/// One shard for each event loop. A batch is encoded once, on the engine's thread, and handed to each loop in the order of the commits; so
/// every socket sees every stream in its order. What it doesn't do: it keeps nothing. Who isn't connected catches up by `changes`.
final class Hub: Sendable {
    let presence = PresenceBoard()
    private let loops: [any EventLoop]
    private let shards: [NIOLoopBound<HubShard>]
    private let lastConnection = Atomic<Int64>(0)

    /// How often sockets are looked at for pings and timeouts.
    private static let tickInterval = TimeAmount.seconds(1)

    init(group: any EventLoopGroup) async throws {
        let presence = presence
        var loops: [any EventLoop] = []
        var shards: [NIOLoopBound<HubShard>] = []
        for loop in group.makeIterator() {
            let number = loops.count
            loops.append(loop)
            shards.append(
                try await loop.submit {
                    NIOLoopBound(HubShard(number: number, eventLoop: loop, presence: presence), eventLoop: loop)
                }.get())
        }
        self.loops = loops
        self.shards = shards
        for (loop, shard) in zip(loops, shards) {
            loop.scheduleRepeatedTask(initialDelay: Self.tickInterval, delay: Self.tickInterval) { _ in
                shard.value.tick(.now())
            }
        }
    }

    /// A new address for a socket on an event loop.
    func address(on loop: any EventLoop) -> SocketAddress {
        let connection = lastConnection.add(1, ordering: .relaxed).newValue
        return SocketAddress(
            shard: loops.firstIndex { $0 === loop } ?? 0, connection: ConnectionID(rawValue: connection))
    }

    /// The shard of a socket. Only on the socket's event loop.
    func shard(of address: SocketAddress) -> HubShard { shards[address.shard].value }

    /// What an operation gives to be delivered.
    enum Output: Sendable {
        case notice(Notice)
        case reply(SocketAddress, [UInt8])
    }

    /// Delivers what a batch made, on every loop in the order of the calls of this function.
    ///
    /// A socket sees its own replies and the events of its user's stream in the order of the operations: so no reply brings back what an
    /// event has already changed.
    func publish(_ output: [Output]) {
        guard !output.isEmpty else { return }
        let steps = EventFrames.steps(for: output)
        for (loop, shard) in zip(loops, shards) { loop.execute { shard.value.deliver(steps) } }
    }

    /// Delivers the answer of an operation that only read.
    func reply(to address: SocketAddress, _ payload: [UInt8]) {
        let shard = shards[address.shard]
        loops[address.shard].execute { shard.value.deliver(payload, toReadOf: address.connection) }
    }

    /// Waits until the last socket is gone, which is when a draining server has nobody left to serve.
    func waitUntilEmpty(atMost time: Duration) async {
        let deadline = ContinuousClock.now + time
        while ContinuousClock.now < deadline, let counts = try? await counts(), counts.sockets > 0 {
            try? await Task.sleep(for: .milliseconds(20))
        }
    }

    /// Sockets and deliveries, over all shards.
    func counts() async throws -> (sockets: Int, deliveries: Int64) {
        var sockets = 0
        var deliveries: Int64 = 0
        for (loop, shard) in zip(loops, shards) {
            let (count, delivered) = try await loop.submit { (shard.value.socketCount, shard.value.deliveryCount) }.get()
            sockets += count
            deliveries += delivered
        }
        return (sockets, deliveries)
    }
}
