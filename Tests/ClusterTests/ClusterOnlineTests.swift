#if Cluster
import RoostAPI
import RoostTestSupport
import Testing

extension RealClusterTests {
    /// Online users and watchers, over all nodes.
    @Suite struct ClusterOnlineTests {
        private static let general: ChannelID = "general"

        /// The presence that a watcher sees.
        private struct Seen: Equatable {
            var online: Int
            var watcherCount: Int
            var watchers: Set<String>

            init(_ online: Int, _ watchers: Set<String>) {
                self.online = online
                watcherCount = watchers.count
                self.watchers = watchers
            }

            init(by socket: RawSocket) async throws {
                let watched = try await socket.call(WatchChannel(channel: ClusterOnlineTests.general))
                online = watched.online
                watcherCount = watched.watcherCount
                watchers = Set(watched.watchers.keys)
            }
        }

        @Test("I13 a watcher sees the online users and the watchers of all nodes")
        func seesAllNodes() async throws {
            try await TestCluster.run(3) { cluster in
                try await cluster.waitUntilAcquainted()
                try await cluster.makeChannel(Self.general, owner: "ann", members: ["bob", "cat", "dan"])
                let ann = try await cluster.socket("ann", at: 0)
                let bob = try await cluster.socket("bob", at: 1)
                let cat = try await cluster.socket("cat", at: 2)
                #expect(try await Seen(by: bob).watchers == ["bob"])
                #expect(try await Seen(by: ann) == Seen(3, ["ann", "bob"]))
                // A user who is connected to two nodes counts once.
                let second = try await cluster.socket("bob", at: 2)
                try await second.call(WatchChannel(channel: Self.general))
                #expect(try await Seen(by: ann) == Seen(3, ["ann", "bob"]))

                try await cat.call(WatchChannel(channel: Self.general))
                try await eventually("ann sees that cat watches") { try await Seen(by: ann) == Seen(3, ["ann", "bob", "cat"]) }
                try await bob.call(UnwatchChannel(channel: Self.general))
                // Formerly a closed connection was noticed only by the next ping, 25 seconds later.
                await second.close()
                try await eventually("ann sees that bob doesn't", within: .seconds(15)) {
                    try await Seen(by: ann) == Seen(3, ["ann", "cat"])
                }
                await cat.close()
                try await eventually("ann sees that cat is gone", within: .seconds(15)) {
                    try await Seen(by: ann) == Seen(2, ["ann"])
                }
            }
        }

        @Test("SB-64 D-38 X-37 a node asks another which users are connected there, and that one stores when they last were")
        func anyUsers() async throws {
            try await TestCluster.run(3) { cluster in
                try await cluster.waitUntilAcquainted()
                let ann = try await cluster.socket("ann", at: 0)
                let (bob, cat) = (try await cluster.socket("bob", at: 1), try await cluster.socket("cat", at: 2))
                func seen(by socket: RawSocket) async throws -> [UserPresence] {
                    try await socket.call(ListUserPresence(users: ["bob", "cat"])).users
                }
                let both = ["bob", "cat"].map { UserPresence(userId: $0, isOnline: true) }
                for socket in [ann, bob, cat] { #expect(try await seen(by: socket) == both) }
                await cat.close()
                try await eventually("everybody sees when cat was there last") {
                    // If the rate limit refuses a call, it is repeated.
                    var all = (try? await seen(by: ann)) ?? []
                    all += (try? await seen(by: bob)) ?? []
                    return all.filter { $0.userId == "cat" && !$0.isOnline && $0.lastActiveAt != nil }.count == 2
                }
            }
        }

        @Test("I13 while the bus is down a node counts only its own users, and all of them soon after the bus is back")
        func busReturns() async throws {
            try await TestCluster.run(2) { cluster in
                try await cluster.waitUntilAcquainted()
                try await cluster.makeChannel(Self.general, owner: "ann", members: ["bob"])
                let (ann, bob) = (try await cluster.socket("ann", at: 0), try await cluster.socket("bob", at: 1))
                try await bob.call(WatchChannel(channel: Self.general))
                try await eventually("ann sees bob") { try await Seen(by: ann) == Seen(2, ["ann", "bob"]) }
                await cluster.nats.killNow()
                try await eventually("ann sees herself only") { try await Seen(by: ann) == Seen(1, ["ann"]) }
                try await cluster.nats.startAgain()
                for server in cluster.servers {
                    try await eventually("the bus is there") { try await server.metric("roost_cluster_bus_connected") == 1 }
                }
                let back = ContinuousClock.now
                try await eventually("ann sees bob again") { try await Seen(by: ann) == Seen(2, ["ann", "bob"]) }
                print("Cluster presence: users of another node online \(ContinuousClock.now - back) after the bus is back.")
            }
        }

        @Test("I13 the users of a node that is stopped go offline")
        func stoppedNode() async throws {
            try await TestCluster.run(2) { cluster in
                try await cluster.waitUntilAcquainted()
                try await cluster.makeChannel(Self.general, owner: "ann", members: ["bob"])
                let ann = try await cluster.socket("ann", at: 0)
                let bob = try await cluster.socket("bob", at: 1)
                try await bob.call(WatchChannel(channel: Self.general))
                #expect(try await Seen(by: ann) == Seen(2, ["ann", "bob"]))
                let started = ContinuousClock.now
                await cluster.servers[1].beginStop()
                try await eventually("bob is offline") { try await Seen(by: ann) == Seen(1, ["ann"]) }
                print("Cluster presence: users of a stopped node offline after \(ContinuousClock.now - started).")
            }
        }

        @Test("I13 the users of a killed node go offline")
        func killedNode() async throws {
            let nats = try await NATSServer.start()
            let nodes = try await NodeProcesses.start(2, on: .shared, nats)
            do {
                let bob = try await nodes.socket("bob", at: 1)
                let ann = try await nodes.socket("ann", at: 0)
                try await ann.call(CreateChannel(channel: Self.general, users: ["bob"]))
                try await bob.call(WatchChannel(channel: Self.general))
                try await eventually("ann sees bob watch") { try await Seen(by: ann) == Seen(2, ["ann", "bob"]) }
                let killed = ContinuousClock.now
                try await nodes.killNode(1)
                try await eventually("bob is offline") { try await Seen(by: ann) == Seen(1, ["ann"]) }
                print("Cluster presence: users of a killed node offline after \(ContinuousClock.now - killed).")
                await bob.close()
            } catch {
                Issue.record(error)
            }
            await nodes.end()
            await nats.stop()
        }
    }
}
#endif
