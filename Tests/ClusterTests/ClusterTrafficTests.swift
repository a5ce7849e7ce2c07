#if Cluster
import Foundation
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

@testable import RoostServer

extension RealClusterTests {
    /// Traffic on the bus: as much as the nodes need, however many sockets they have.
    @Suite struct ClusterTrafficTests {
        private static let general: ChannelID = "general"

        @Test("I3 a message goes over the bus once for each node with a subscriber, not for each socket, and not to other nodes")
        func oneForEachNode() async throws {
            try await TestCluster.run(3) { cluster in
                try await cluster.waitUntilAcquainted()
                let users = (1...20).map { UserID("user-\($0)") }
                try await cluster.makeChannel(Self.general, owner: "ann", members: users)
                let ann = try await cluster.socket("ann", at: 0)
                var sockets: [RawSocket] = []
                for user in users { sockets.append(try await cluster.socket(user, at: 1)) }
                let before = try await cluster.nats.messageCounts()
                let sent = 50
                for number in 1...sent { try await ann.send(Self.general, "\(number)") }
                for socket in sockets { _ = try await socket.messages(sent, of: Self.general) }
                // The other packets were heartbeats, each of which goes to both other nodes.
                var counts = (in: 0, out: 0)
                try await eventually("one for each message, and not \(counts)") {
                    let now = try await cluster.nats.messageCounts()
                    counts = (now.received - before.received, now.sent - before.sent)
                    return counts.out - 2 * (counts.in - sent) == sent
                }
                print(
                    "Cluster traffic: \(sent) messages to 20 sockets of one other node: \(counts.in) in and \(counts.out) out with heartbeats."
                )
            }
        }

        @Test("I3 each time that a node says it has its bus again, the others compare all their streams with the database")
        func returnedNode() async throws {
            try await TestCluster.run(1) { cluster in
                try await cluster.makeChannel(Self.general, owner: "ann", members: ["bob"])
                let bob = try await cluster.socket("bob", at: 0)
                let other = try Peer(cluster.nats.url)
                let hello = try JSONEncoder().encode(ClusterPresence.Message.heartbeat(NodeID("other"), isNew: true))
                let database = try PostgreSQLDatabase(url: cluster.database, laneCount: 1, readerCount: 1)
                func comparisons() throws -> Int {
                    try database.read { transaction in
                        let sql: SQL = "SELECT idx_scan FROM pg_stat_user_tables WHERE relname = 'channel_heads'"
                        return try transaction.first(sql) { $0.int() } ?? 0
                    }
                }
                let before = try comparisons()
                // When idle there is one a second: this many would take longer than the test waits.
                try await eventually("comparisons with the database") {
                    other.bus.publish(Array(hello), to: .nodes)
                    return try comparisons() - before > 100
                }
                other.bus.stop()
                database.close()
                await bob.close()
            }
        }

        @Test("I3 a node unsubscribes from streams that no socket needs any longer")
        func unsubscribes() async throws {
            try await TestCluster.run(2) { cluster in
                for number in 1...5 {
                    try await cluster.makeChannel(ChannelID("channel-\(number)"), owner: "ann", members: ["bob"])
                }
                let bob = try await cluster.socket("bob", at: 1)
                // Two for each node itself, five channels, and bob's own stream; and some for the channels' creator.
                #expect(try await cluster.nats.subscriptionCount() >= 2 * 2 + 5 + 1)
                await bob.close()
                let closed = ContinuousClock.now
                try await eventually("only the nodes' own subscriptions", within: .seconds(20)) {
                    try await cluster.nats.subscriptionCount() == 2 * 2
                }
                print("Cluster traffic: unsubscribed after \(ContinuousClock.now - closed).")

                // It works when the channel is needed again.
                let again = try await cluster.socket("bob", at: 1)
                let ann = try await cluster.socket("ann", at: 0)
                let message = try await ann.send("channel-1", "again")
                #expect(try await again.messages(1, of: "channel-1") == [message])
            }
        }
    }
}
#endif
