import RoostAPI
import RoostCore

extension Case {
    static let creations: [Case] = [
        Case("with members", as: "dan", CreateChannel(channel: "new", tags: ["t"], users: ["ann", "bob"])),
        Case("alone", as: "ann", CreateChannel(channel: "alone", metadata: ["k": [:]])),
        Case("with everything in it", as: "ann", CreateChannel(channel: "new", displayName: "New", users: ["bob", "eve"])) {
            $0.avatarFileId = "f"
            $0.coverUrl = "https://example.com/a.png"
            $0.customType = "c"
            $0.data = "d"
            $0.metadata = ["k": 1]
            $0.operators = ["bob", "cid"]
            $0.policy = PolicyChanges(send: .operators, maxMembers: 10)
        },
        Case("of a group, with one who comes at once and one to be asked", as: "ann", group(["dan", "eve"])),
        Case("of a group, with operators to be asked", as: "ann", group(["eve"])) { $0.operators = ["dan", "bob"] },
        Case("of a distinct group", as: "ann", group(["cid", "dan"])) { $0.isDistinct = true },
        Case("of a public group", as: "ann", group(["bob"])) { $0.isPublic = true },
        Case("of an ephemeral group", as: "ann", group(["bob", "dan"])) { $0.isEphemeral = true },
        Case("of a group by a backend", as: "root", role: .service, group(["ann", "bob", "dan"])),
        Case("of a distinct channel that is there", as: "bob", CreateChannel(type: .messaging, users: ["ann"])) {
            $0.isDistinct = true
        },
        Case("with a key", as: "ann", CreateChannel(users: ["bob"])) { $0.idempotencyKey = "k" },
        Case("of a conversation", as: "ann", CreateChannel(channel: "new", type: .conversation, users: ["dan"])),
        Case("of a conversation that is there", as: "bob", CreateChannel(type: .conversation, users: ["ann"])),
        Case("of a live channel", as: "ann", CreateChannel(channel: "new", type: .live, users: ["eve"])),
        Case("of a livestream", as: "ann", CreateChannel(channel: "new", type: .livestream, users: ["eve"])),
        Case("of a channel of one's own type", as: "ann", CreateChannel(channel: "new", type: "salon", users: ["dan", "eve"])),
        Case(
            "of a broadcast", as: "root", role: .admin, CreateChannel(channel: "new", type: .broadcast, users: ["ann", "dan"])),
    ]

    private static func group(_ users: [UserID]) -> CreateChannel { CreateChannel(channel: "new", type: .group, users: users) }
    private static func update(_ channel: ChannelID = "general") -> UpdateChannel { UpdateChannel(channel: channel) }

    static let channelChanges: [Case] = [
        Case("of everything", as: "ann", update()) {
            $0.displayName = "G"
            $0.avatarFileId = "f"
            $0.coverUrl = "http://example.com"
            $0.customType = "c"
            $0.data = "d"
            $0.tags = ["a"]
            $0.metadata = ["k": 1]
        },
        Case("of nothing", as: "ann", update()),
        Case("of the name", as: "ann", update()) { $0.displayName = "G" },
        Case("of the name by an operator", as: "bob", update("team")) { $0.displayName = "G" },
        Case("of the name by who has a role for it", as: "cid", update("team")) { $0.displayName = "G" },
        Case("by an admin", as: "root", role: .admin, update()) { $0.displayName = "R" },
        Case("of the picture", as: "ann", update()) { $0.coverUrl = "https://example.com/b.png" },
        Case("of the custom type", as: "ann", update()) { $0.customType = "c" },
        Case("of the data", as: "ann", update()) { $0.data = "d" },
        Case("of the tags", as: "ann", update()) { $0.tags = ["a", "b"] },
        Case("of the metadata at its version", as: "ann", update()) {
            $0.metadata = ["k": 1]
            $0.ifMetadataVersion = 0
        },
        Case("to public", as: "ann", update("team")) { $0.isPublic = true },
        Case("to private", as: "ann", update()) { $0.isPublic = false },
        Case("of who sends", as: "ann", update()) { $0.policy = PolicyChanges(send: .operators) },
        Case("of who invites", as: "ann", update("team")) { $0.policy = PolicyChanges(invite: .owners, maxMembers: 9) },
        Case("from distinct", as: "ann", update("pair")) { $0.isDistinct = false },
        Case("to distinct", as: "ann", update("team")) { $0.isDistinct = true },
        Case("of a conversation", as: "bob", update("talk")) { $0.displayName = "T" },

        Case("of a channel", as: "ann", FreezeChannel(channel: "general")),
        Case("of a frozen one", as: "ann", FreezeChannel(channel: "cold")),
        Case("by an operator", as: "bob", FreezeChannel(channel: "team")),
        Case("of a channel", as: "ann", UnfreezeChannel(channel: "cold")),
        Case("of one that isn't", as: "ann", UnfreezeChannel(channel: "general")),
        Case("for a time", as: "ann", SilenceChannel(channel: "general", seconds: 3600)),
        Case("for ever", as: "bob", SilenceChannel(channel: "team")),
        Case("of a silence", as: "ann", UnsilenceChannel(channel: "cold")),
        Case("of none", as: "ann", UnsilenceChannel(channel: "general")),
        Case("for a time", as: "ann", SetRateLimit(channel: "general", messages: 1, windowSeconds: 1, seconds: 3600)),
        Case("for ever", as: "ann", SetRateLimit(channel: "cold", messages: 1, windowSeconds: 1)),
        Case("of a rate limit", as: "ann", RemoveRateLimit(channel: "cold")),
        Case("of none", as: "ann", RemoveRateLimit(channel: "general")),

        Case("until the next message", as: "bob", HideChannel(channel: "general")),
        Case("for good", as: "bob", HideChannel(channel: "general", allowAutoUnhide: false)),
        Case("with its messages", as: "bob", HideChannel(channel: "general", hidePreviousMessages: true)),
        Case(
            "for good, with its messages", as: "bob",
            HideChannel(channel: "general", hidePreviousMessages: true, allowAutoUnhide: false)),
        Case("of a hidden one", as: "bob", HideChannel(channel: "other")),
        Case("of an ephemeral one", as: "bob", HideChannel(channel: "echo", hidePreviousMessages: true)),
        Case("of a hidden one", as: "bob", UnhideChannel(channel: "other")),
        Case("of an archived one", as: "cid", UnhideChannel(channel: "other")),
        Case("of a visible one", as: "bob", UnhideChannel(channel: "general")),

        Case("by the owner", as: "ann", DeleteChannel(channel: "general")),
        Case("of a group into which somebody is invited", as: "ann", DeleteChannel(channel: "team")),
        Case("of a community into which somebody is invited", as: "ann", DeleteChannel(channel: "club")),
        Case("of a distinct one", as: "ann", DeleteChannel(channel: "pair")),
        Case("of an ephemeral one", as: "ann", DeleteChannel(channel: "echo")),
        Case("by an admin", as: "root", role: .admin, DeleteChannel(channel: "cold")),
    ]
}
