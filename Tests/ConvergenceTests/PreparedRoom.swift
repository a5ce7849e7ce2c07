import RoostAPI
import RoostCore
import RoostTestSupport

/// A world with something of every kind, and clients in it.
///
/// - ann owns all channels. dan is asked before an invitation makes him a member; eve is a stranger.
/// - `general` has four messages, two of ann's, one of bob's, and another of ann's that she has deleted; cid has read a part. New members of it are
///   announced. `other` is hidden by bob and archived by cid, and
///   cid has left `left`.
/// - cid has muted `general` for themselves.
/// - bob has begun to write in `general`, `team`, `club` and `cold`.
/// - bob has invited dan to `team`, a group whose members see invitations, and to `club`, where only the users concerned do. In `team` bob
///   is an operator and cid a scribe.
/// - `pair` and `talk` are the channels of just ann and bob, `echo` is ephemeral, `cold` is frozen, silenced and rate-limited, `salon` has a type
///   of the operator's own, and in `news` only admins write.
struct PreparedRoom {
    static let users: [UserID] = ["ann", "bob", "cid", "dan", "eve"]

    let room: Room
    /// The messages of `general`.
    let messages: [Message]

    init() throws {
        let world = try CoreWorld()
        for user in Self.users { try world.user(user) }
        // A user without a device: there is no connection to shut out.
        try world.user("gus")
        try world.device("old", of: "ann")
        try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: "dan")
        for channel in ["general", "other", "left", "club", "cold"] as [ChannelID] {
            try world.channel(channel, owner: "ann", members: ["bob", "cid"])
        }
        (world.options.undeletionSeconds, world.options.versionSeconds) = (3600, 3600)
        try world.perform(
            UpdateChannel(
                channel: "general",
                policy: PolicyChanges(announcesJoins: true, announcesLeaves: true, announcesNames: true, deliveryEvents: true)),
            as: "root", role: .admin)
        messages = try [
            world.send("one", to: "general", as: "ann"),
            world.perform(
                SendMessage(
                    channel: "general", clientId: "two", text: "two", mentionees: [.users(["bob", "cid"]), .channel]), as: "ann"),
            world.send("three", to: "general", as: "bob"),
            world.perform(
                SendMessage(channel: "general", clientId: "four", text: "four", mentionees: [.users(["bob"]), .channel]), as: "ann"),
        ]
        try world.perform(DeleteMessage(channel: "general", message: messages[3].messageId), as: "ann")
        try world.perform(MarkRead(channel: "general", seq: 2), as: "cid")
        try world.perform(LeaveChannel(channel: "left"), as: "cid")
        try Self.makeGroups(in: world)
        try Self.hideAndFreeze(in: world)
        try world.perform(MuteNotifications(channel: "general"), as: "cid")
        for channel in ["general", "team", "club", "cold"] as [ChannelID] {
            try world.perform(SetDraft(channel: channel, text: "well"), as: "bob")
        }
        try world.deadEffect("test.dead", key: "1")
        world.advance(milliseconds: 10)
        room = Room(world)
    }

    private static func makeGroups(in world: CoreWorld) throws {
        try world.perform(PutRole(role: "scribe", rank: 10, permissions: [.channelUpdate]), as: "root", role: .admin)
        try world.perform(PutRole(role: "unused", rank: 10, permissions: []), as: "root", role: .admin)
        try world.perform(PutChannelType(type: "salon", basedOn: .group), as: "root", role: .admin)
        try world.perform(PutChannelType(type: "unused"), as: "root", role: .admin)
        try world.channel("team", type: .group, owner: "ann", members: ["bob", "cid"])
        try world.perform(SetMemberRole(channel: "team", users: ["bob"], role: .operator), as: "ann")
        try world.perform(SetMemberRole(channel: "team", users: ["cid"], role: "scribe"), as: "ann")
        try world.channel("salon", type: "salon", owner: "ann", members: ["bob"])
        for channel in ["team", "club"] as [ChannelID] {
            try world.perform(InviteMembers(channel: channel, users: ["dan"], welcome: "come"), as: "bob")
        }
        try world.send("hello", to: "team", as: "ann")
        var pair = CreateChannel(channel: "pair", type: .messaging, users: ["bob"])
        pair.isDistinct = true
        try world.perform(pair, as: "ann")
        try world.channel("talk", type: .conversation, owner: "ann", members: ["bob"])
        var echo = CreateChannel(channel: "echo", type: .group, users: ["bob"])
        echo.isEphemeral = true
        try world.perform(echo, as: "ann")
        try world.send("gone", to: "echo", as: "bob")
        try world.user("root")
        try world.perform(CreateChannel(channel: "news", type: .broadcast, users: ["ann", "bob"]), as: "root", role: .admin)
    }

    private static func hideAndFreeze(in world: CoreWorld) throws {
        try world.send("old", to: "other", as: "ann")
        try world.perform(HideChannel(channel: "other"), as: "bob")
        try world.perform(HideChannel(channel: "other", hidePreviousMessages: true, allowAutoUnhide: false), as: "cid")
        try world.perform(FreezeChannel(channel: "cold"), as: "ann")
        // Nothing expires while these tests run: that would change a member's permissions without an event.
        try world.perform(SilenceChannel(channel: "cold", seconds: 3600), as: "ann")
        try world.perform(SetRateLimit(channel: "cold", messages: 5, windowSeconds: 60, seconds: 3600), as: "ann")
    }
}
