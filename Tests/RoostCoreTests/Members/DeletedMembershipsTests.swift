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
}
