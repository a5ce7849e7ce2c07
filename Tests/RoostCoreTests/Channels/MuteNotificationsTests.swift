import RoostAPI
import RoostDatabase
import RoostTestSupport
import Testing

@testable import RoostCore

/// Muting a channel for oneself: its messages still count, but are left out of the total and don't bring a hidden channel back (D-29, D-32).
@Suite("Muted notifications")
struct MuteNotificationsTests {
    private func world() throws -> CoreWorld {
        let world = try CoreWorld()
        for user in ["ann", "bob", "eve"] as [UserID] { try world.user(user) }
        for channel in ["general", "other"] as [ChannelID] { try world.channel(channel, owner: "ann", members: ["bob"]) }
        return world
    }

    /// Runs due effects, and returns their notices.
    private func runEffects(in world: CoreWorld) throws -> [Notice] {
        var notices: [Notice] = []
        try world.runEffects(of: .unmuteNotifications) { notices += $0 }
        return notices
    }

    private func total(_ world: CoreWorld) throws -> TotalUnread { try world.perform(GetTotalUnread(), as: "bob") }

    private func listed(_ world: CoreWorld, hidden: HiddenFilter? = nil, unreadOnly: Bool? = nil) throws -> [ChannelID] {
        let query = QueryChannels(hidden: hidden, unreadOnly: unreadOnly, sort: .unreadFirst)
        return try world.perform(query, as: "bob").items.map(\.channel.channelId)
    }

    @Test("D-29 X-34 messages in a muted channel count there, and are left out of the total until the mute ends")
    func total() throws {
        let world = try world()
        let muted = try world.perform(MuteNotifications(channel: "general"), as: "bob")
        #expect(muted.isNotificationsMuted && muted.notificationsMutedUntil == .forever)
        for channel in ["general", "other", "general"] as [ChannelID] { try world.send("hi", to: channel, as: "ann") }
        #expect(try total(world) == TotalUnread(unreadCount: 1, unreadChannelCount: 1))
        #expect(try world.perform(GetUnread(channel: "general"), as: "bob").unreadCount == 2)
        // The channel still counts as unread for lists that filter by it.
        #expect(try listed(world, unreadOnly: true).sorted() == ["general", "other"])
        #expect(try world.perform(GetTotalUnread(), as: "ann") == TotalUnread(unreadCount: 0, unreadChannelCount: 0))
        #expect(try !world.perform(UnmuteNotifications(channel: "general"), as: "bob").isNotificationsMuted)
        #expect(try total(world) == TotalUnread(unreadCount: 3, unreadChannelCount: 2))
    }

    @Test("D-32 X-34 a message doesn't bring back a hidden muted channel; the end of the mute does, if a message arrived")
    func hidden() throws {
        let world = try world()
        try world.perform(HideChannel(channel: "general"), as: "bob")
        try world.perform(HideChannel(channel: "other", allowAutoUnhide: false), as: "bob")
        for channel in ["general", "other"] as [ChannelID] { try world.perform(MuteNotifications(channel: channel), as: "bob") }
        for channel in ["general", "other"] as [ChannelID] { try world.send("hi", to: channel, as: "ann") }
        #expect(try listed(world) == [] && listed(world, hidden: .hiddenAllowAutoUnhide) == ["general"])
        let view = try world.perform(GetChannel(channel: "general"), as: "bob")
        #expect(view.hiddenState == .hiddenAllowAutoUnhide && view.unreadCount == 1)
        for channel in ["general", "other"] as [ChannelID] { try world.perform(UnmuteNotifications(channel: channel), as: "bob") }
        #expect(try listed(world) == ["general"] && listed(world, hidden: .hiddenPreventAutoUnhide) == ["other"])
    }

    @Test("D-32 muting doesn't hide again what a message has brought back")
    func broughtBack() throws {
        let world = try world()
        try world.perform(HideChannel(channel: "general"), as: "bob")
        try world.send("hi", to: "general", as: "ann")
        let muted = try world.perform(MuteNotifications(channel: "general"), as: "bob")
        #expect(muted.hiddenState == .unhidden && muted.hiddenOrdinal == 0)
        try world.send("hi", to: "general", as: "ann")
        #expect(try listed(world).sorted() == ["general", "other"])
    }

    @Test("D-29 the server ends it once its time expires, and notifies the user's devices; another time replaces it")
    func ends() throws {
        let world = try world()
        try world.send("hi", to: "general", as: "ann")
        try world.perform(MuteNotifications(channel: "general", seconds: 60), as: "bob")
        try world.perform(MuteNotifications(channel: "general", seconds: 600), as: "bob")
        world.advance(milliseconds: 61_000)
        #expect(try runEffects(in: world).isEmpty)
        #expect(try total(world).unreadCount == 0)
        world.advance(milliseconds: 540_000)
        let notices = try runEffects(in: world)
        #expect(notices.count == 1)
        guard case .event(let event, .user("bob"))? = notices.first else {
            Issue.record("No event: \(notices)")
            return
        }
        #expect(event.kind == .channelNotificationsUnmuted && event.actor == nil)
        #expect(event.rows.memberships?.map(\.isNotificationsMuted) == [false])
        #expect(try total(world).unreadCount == 1)
        #expect(try runEffects(in: world).isEmpty)
    }

    @Test("D-29 a mute that ended early, or has no end, isn't ended again; a new membership isn't muted")
    func endsOnlyWhatIsThere() throws {
        let world = try world()
        try world.perform(MuteNotifications(channel: "general", seconds: 60), as: "bob")
        try world.perform(UnmuteNotifications(channel: "general"), as: "bob")
        try world.perform(MuteNotifications(channel: "other", seconds: 60), as: "bob")
        try world.perform(MuteNotifications(channel: "other"), as: "bob")
        world.advance(milliseconds: 61_000)
        #expect(try runEffects(in: world).isEmpty)
        #expect(try world.perform(GetChannel(channel: "other"), as: "bob").membership?.isNotificationsMuted == true)
        // A member who leaves and rejoins starts over.
        try world.perform(MuteNotifications(channel: "general", seconds: 60), as: "bob")
        try world.perform(LeaveChannel(channel: "general"), as: "bob")
        #expect(try world.code(UnmuteNotifications(channel: "general"), as: "bob") == .notMember)
        #expect(try world.code(MuteNotifications(channel: "general"), as: "eve") == .notMember)
        try world.perform(JoinChannel(channel: "general"), as: "bob")
        #expect(try world.perform(GetChannel(channel: "general"), as: "bob").membership?.isNotificationsMuted == false)
        world.advance(milliseconds: 61_000)
        #expect(try runEffects(in: world).isEmpty)
    }

    @Test("D-29 D-07 the time is more than 0 seconds, or unlimited; anything else is refused and changes nothing")
    func times() throws {
        let world = try world()
        let before = try world.dump()
        for seconds in [0, -2, Int.min] {
            let refusal = try world.refusal(MuteNotifications(channel: "general", seconds: seconds), as: "bob")
            #expect(refusal?.code == .invalidArgument && refusal?.field == "seconds")
        }
        #expect(try world.refusal(MuteNotifications(channel: "general", seconds: .max), as: "bob")?.code == .limitExceeded)
        #expect(try world.code(MuteNotifications(channel: "nowhere"), as: "bob") == .notFound)
        #expect(try world.dump() == before)
        let forEver = try world.perform(MuteNotifications(channel: "general", seconds: -1), as: "bob")
        #expect(forEver.notificationsMutedUntil == .forever)
    }
}
