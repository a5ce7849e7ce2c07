public import RoostAPI
import RoostCore
import Synchronization

/// A channel whose users all have as much under way as they can, all the time, next to a user in another channel.
public final class HotChannel: Sendable {
    /// How many of the hot channel's messages were acknowledged while one message was under way: the median of many.
    public struct Waits: Sendable {
        /// A message of a user in another channel, who sends one after another.
        public let quiet: Int
        /// A message of the hot channel's own, after all that its user has under way.
        public let hot: Int
    }

    /// The most acknowledgements during a message in a quiet channel: of batches of 512, the running one, the full one before, its own,
    /// and one until the test notices. After everything under way it would be 4096.
    public static let bound = 4 * 512

    /// Together several times the engine's batch size, which is 512.
    private static let (users, window) = (64, 64)
    private static let channel: ChannelID = "hot"
    private let acknowledged = Atomic(0)
    private let isOver = Atomic(false)
    private let ownWaits = Mutex<[Int]>([])

    private init() {}

    /// Makes the hot channel and quiet ones, and sends in all of them.
    ///
    /// - Parameter quiet: The other channels, used in turn.
    public static func waits(on server: TestServer, quiet: [ChannelID]) async throws -> Waits {
        let users = (1...users).map { UserID("hot-\($0)") }
        let admin = try await server.socket("admin", role: .admin)
        for user in users { try await admin.call(UpsertUser(user: user)) }
        try await admin.call(CreateChannel(channel: channel, users: users))
        let quinn = try await server.socket("quinn")
        for channel in quiet { try await quinn.call(CreateChannel(channel: channel)) }
        let hot = HotChannel()
        return try await withThrowingTaskGroup { group in
            for user in users {
                for place in 1...window { group.addTask { try await hot.send(as: user, place, on: server) } }
            }
            let waits = try await hot.measure(quiet, on: server)
            try await group.waitForAll()
            await quinn.close()
            await admin.close()
            return waits
        }
    }

    /// Sends one message after another for one slot of a user's window.
    private func send(as user: UserID, _ place: Int, on server: TestServer) async throws {
        var number = 0
        while !isOver.load(ordering: .relaxed) {
            number += 1
            let before = acknowledged.load(ordering: .relaxed)
            let message = SendMessage(channel: Self.channel, clientId: ClientID("\(user)-\(place)-\(number)"), text: "hot")
            do {
                try await server.perform(message, as: user)
            } catch {
                isOver.store(true, ordering: .relaxed)
                throw error
            }
            let after = acknowledged.add(1, ordering: .relaxed).oldValue
            ownWaits.withLock { $0.append(after - before) }
        }
    }

    private func measure(_ quiet: [ChannelID], on server: TestServer) async throws -> Waits {
        defer { isOver.store(true, ordering: .relaxed) }
        // Every user's window is full, and has been for a while.
        try await eventually("the hot channel to be hot") {
            acknowledged.load(ordering: .relaxed) > 2 * Self.users * Self.window || isOver.load(ordering: .relaxed)
        }
        ownWaits.withLock { $0 = [] }
        var waits: [Int] = []
        for number in 1...15 {
            let message = SendMessage(
                channel: quiet[number % quiet.count], clientId: ClientID("quiet-\(number)"), text: "quiet")
            let before = acknowledged.load(ordering: .relaxed)
            // Past the network, like the hot channel's: on a busy machine this would measure the threads of sockets, and not the engine.
            try await server.perform(message, as: "quinn")
            waits.append(acknowledged.load(ordering: .relaxed) - before)
        }
        let enough = acknowledged.load(ordering: .relaxed) + Self.users * Self.window
        try await eventually("the hot channel to go on") {
            acknowledged.load(ordering: .relaxed) > enough || isOver.load(ordering: .relaxed)
        }
        return Waits(quiet: Self.median(waits), hot: Self.median(ownWaits.withLock { $0 }))
    }

    private static func median(_ values: [Int]) -> Int { values.isEmpty ? 0 : values.sorted()[values.count / 2] }
}
