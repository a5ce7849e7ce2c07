import RoostAPI
import RoostCore

extension RoomOperation {
    static let creations: [RoomOperation] = [
        RoomOperation("with members", as: "dan", CreateChannel(channel: "new", tags: ["t"], users: ["ann", "bob"])),
        RoomOperation("alone", as: "ann", CreateChannel(channel: "alone", metadata: ["k": [:]])),
        RoomOperation("with everything in it", as: "ann", CreateChannel(channel: "new", displayName: "New", users: ["bob", "eve"]))
        {
            $0.avatarFileId = "f"
            $0.coverUrl = "https://example.com/a.png"
            $0.customType = "c"
            $0.data = "d"
            $0.metadata = ["k": 1]
            $0.operators = ["bob", "cid"]
            $0.policy = PolicyChanges(send: .operators, maxMembers: 10)
        },
        RoomOperation("of a group, with one who joins at once and one to be asked", as: "ann", group(["dan", "eve"])),
        RoomOperation("of a group, with operators to be asked", as: "ann", group(["eve"])) { $0.operators = ["dan", "bob"] },
        RoomOperation("of a distinct group", as: "ann", group(["cid", "dan"])) { $0.isDistinct = true },
        RoomOperation("of a public group", as: "ann", group(["bob"])) { $0.isPublic = true },
        RoomOperation("of an ephemeral group", as: "ann", group(["bob", "dan"])) { $0.isEphemeral = true },
        RoomOperation("of a group by a backend", as: "root", role: .service, group(["ann", "bob", "dan"])),
        RoomOperation("of an existing distinct channel", as: "bob", CreateChannel(type: .messaging, users: ["ann"])) {
            $0.isDistinct = true
        },
        RoomOperation("with a key", as: "ann", CreateChannel(users: ["bob"])) { $0.idempotencyKey = "k" },
        RoomOperation("of a conversation", as: "ann", CreateChannel(channel: "new", type: .conversation, users: ["dan"])),
        RoomOperation("of an existing conversation", as: "bob", CreateChannel(type: .conversation, users: ["ann"])),
        RoomOperation("of a live channel", as: "ann", CreateChannel(channel: "new", type: .live, users: ["eve"])),
        RoomOperation("of a livestream", as: "ann", CreateChannel(channel: "new", type: .livestream, users: ["eve"])),
        RoomOperation(
            "of a channel of the app's own type", as: "ann", CreateChannel(channel: "new", type: "salon", users: ["dan", "eve"])),
        RoomOperation(
            "of a broadcast", as: "root", role: .admin, CreateChannel(channel: "new", type: .broadcast, users: ["ann", "dan"])),
    ]

    private static func group(_ users: [UserID]) -> CreateChannel { CreateChannel(channel: "new", type: .group, users: users) }
    private static func update(_ channel: ChannelID = "general") -> UpdateChannel { UpdateChannel(channel: channel) }

    static let channelChanges: [RoomOperation] = [
        RoomOperation("of everything", as: "ann", update()) {
            $0.displayName = "G"
            $0.avatarFileId = "f"
            $0.coverUrl = "http://example.com"
            $0.customType = "c"
            $0.data = "d"
            $0.tags = ["a"]
            $0.metadata = ["k": 1]
        },
        RoomOperation("of nothing", as: "ann", update()),
        RoomOperation("of the name", as: "ann", update()) { $0.displayName = "G" },
        RoomOperation("of the name by an operator", as: "bob", update("team")) { $0.displayName = "G" },
        RoomOperation("of the name by a member with a role for it", as: "cid", update("team")) { $0.displayName = "G" },
        RoomOperation("by an admin", as: "root", role: .admin, update()) { $0.displayName = "R" },
        RoomOperation("of the picture", as: "ann", update()) { $0.coverUrl = "https://example.com/b.png" },
        RoomOperation("of the custom type", as: "ann", update()) { $0.customType = "c" },
        RoomOperation("of the data", as: "ann", update()) { $0.data = "d" },
        RoomOperation("of the tags", as: "ann", update()) { $0.tags = ["a", "b"] },
        RoomOperation("of the metadata at its version", as: "ann", update()) {
            $0.metadata = ["k": 1]
            $0.ifMetadataVersion = 0
        },
        RoomOperation("to public", as: "ann", update("team")) { $0.isPublic = true },
        RoomOperation("to private", as: "ann", update()) { $0.isPublic = false },
        RoomOperation("of the senders", as: "ann", update()) { $0.policy = PolicyChanges(send: .operators) },
        RoomOperation("of the inviters", as: "ann", update("team")) { $0.policy = PolicyChanges(invite: .owners, maxMembers: 9) },
        RoomOperation("from distinct", as: "ann", update("pair")) { $0.isDistinct = false },
        RoomOperation("to distinct", as: "ann", update("team")) { $0.isDistinct = true },
        RoomOperation("of a conversation", as: "bob", update("talk")) { $0.displayName = "T" },

        RoomOperation("of a channel", as: "ann", FreezeChannel(channel: "general")),
        RoomOperation("of a frozen one", as: "ann", FreezeChannel(channel: "cold")),
        RoomOperation("by an operator", as: "bob", FreezeChannel(channel: "team")),
        RoomOperation("of a channel", as: "ann", UnfreezeChannel(channel: "cold")),
        RoomOperation("of one that isn't", as: "ann", UnfreezeChannel(channel: "general")),
        RoomOperation("for a time", as: "ann", SilenceChannel(channel: "general", seconds: 3600)),
        RoomOperation("forever", as: "bob", SilenceChannel(channel: "team")),
        RoomOperation("of a silence", as: "ann", UnsilenceChannel(channel: "cold")),
        RoomOperation("of none", as: "ann", UnsilenceChannel(channel: "general")),
        RoomOperation("for a time", as: "ann", SetRateLimit(channel: "general", messages: 1, windowSeconds: 1, seconds: 3600)),
        RoomOperation("forever", as: "ann", SetRateLimit(channel: "cold", messages: 1, windowSeconds: 1)),
        RoomOperation("of a rate limit", as: "ann", RemoveRateLimit(channel: "cold")),
        RoomOperation("of none", as: "ann", RemoveRateLimit(channel: "general")),

        RoomOperation("until the next message", as: "bob", HideChannel(channel: "general")),
        RoomOperation("for good", as: "bob", HideChannel(channel: "general", allowAutoUnhide: false)),
        RoomOperation("with its messages", as: "bob", HideChannel(channel: "general", hidePreviousMessages: true)),
        RoomOperation(
            "for good, with its messages", as: "bob",
            HideChannel(channel: "general", hidePreviousMessages: true, allowAutoUnhide: false)),
        RoomOperation("of a hidden one", as: "bob", HideChannel(channel: "other")),
        RoomOperation("of everything", as: "cid", ResetHistory(channel: "general")),
        RoomOperation("of messages the caller had seen", as: "cid", ResetHistory(channel: "general", upTo: 5)),
        RoomOperation(
            "with what the caller had seen", as: "bob", HideChannel(channel: "general", hidePreviousMessages: true, upTo: 5)),
        RoomOperation("before later messages", as: "bob", HideChannel(channel: "general", upTo: 5)),
        RoomOperation("of only concealed messages", as: "cid", ResetHistory(channel: "other")),
        RoomOperation("of an ephemeral one", as: "bob", HideChannel(channel: "echo", hidePreviousMessages: true)),
        RoomOperation("of a hidden one", as: "bob", UnhideChannel(channel: "other")),
        RoomOperation("of an archived one", as: "cid", UnhideChannel(channel: "other")),
        RoomOperation("of a visible one", as: "bob", UnhideChannel(channel: "general")),
        RoomOperation("for a time", as: "bob", MuteNotifications(channel: "general", seconds: 3600)),
        RoomOperation("of a hidden one, forever", as: "bob", MuteNotifications(channel: "other")),
        RoomOperation("of a muted one", as: "cid", UnmuteNotifications(channel: "general")),
        RoomOperation("of another", as: "bob", UnmuteNotifications(channel: "general")),

        RoomOperation("by the owner", as: "ann", DeleteChannel(channel: "general")),
        RoomOperation("of a group with an invitation", as: "ann", DeleteChannel(channel: "team")),
        RoomOperation("of a community with an invitation", as: "ann", DeleteChannel(channel: "club")),
        RoomOperation("of a distinct one", as: "ann", DeleteChannel(channel: "pair")),
        RoomOperation("of an ephemeral one", as: "ann", DeleteChannel(channel: "echo")),
        RoomOperation("by an admin", as: "root", role: .admin, DeleteChannel(channel: "cold")),
    ]
}
