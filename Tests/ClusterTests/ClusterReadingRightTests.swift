#if Cluster
import Foundation
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

extension RealClusterTests {
    /// A right to read that ends through one node ends on the others, at the same place in the channel's order.
    @Suite struct ClusterReadingRightTests {
        private static let room: ChannelID = "room"

        /// How the right is taken from `bob`, an operator, and from `eve`, who watches.
        enum Way: String, CaseIterable, CustomTestStringConvertible {
            case policy, type, role
            var testDescription: String { rawValue }
        }

        @Test(
            "I3 I9 I10 R23 members who lost the right to read get positions on every node, others nothing, with the bus and without",
            arguments: Way.allCases)
        func ends(way: Way) async throws {
            try await TestCluster.run(2) { cluster in
                let root = try await cluster.servers[0].socket("root", role: .admin)
                for user in ["bob", "eve"] as [UserID] { try await root.call(UpsertUser(user: user)) }
                try await root.call(PutRole(role: "reader", rank: 1, permissions: [.historyRead]))
                try await root.call(PutChannelType(type: "show", basedOn: .livestream))
                let ann = try await cluster.socket("ann", at: 0)
                try await ann.call(CreateChannel(channel: Self.room, type: "show", users: ["bob"]))
                if way == .role {
                    try await root.call(SetMemberRole(channel: Self.room, users: ["bob"], role: "reader"))
                    try await Self.setPolicy(PolicyChanges(read: .operators), by: root)
                }
                let bob = try await cluster.socket("bob", at: 1)
                let eve = try await cluster.socket("eve", at: 1)
                if way != .role { try await eve.call(WatchChannel(channel: Self.room)) }
                let open = try await ann.send(Self.room, "open")
                #expect(try await bob.messages(1, of: Self.room) == [open])
                if way != .role { #expect(try await eve.messages(1, of: Self.room) == [open]) }

                try await Self.end(way, by: root)
                let closed = try await ann.send(Self.room, "closed")
                try await Self.expectPosition(closed.seq, at: bob)
                // A socket that connects, and one that begins while the bus is down, know it too.
                let tablet = try await cluster.socket("bob", at: 1)
                await cluster.nats.killNow()
                let lonely = try await ann.send(Self.room, "closed too")
                for socket in [bob, tablet] { try await Self.expectPosition(lonely.seq, at: socket) }
                // Any such event would have arrived by now: the node has delivered the position.
                #expect(try await eve.eventsSoFar().isEmpty)
                try await cluster.nats.startAgain()
            }
        }

        @Test(
            "ST-05 R17 a definition that removes the right to read ends watches on other nodes, without an event in the channel")
        func definition() async throws {
            try await TestCluster.run(2) { cluster in
                try await cluster.waitUntilAcquainted()
                let root = try await cluster.servers[0].socket("root", role: .admin)
                try await root.call(PutChannelType(type: "show", basedOn: .livestream))
                let ann = try await cluster.socket("ann", at: 0)
                try await ann.call(CreateChannel(channel: Self.room, type: "show"))
                let eve = try await cluster.socket("eve", at: 1)
                try await eve.call(WatchChannel(channel: Self.room))
                try await ann.call(WatchChannel(channel: Self.room))
                try await eventually("two watchers") {
                    try await ann.call(ListWatchers(channel: Self.room)).watchers.count == 2
                }
                let seq = try await Self.seq(by: ann)
                try await Self.end(.type, by: root)
                try await Self.waitForOneWatcher(by: ann)
                #expect(try await Self.seq(by: ann) == seq)
            }
        }

        @Test("ST-05 R17 a definition in the file of a starting node ends watches on the running nodes")
        func definitionAtStart() async throws {
            let directory = TemporaryDirectory.make()
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            let file = directory.appending(path: "types.json")
            try Data(#"{"types":[{"type":"show","basedOn":"livestream","policy":{"read":"owners"}}]}"#.utf8).write(to: file)
            try await TestCluster.run(1) { cluster in
                let root = try await cluster.socket("root", role: .admin, at: 0)
                try await root.call(PutChannelType(type: "show", basedOn: .livestream))
                let ann = try await Self.watchWithEve(at: 0, of: cluster)
                let seq = try await Self.seq(by: ann)
                let second = try await TestServer(directory: cluster.directory) {
                    $0.database = cluster.database
                    $0.bus = cluster.nats.url
                    $0.channelTypes = file
                }
                let hasEnded: Void? = try? await Self.waitForOneWatcher(by: ann)
                #expect(hasEnded != nil)
                #expect(try await Self.seq(by: ann) == seq)
                try await second.stop()
            }
            try? FileManager.default.removeItem(at: directory)
        }

        @Test("ST-05 R17 a definition that a node misses while the bus is down ends watches there once the bus is back")
        func definitionWithoutBus() async throws {
            try await TestCluster.run(2) { cluster in
                try await cluster.waitUntilAcquainted()
                let root = try await cluster.socket("root", role: .admin, at: 0)
                try await root.call(PutChannelType(type: "show", basedOn: .livestream))
                let ann = try await Self.watchWithEve(at: 1, of: cluster)
                await cluster.nats.killNow()
                for server in cluster.servers {
                    try await eventually("the bus is away") { try await server.metric("roost_cluster_bus_connected") == 0 }
                }
                try await Self.end(.type, by: root)
                try await cluster.nats.startAgain()
                try await Self.waitForOneWatcher(by: ann)
            }
        }

        @Test(
            "ST-05 R17 a definition changed through a node without its bus ends watches on other nodes once the bus is back"
        )
        func definitionByLonelyNode() async throws {
            try await TestCluster.run(1) { cluster in
                let proxy = try await TCPProxy.start(targets: [cluster.nats.port])
                let second = try await TestServer(directory: cluster.directory) {
                    $0.database = cluster.database
                    $0.bus = "nats://127.0.0.1:\(proxy.port)"
                }
                let root = try await second.socket("root", role: .admin)
                try await root.call(PutChannelType(type: "show", basedOn: .livestream))
                let ann = try await Self.watchWithEve(at: 0, of: cluster)
                proxy.setMode(.refuse)
                proxy.cutAll()
                try await eventually("the bus is away") { try await second.metric("roost_cluster_bus_connected") == 0 }
                try await Self.end(.type, by: root)
                proxy.setMode(.pass)
                let hasEnded: Void? = try? await Self.waitForOneWatcher(by: ann)
                #expect(hasEnded != nil)
                await root.close()
                try await second.stop()
                await proxy.stop()
            }
        }

        /// Makes `ann` watch her own channel at a node, and `eve` too. Returns ann's socket.
        private static func watchWithEve(at place: Int, of cluster: TestCluster) async throws -> RawSocket {
            let ann = try await cluster.socket("ann", at: place)
            try await ann.call(CreateChannel(channel: room, type: "show"))
            let eve = try await cluster.socket("eve", at: place)
            for socket in [eve, ann] { try await socket.call(WatchChannel(channel: room)) }
            try await eventually("two watchers") { try await ann.call(ListWatchers(channel: room)).watchers.count == 2 }
            return ann
        }

        private static func waitForOneWatcher(by ann: RawSocket) async throws {
            try await eventually("one watcher") { try await ann.call(ListWatchers(channel: room)).watchers.count == 1 }
        }

        private static func seq(by ann: RawSocket) async throws -> Seq {
            try await ann.call(GetChannel(channel: room)).channel.counters.seq
        }

        private static func end(_ way: Way, by root: RawSocket) async throws {
            switch way {
            case .policy: try await setPolicy(PolicyChanges(read: .owners), by: root)
            case .type:
                let changes = PolicyChanges(read: .owners)
                try await root.call(PutChannelType(type: "show", basedOn: .livestream, policy: changes))
            case .role: try await root.call(SetMemberRole(channel: room, users: ["bob"], role: .member))
            }
        }

        private static func setPolicy(_ changes: PolicyChanges, by root: RawSocket) async throws {
            var update = UpdateChannel(channel: room)
            update.policy = changes
            try await root.call(update)
        }

        /// Takes events up to a position of the channel, none of which may hold a message.
        private static func expectPosition(_ seq: Seq, at socket: RawSocket) async throws {
            while true {
                let event = try await socket.event(of: .channel(room))
                #expect(event.rows.messages == nil || event.rows.messages == [])
                if event.seq >= seq { return }
            }
        }
    }
}
#endif
