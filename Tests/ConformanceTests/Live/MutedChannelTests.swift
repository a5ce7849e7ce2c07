import Roost
import RoostAPI
import RoostTestSupport
import Testing

/// Muting a channel for oneself, with the SDK against the real server.
@MainActor @Suite struct MutedChannelTests {
    @Test(
        "D-29 EM-35 X-34 a muted channel isn't in badge and totals on any device, live and after an absence, and counts its messages"
    )
    func muted() async throws {
        let server = try await TestServer()
        let (ann, phone, tablet) = (chat("ann", at: server), chat("bob", at: server), chat("bob", at: server))
        for client in [ann, phone, tablet] { try await client.connect() }
        let general = try await ann.createChannel("general", users: ["bob"])
        _ = try await ann.createChannel("other", users: ["bob"])
        let (badge, list) = (tablet.unread, tablet.channels(matching: ChannelQuery(sort: .unreadFirst)))
        try await badge.loaded()
        try await list.loaded()
        func state() -> [Int] { [badge.total.unreadCount, badge.total.unreadChannelCount, list.totalUnreadCount] }
        let room = phone.channel("general")
        try await room.loaded()
        try await room.muteNotifications()
        try await wait("the muting on the other device") { list.items.first { $0.id == "general" }?.isNotificationsMuted == true }
        try await general.sendConfirmed(MessageDraft(text: "1"))
        try await ann.channel("other").sendConfirmed(MessageDraft(text: "2"))
        try await wait("one message that counts") { state() == [1, 1, 1] }
        // The list still has each channel's unread count.
        #expect(list.items.map(\.unreadCount) == [1, 1] && list.items.map(\.hasMention) == [false, false])
        #expect(try await phone.call(GetTotalUnread()) == TotalUnread(unreadCount: 1, unreadChannelCount: 1))

        await tablet.disconnect()
        try await room.unmuteNotifications()
        try await general.sendConfirmed(MessageDraft(text: "3"))
        try await tablet.connect()
        try await wait("all of them after an absence") { state() == [3, 2, 3] }
        #expect(list.items.allSatisfy { !$0.isNotificationsMuted })
        try await server.stop()
    }

    @Test("D-29 D-32 a mute expires on a device by itself, which shows a hidden channel that has news")
    func ends() async throws {
        let server = try await TestServer()
        let (ann, bob) = (chat("ann", at: server), chat("bob", at: server))
        for client in [ann, bob] { try await client.connect() }
        let general = try await ann.createChannel("general", users: ["bob"])
        let (room, list, badge) = (bob.channel("general"), bob.channels(), bob.unread)
        try await room.loaded()
        try await list.loaded()
        try await room.hide()
        try await room.muteNotifications(for: .seconds(2))
        try await bob.outbox.loaded()
        try await wait("the server to have it") { bob.outbox.count == 0 }
        try await general.sendConfirmed(MessageDraft(text: "1"))
        try await wait("the message") { room.unreadCount == 1 }
        #expect(room.hiddenState == .hiddenAllowAutoUnhide || room.membership?.isNotificationsMuted == false)
        try await wait("the end") { room.membership?.isNotificationsMuted == false }
        try await wait("the channel in the list") { list.items.map(\.id) == ["general"] && badge.total.unreadCount == 1 }
        #expect(room.hiddenState == .unhidden)
        await #expect(throws: RoostError.self) { try await room.muteNotifications(for: .zero) }
        try await server.stop()
    }
}
