import RoostAPI
import RoostDatabase
import RoostTestSupport
import Testing

@testable import RoostCore

/// The memberships of deleted channels: reads of a user's channels skip them, and reads for them find them.
@Suite("Memberships of deleted channels")
struct DeletedMembershipsTests {
    /// The users whose memberships of a channel are skipped.
    private func passed(of channel: ChannelID, in world: CoreWorld) throws -> Set<String> {
        Set(try world.rows("SELECT user_id FROM members WHERE channel_id = \(channel) AND is_channel_deleted = 1") { $0.string() })
    }

    @Test("AM-34 NF-04 a deleted channel's memberships, and no others, come to be skipped, one part after another")
    func parts() throws {
        let world = try CoreWorld()
        for user in ["bob", "cid"] as [UserID] { try world.user(user) }
        try world.channel("large", owner: "ann", members: ["bob", "cid"])
        try world.channel("other", owner: "ann", members: ["bob"])
        try world.perform(LeaveChannel(channel: "large"), as: "cid")
        try BulkRows.members(2500, of: "large", in: world)
        try world.perform(DeleteChannel(channel: "large"), as: "ann")
        #expect(try passed(of: "large", in: world).isEmpty)
        var counts: [Int] = []
        while case let effects = try world.runEffects(of: .markMemberships), effects > 0 {
            counts.append(try passed(of: "large", in: world).count)
        }
        #expect(counts.count == 3 && counts.last == 2502)
        #expect(counts.first.map { $0 <= 1000 } == true)
        #expect(try passed(of: "large", in: world).isSuperset(of: ["ann", "bob"]))
        #expect(try !passed(of: "large", in: world).contains("cid"))
        #expect(try passed(of: "other", in: world).isEmpty)
    }

    @Test(
        "AM-34 I5 a deletion ends a channel for its members immediately, also for absent ones, before and after its memberships are skipped"
    )
    func same() throws {
        let world = try CoreWorld()
        try world.user("bob")
        for channel in ["gone", "kept"] as [ChannelID] {
            try world.channel(channel, owner: "ann", members: ["bob"])
            try world.send("hi", to: channel, as: "ann")
        }
        let place = try world.perform(GetMyChanges(after: 0), as: "bob").seq
        try world.perform(DeleteChannel(channel: "gone"), as: "ann")
        func expectEnded(_ when: String) throws {
            #expect(try world.perform(QueryChannels(), as: "bob").items.map(\.channel.channelId) == ["kept"], "\(when)")
            let deleted = try world.perform(QueryChannels(includeDeleted: true, sort: .name), as: "bob").items
            #expect(deleted.map(\.channel.channelId).sorted() == ["gone", "kept"], "\(when)")
            #expect(try world.perform(GetTotalUnread(), as: "bob").unreadChannelCount == 1, "\(when)")
            let streams = try world.database.read { try $0.streams(of: "bob") }
            #expect(Array(streams.channels.keys) == ["kept"], "\(when)")
            // Only channels that the client has are reported.
            for held in [["gone": 1, "kept": 1], ["gone": 1], ["kept": 1]] as [[String: Seq]] {
                let answer = try world.perform(Resume(after: place, channels: held), as: "bob")
                let ended = answer.channels.filter { $0.rows.channel?.deletedAt != nil }.map(\.stream)
                #expect(ended == (held["gone"] == nil ? [] : [.channel("gone")]), "\(when) \(held)")
            }
        }
        try expectEnded("before")
        #expect(try world.runEffects(of: .markMemberships) == 1)
        #expect(try passed(of: "gone", in: world) == ["ann", "bob"])
        try expectEnded("after")
    }

    @Test("AM-33 AM-34 NF-04 deleted channels are found among a user's 20,000 memberships that changed last, living ones always")
    func manyDeleted() throws {
        let world = try CoreWorld()
        try world.channel("kept", owner: "bob")
        let count = Limits.channelsPerUserMax + 1500
        try BulkRows.channels(count, in: world)
        try BulkRows.memberships(count, of: "bob", in: world)
        // Those with the first numbers changed longest ago, and the living one before them.
        for sql in [
            "UPDATE members SET user_seq = 0 WHERE channel_id = 'kept'",
            """
            UPDATE members SET user_seq = joined_at / 1000 - 1000000000, is_channel_deleted = 1
            WHERE user_id = 'bob' AND channel_id <> 'kept'
            """,
            "UPDATE channels SET deleted_at = updated_at WHERE channel_id <> 'kept'",
            "UPDATE channel_heads SET is_deleted = 1 WHERE channel_id <> 'kept'",
        ] as [SQL] { try world.execute(sql) }

        // One of a thousand is of this type.
        var query = QueryChannels(includeDeleted: true, sort: .created, order: .ascending, limit: 7).with {
            $0.customTypes = ["rare"]
        }
        var found: [ChannelID] = []
        repeat {
            let page = try world.perform(query, as: "bob")
            found += page.items.map(\.channel.channelId)
            query.cursor = page.nextCursor
        } while query.cursor != nil
        #expect(found == (2...21).map { ChannelID("bulk-\($0 * 1000)") })
        let newest = try world.perform(QueryChannels(includeDeleted: true, sort: .created, limit: 2), as: "bob").items
        #expect(newest.map(\.channel.channelId) == ["kept", ChannelID("bulk-\(count)")])
    }
}
