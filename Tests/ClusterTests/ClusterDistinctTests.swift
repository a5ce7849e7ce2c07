#if Cluster
import Foundation
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

@testable import RoostCore

extension RealClusterTests {
    /// Distinct channels made by several nodes.
    @Suite struct ClusterDistinctTests {
        @Test("AM-25 SB-05 R04 two nodes on which the same conversation is started at once answer with the same one")
        func bothCreate() async throws {
            try await TestCluster.run(2) { cluster in
                let sockets = [try await cluster.socket("ann", at: 0), try await cluster.socket("bob", at: 1)]
                for round in 0..<12 {
                    let third = UserID("third-\(round)")
                    _ = try await cluster.socket(third, at: round % 2)
                    async let one = sockets[0].call(CreateChannel(type: .conversation, users: ["bob", third]))
                    async let other = sockets[1].call(CreateChannel(type: .conversation, users: [third, "ann"]))
                    let ids = try await [one.channel.channelId, other.channel.channelId]
                    #expect(ids[0] == ids[1])
                    // Both have it, as members of one channel.
                    let sent = try await sockets[round % 2].send(ids[0], "hi")
                    #expect(try await sockets[1 - round % 2].call(ListMessages(channel: ids[0])).messages == [sent])
                }
            }
        }

        @Test(
            "AM-25 SB-05 SB-11 R04 a creation that meets a channel being made distinct by another node answers with that one"
        )
        func meetsChange() async throws {
            try await TestCluster.run(2) { cluster in
                let (ann, bob) = (try await cluster.socket("ann", at: 0), try await cluster.socket("bob", at: 1))
                try await ann.call(CreateChannel(channel: "one", type: .messaging, users: ["bob"]))
                // A writer that holds no lock of the members, and commits once another transaction waits for it.
                let key = DistinctKey.of(.messaging, members: ["ann", "bob"])
                let changing = Task.detached {
                    try cluster.postgres.run(
                        sql: [
                            "BEGIN",
                            "UPDATE channels SET is_distinct = 1, distinct_key = '\(key)' WHERE channel_id = 'one'",
                            RealClusterTests.waitForWaiter, "COMMIT",
                        ], in: cluster.database)
                }
                try await eventually("the channel is being changed") {
                    try cluster.postgres.run(
                        sql: ["SELECT 1 FROM channels WHERE channel_id = 'one' FOR UPDATE SKIP LOCKED"], in: cluster.database
                    ).isEmpty
                }
                let made = try await bob.call(CreateChannel(type: .messaging, users: ["ann"]).with { $0.isDistinct = true })
                _ = try await changing.value
                #expect(made.channel.channelId == "one" && made.channel.isDistinct)
                #expect(try await ann.call(QueryChannels()).items.map(\.channel.channelId) == ["one"])
                // Nothing is left of the one that wasn't made, not even an event.
                #expect(try await bob.eventsSoFar().compactMap(\.rows.channel?.channelId) == ["one"])
                for socket in [ann, bob] { try await socket.send("one", "\(UInt64.random(in: 0 ... .max))") }
            }
        }

        @Test("AM-25 SB-05 SB-12 R04 a creation that finds a channel being deleted by another node makes another, also for its key")
        func meetsDeletion() async throws {
            try await TestCluster.run(2) { cluster in
                let (ann, bob) = (try await cluster.socket("ann", at: 0), try await cluster.socket("bob", at: 1))
                try await ann.call(CreateChannel(channel: "one", type: .messaging, users: ["bob"]).with { $0.isDistinct = true })
                // The creation finds the channel, and then waits for this writer at its idempotency key.
                let deleting = Task.detached {
                    try cluster.postgres.run(
                        sql: [
                            "BEGIN",
                            """
                            INSERT INTO idempotency_keys (user_id, request_key, request, channel_id, created_at)
                            VALUES ('bob', 'once', 'another', 'one', 0)
                            """,
                            "UPDATE channel_heads SET is_deleted = 1 WHERE channel_id = 'one'",
                            """
                            UPDATE channels SET deleted_at = created_at, is_distinct = 0, distinct_key = NULL WHERE channel_id = 'one'
                            """,
                            RealClusterTests.waitForWaiter, "COMMIT",
                        ], in: cluster.database)
                }
                try await eventually("the channel is being deleted") {
                    try cluster.postgres.run(
                        sql: ["SELECT 1 FROM channels WHERE channel_id = 'one' FOR UPDATE SKIP LOCKED"], in: cluster.database
                    ).isEmpty
                }
                let create = CreateChannel(type: .messaging, users: ["ann"]).with {
                    ($0.isDistinct, $0.idempotencyKey) = (true, "once")
                }
                let made = try await bob.call(create)
                _ = try await deleting.value
                #expect(made.channel.channelId != "one" && made.channel.deletedAt == nil && made.membership?.role == .owner)
                #expect(try await bob.call(create).channel.channelId == made.channel.channelId)
                #expect(try await ann.call(QueryChannels()).items.map(\.channel.channelId) == [made.channel.channelId])
            }
        }

        @Test("AM-25 SB-05 SB-11 R04 if a creation and a change make channels distinct for the same members, one gives way")
        func createsAndChanges() async throws {
            try await TestCluster.run(2) { cluster in
                let (ann, bob) = (try await cluster.socket("ann", at: 0), try await cluster.socket("bob", at: 1))
                for round in 0..<12 {
                    let (third, id) = (UserID("third-\(round)"), ChannelID("old-\(round)"))
                    _ = try await cluster.socket(third, at: 0)
                    try await ann.call(CreateChannel(channel: id, type: .messaging, users: ["bob", third]))
                    async let changed = refusalCode { try await ann.call(UpdateChannel(channel: id, isDistinct: true)) }
                    async let made = bob.call(CreateChannel(type: .messaging, users: ["ann", third]).with { $0.isDistinct = true })
                    let (code, channel) = try await (changed, made.channel)
                    // Either the creation answers with the changed one, or the change is refused.
                    #expect(
                        channel.isDistinct && (code == nil) == (channel.channelId == id),
                        "\(String(describing: code)) \(channel.channelId)")
                    #expect(code == nil || code == .alreadyExists)
                }
            }
        }
    }
}
#endif
