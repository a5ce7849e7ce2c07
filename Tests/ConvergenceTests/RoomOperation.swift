import RoostAPI
import RoostCore
import Testing

/// An operation in a ``PreparedRoom``.
struct RoomOperation: CustomTestStringConvertible, Sendable {
    let name: String
    let what: String
    let user: UserID
    let role: AppRole
    /// Whether it changes members' permissions without notifying them: they learn it with the channel's next state (types and roles).
    let changesRulesSilently: Bool
    let make: @Sendable ([Message]) -> any Handled
    var testDescription: String { "\(name) \(what)" }

    /// - Parameter make: Receives the messages of `general`: the first two ann's, the third bob's.
    init(
        _ name: String, _ what: String, as user: UserID, role: AppRole = .user, changesRulesSilently: Bool = false,
        _ make: @escaping @Sendable ([Message]) -> any Handled
    ) {
        self.name = name
        self.what = what
        self.user = user
        self.role = role
        self.changesRulesSilently = changesRulesSilently
        self.make = make
    }

    /// An operation that needs no message.
    init(
        _ what: String, as user: UserID, role: AppRole = .user, changesRulesSilently: Bool = false,
        _ operation: some Handled
    ) {
        self.init(
            type(of: operation).name, what, as: user, role: role, changesRulesSilently: changesRulesSilently
        ) { _ in operation }
    }

    /// An operation with fields that its initialiser doesn't take.
    init<O: Handled>(
        _ what: String, as user: UserID, role: AppRole = .user, _ operation: O, _ set: (inout O) -> Void
    ) {
        var operation = operation
        set(&operation)
        self.init(what, as: user, role: role, operation)
    }

    static var writes: [RoomOperation] {
        ofUsers + creations + channelChanges + ofMembers + ofInvitations + ofMessages + definitions
    }
}

extension RoomOperation {
    static let ofUsers: [RoomOperation] = [
        RoomOperation("of a member", as: "root", role: .admin, UpsertUser(user: "bob", displayName: "Bob", metadata: ["k": 1])),
        RoomOperation("of a new user", as: "root", role: .admin, UpsertUser(user: "fay")),
        RoomOperation("of nobody's device", as: "root", role: .admin, RevokeToken(tokenId: "unused")),
        RoomOperation("of another device", as: "ann", SignOutDevice(device: "old")),
        RoomOperation("of a user without a device", as: "root", role: .admin, DeactivateUser(user: "gus")),
        RoomOperation("of a member", as: "root", role: .admin, RevokeUserTokens(user: "bob")),
        RoomOperation("of an active user", as: "root", role: .admin, ReactivateUser(user: "bob")),
        RoomOperation("by a member", as: "ann", UpdateMe(displayName: "Ann", avatarFileId: "f")),
        RoomOperation("to be asked", as: "ann", UpdatePreferences(autoAcceptInvitations: false)),
        RoomOperation("not to be asked", as: "dan", UpdatePreferences(autoAcceptInvitations: true)),
        RoomOperation("as they are", as: "dan", UpdatePreferences(autoAcceptInvitations: false)),
    ]

    static let ofMessages: [RoomOperation] = [
        RoomOperation(
            "by a member", as: "bob",
            SendMessage(
                channel: "general", clientId: "new", text: "x", customType: "t", data: "d", metadata: ["k": 1], tags: ["t"])),
        RoomOperation("message.send", "a second time", as: "ann") {
            SendMessage(channel: "general", clientId: $0[0].clientId, text: "x")
        },
        RoomOperation(
            "by an admin who isn't a member", as: "root", role: .admin, SendMessage(channel: "general", clientId: "new", text: "x")),
        RoomOperation("to a channel that some have hidden", as: "ann", SendMessage(channel: "other", clientId: "new", text: "x")),
        RoomOperation("by a member who hid the channel", as: "bob", SendMessage(channel: "other", clientId: "new", text: "x")),
        RoomOperation("to an ephemeral channel", as: "ann", SendMessage(channel: "echo", clientId: "new", text: "x")),
        RoomOperation("in a conversation", as: "bob", SendMessage(channel: "talk", clientId: "new", text: "x")),
        RoomOperation("while frozen, by its owner", as: "ann", SendMessage(channel: "cold", clientId: "new", text: "x")),
        RoomOperation("message.edit", "of one's own", as: "ann") {
            EditMessage(channel: "general", message: $0[0].messageId, text: "edited")
        },
        RoomOperation("message.edit", "of another's", as: "ann") {
            EditMessage(channel: "general", message: $0[2].messageId, text: "edited")
        },
        RoomOperation("message.edit", "of nothing", as: "ann") { EditMessage(channel: "general", message: $0[0].messageId) },
        RoomOperation("message.delete", "of one's own", as: "bob") { DeleteMessage(channel: "general", message: $0[2].messageId) },
        RoomOperation("message.delete", "of another's", as: "ann") { DeleteMessage(channel: "general", message: $0[2].messageId) },
        RoomOperation(
            "of everything that a message may have", as: "ann",
            SendMessage(
                channel: "general", clientId: "new", text: "x", kind: .custom, customType: "t", metaArrays: ["k": ["b", "a"]],
                pushOption: .force, targetLanguages: ["de"])),
        RoomOperation(
            "that is silent", as: "ann", SendMessage(channel: "general", clientId: "new", text: "x", isSilent: true)),
        RoomOperation(
            "that mentions members and the channel", as: "ann",
            SendMessage(
                channel: "general", clientId: "new", text: "x", mentionees: [.users(["bob", "dan", "ann", "nobody"]), .channel])),
        RoomOperation(
            "to channels that let admins send", as: "root", role: .admin,
            SendAdminMessage(channels: ["general", "other", "cold"], clientId: "new", text: "x", mentionees: [.channel])),
        RoomOperation("message.edit", "that mentions others", as: "ann") {
            EditMessage(channel: "general", message: $0[0].messageId, mentionees: [.users(["dan"]), .channel])
        },
        RoomOperation("message.edit", "that no longer mentions anybody", as: "ann") {
            EditMessage(channel: "general", message: $0[1].messageId, mentionees: [])
        },
        RoomOperation("message.delete", "of one that mentions", as: "ann") {
            DeleteMessage(channel: "general", message: $0[1].messageId)
        },
        RoomOperation("", as: "bob", StartReading(channel: "general")),
        RoomOperation("a new one", as: "ann", SetDraft(channel: "general", text: "so far", metadata: ["k": 1])),
        RoomOperation("another text", as: "bob", SetDraft(channel: "general", text: "so far")),
        RoomOperation("nothing", as: "bob", SetDraft(channel: "general", text: "")),
        RoomOperation("reading.markDelivered", "", as: "cid") { MarkDelivered(channel: "general", seq: $0[2].seq) },
        RoomOperation("reading.markUnread", "", as: "ann") { MarkUnread(channel: "general", seq: $0[0].seq) },
        RoomOperation("message.purge", "of one that mentions", as: "ann") {
            PurgeMessage(channel: "general", message: $0[1].messageId)
        },
        RoomOperation("message.purge", "of the newest", as: "ann") {
            PurgeMessage(channel: "general", message: $0[3].messageId)
        },
        RoomOperation("message.purge", "of another's", as: "ann") {
            PurgeMessage(channel: "general", message: $0[2].messageId)
        },
        RoomOperation("message.deleteMany", "of one's own and another's", as: "ann") {
            DeleteMessages(channel: "general", messages: $0.map(\.messageId))
        },
        RoomOperation("message.deleteForMe", "of three, one of which mentions them", as: "bob") {
            DeleteMessagesForMe(channel: "general", messages: $0.prefix(3).map(\.messageId))
        },
        RoomOperation("message.undelete", "of one that mentions", as: "ann") {
            UndeleteMessage(channel: "general", message: $0[3].messageId)
        },
        RoomOperation("message.updateMetaArrays", "of one's own", as: "ann") {
            UpdateMetaArrays(channel: "general", message: $0[0].messageId, create: ["k"], add: ["k": ["v"]])
        },
        RoomOperation("of everything", as: "bob", MarkRead(channel: "general")),
        RoomOperation("reading.mark", "before an own message", as: "bob") { MarkRead(channel: "general", seq: $0[0].seq) },
        RoomOperation("of the beginning", as: "bob", MarkRead(channel: "general", seq: 0)),
        RoomOperation("of an ephemeral channel", as: "ann", MarkRead(channel: "echo")),
    ]

    static let definitions: [RoomOperation] = [
        RoomOperation("that is dead", as: "root", role: .admin, RetryEffect(kind: "test.dead", key: "1")),
        RoomOperation("of a new type", as: "root", role: .admin, PutChannelType(type: "bar", basedOn: .livestream)),
        RoomOperation(
            "of one that channels have", as: "root", role: .admin, changesRulesSilently: true,
            PutChannelType(type: "salon", basedOn: .group, policy: PolicyChanges(invite: .owners, send: .operators))),
        RoomOperation("of an unused one", as: "root", role: .admin, DeleteChannelType(type: "unused")),
        RoomOperation("of a new role", as: "root", role: .admin, PutRole(role: "clerk", rank: 3, permissions: [.memberAdd])),
        RoomOperation(
            "of one that a member has", as: "root", role: .admin, changesRulesSilently: true,
            PutRole(role: "scribe", rank: 30, permissions: [.memberAdd, .channelFreeze])),
        RoomOperation("of an unused one", as: "root", role: .admin, DeleteRole(role: "unused")),
        RoomOperation("of one that a member has", as: "root", role: .admin, changesRulesSilently: true, DeleteRole(role: "scribe")),
    ]
}
