import Foundation
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

/// Databases that servers of former versions left. `Fixtures/README.md` tells what is in them.
@Suite("Databases of former versions")
struct FormerVersionTests {
    private static let fixtures = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Fixtures")

    @Test("AM-43 AM-44 SB-27 what was unread and hidden before the step of what counts is so after it")
    func whatCounts() throws {
        let world = try CoreWorld(copying: Self.fixtures.appending(path: "2026-11"))
        let steps = Set(try world.rows("SELECT name FROM migrations") { $0.string() })
        #expect(steps == Set(Migrations.steps.map(\.name)))
        func unread() throws -> [Int] {
            try ["general", "quiet", "loud"].map { try world.perform(GetUnread(channel: $0), as: "bob").unreadCount }
        }
        #expect(try unread() == [3, 1, 2])
        #expect(try world.perform(GetTotalUnread(), as: "bob") == TotalUnread(unreadCount: 6, unreadChannelCount: 3))
        let listed = try world.perform(QueryChannels(hidden: .unhiddenOnly), as: "bob").items.map(\.channel)
        #expect(Set(listed.map(\.channelId.rawValue)) == ["general", "loud"])
        #expect(listed.allSatisfy { $0.counters.ordinal == $0.counters.messageCount })
        let texts = try world.perform(ListMessages(channel: "general"), as: "bob").messages.map(\.text)
        #expect(texts == ["message 1", "edited", "", "message 4", "message 5", "from bob"])

        // And it goes on from there.
        world.now = Timestamp(milliseconds: 1_800_000_000_000)
        for channel: ChannelID in ["general", "quiet"] { try world.send("after", to: channel, as: "ann") }
        #expect(try unread() == [4, 2, 2])
        #expect(try world.perform(MarkRead(channel: "general", seq: 4), as: "bob").unreadCount == 3)
        let back = try world.perform(QueryChannels(hidden: .unhiddenOnly), as: "bob").items.map(\.channel.channelId.rawValue)
        #expect(Set(back) == ["general", "loud", "quiet"])
        let missed = try world.perform(Resume(after: 0, channels: ["general": 9]), as: "bob").channels.first { $0.isFresh == nil }
        #expect(missed?.rows.messages?.map(\.text) == ["after"])
    }

    @Test("Roles grant what they granted before their permissions were renamed")
    func permissionNames() throws {
        let world = try CoreWorld()
        let before = #"{"role":"clerk","rank":3,"permissions":["channel.rateLimit","member.invite","message.send"]}"#
        try world.execute("INSERT INTO roles (role, definition) VALUES ('clerk', \(before))")
        try world.execute("DELETE FROM migrations WHERE name = '0011 names of permissions'")
        try world.restart()
        let clerk = try world.perform(ListRoles(), as: "root", role: .admin).first { $0.role == "clerk" }
        #expect(clerk?.permissions == [.channelSetRateLimit, .invitationSend, .messageSend])
    }
}
