import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Limits of the operations")
struct LimitTests {
    /// One field of one operation, and its largest allowed size.
    struct LimitedField: CustomTestStringConvertible, Sendable {
        let field: String
        let limit: Int
        let make: @Sendable (Int, MessageID) -> any Handled
        var testDescription: String { field }

        init(_ field: String, _ limit: Int, _ make: @escaping @Sendable (Int, MessageID) -> any Handled) {
            self.field = field
            self.limit = limit
            self.make = make
        }
    }

    static func text(_ count: Int) -> String { String(repeating: "x", count: count) }
    static func tags(_ count: Int) -> [String] { (0..<count).map { "tag\($0)" } }
    /// An object whose JSON takes this many bytes.
    private static func object(bytes: Int) -> JSONValue { ["k": .string(text(bytes - 8))] }
    private static func object(levels: Int) -> JSONValue {
        var value: JSONValue = 1
        for _ in 1..<levels { value = ["k": value] }
        return value
    }
    static func users(_ count: Int) -> [UserID] { (0..<count).map { UserID("u\($0)") } }

    static let cases: [LimitedField] = channelCases + memberCases + queryCases + userCases + messageCases + readCases

    private static let channelCases: [LimitedField] = [
        LimitedField("channel.create channel", Limits.identifierLength) { n, _ in CreateChannel(channel: ChannelID(text(n))) },
        LimitedField("channel.create displayName", Limits.displayNameLength) { n, _ in CreateChannel(displayName: text(n)) },
        LimitedField("channel.create avatarFileId", Limits.fileIDLength) { n, _ in CreateChannel(avatarFileId: text(n)) },
        LimitedField("channel.create tags", Limits.channelTags) { n, _ in CreateChannel(tags: tags(n)) },
        LimitedField("channel.create tag", Limits.tagLength) { n, _ in CreateChannel(tags: [text(n)]) },
        LimitedField("channel.create metadata bytes", Limits.metadataSizeBytes) { n, _ in CreateChannel(metadata: object(bytes: n))
        },
        LimitedField("channel.create metadata levels", Limits.metadataDepth) { n, _ in CreateChannel(metadata: object(levels: n)) },
        LimitedField("channel.create users", Limits.membersPerCall) { n, _ in CreateChannel(users: users(n)) },
        LimitedField("channel.update displayName", Limits.displayNameLength) { n, _ in
            UpdateChannel(channel: "general", displayName: text(n))
        },
        LimitedField("channel.update avatarFileId", Limits.fileIDLength) { n, _ in
            UpdateChannel(channel: "general", avatarFileId: text(n))
        },
        LimitedField("channel.update tags", Limits.channelTags) { n, _ in UpdateChannel(channel: "general", tags: tags(n)) },
        LimitedField("channel.update tag", Limits.tagLength) { n, _ in UpdateChannel(channel: "general", tags: [text(n)]) },
        LimitedField("channel.update metadata bytes", Limits.metadataSizeBytes) { n, _ in
            UpdateChannel(channel: "general", metadata: object(bytes: n))
        },
        LimitedField("channel.update metadata levels", Limits.metadataDepth) { n, _ in
            UpdateChannel(channel: "general", metadata: object(levels: n))
        },
    ]

    private static let userCases: [LimitedField] = [
        LimitedField("user.upsert user", Limits.identifierLength) { n, _ in UpsertUser(user: UserID(text(n))) },
        LimitedField("user.upsert displayName", Limits.displayNameLength) { n, _ in UpsertUser(user: "eve", displayName: text(n)) },
        LimitedField("user.upsert status", Limits.displayNameLength) { n, _ in UpsertUser(user: "eve", status: text(n)) },
        LimitedField("user.upsert avatarFileId", Limits.fileIDLength) { n, _ in UpsertUser(user: "eve", avatarFileId: text(n)) },
        LimitedField("user.upsert metadata bytes", Limits.metadataSizeBytes) { n, _ in
            UpsertUser(user: "eve", metadata: object(bytes: n))
        },
        LimitedField("user.upsert metadata levels", Limits.metadataDepth) { n, _ in
            UpsertUser(user: "eve", metadata: object(levels: n))
        },
        LimitedField("token.revoke tokenId", Limits.identifierLength) { n, _ in RevokeToken(tokenId: text(n)) },
        LimitedField("user.updateMe displayName", Limits.displayNameLength) { n, _ in UpdateMe(displayName: text(n)) },
        LimitedField("user.updateMe avatarFileId", Limits.fileIDLength) { n, _ in UpdateMe(avatarFileId: text(n)) },
        LimitedField("user.updateMe status", Limits.displayNameLength) { n, _ in UpdateMe(status: text(n)) },
        LimitedField("user.updateMe metadata bytes", Limits.metadataSizeBytes) { n, _ in UpdateMe(metadata: object(bytes: n)) },
        LimitedField("user.updateMe metadata levels", Limits.metadataDepth) { n, _ in UpdateMe(metadata: object(levels: n)) },
        LimitedField("user.getMany users", Limits.usersPerCall) { n, _ in GetUsers(users: users(n)) },
        LimitedField("user.listPresence users", Limits.usersPerCall) { n, _ in ListUserPresence(users: users(n)) },
        LimitedField("user.listChanged versions", Limits.changedUsersPerCall) { n, _ in
            ListChangedUsers(versions: Dictionary(uniqueKeysWithValues: (0..<n).map { ("u\($0)", Int64($0)) }))
        },
    ]

    private static let messageCases: [LimitedField] = [
        LimitedField("message.send clientId", Limits.identifierLength) { n, _ in
            SendMessage(channel: "general", clientId: ClientID(text(n)), text: "x")
        },
        LimitedField("message.send text", Limits.messageTextLength) { n, _ in
            SendMessage(channel: "general", clientId: "2", text: text(n))
        },
        LimitedField("message.send customType", Limits.customTypeLength) { n, _ in
            SendMessage(channel: "general", clientId: "2", text: "x", customType: text(n))
        },
        LimitedField("message.send data", Limits.messageDataLength) { n, _ in
            SendMessage(channel: "general", clientId: "2", text: "x", data: text(n))
        },
        LimitedField("message.send tags", Limits.messageTags) { n, _ in
            SendMessage(channel: "general", clientId: "2", text: "x", tags: tags(n))
        },
        LimitedField("message.send tag", Limits.tagLength) { n, _ in
            SendMessage(channel: "general", clientId: "2", text: "x", tags: [text(n)])
        },
        LimitedField("message.send metadata bytes", Limits.metadataSizeBytes) { n, _ in
            SendMessage(channel: "general", clientId: "2", text: "x", metadata: object(bytes: n))
        },
        LimitedField("message.send metadata levels", Limits.metadataDepth) { n, _ in
            SendMessage(channel: "general", clientId: "2", text: "x", metadata: object(levels: n))
        },
        LimitedField("draft.set text", Limits.messageTextLength) { n, _ in SetDraft(channel: "general", text: text(n)) },
        LimitedField("message.edit text", Limits.messageTextLength) { n, id in
            EditMessage(channel: "general", message: id, text: text(n))
        },
        LimitedField("message.edit customType", Limits.customTypeLength) { n, id in
            EditMessage(channel: "general", message: id, customType: text(n))
        },
        LimitedField("message.edit data", Limits.messageDataLength) { n, id in
            EditMessage(channel: "general", message: id, data: text(n))
        },
        LimitedField("message.edit tags", Limits.messageTags) { n, id in EditMessage(channel: "general", message: id, tags: tags(n))
        },
        LimitedField("message.edit tag", Limits.tagLength) { n, id in EditMessage(channel: "general", message: id, tags: [text(n)])
        },
        LimitedField("message.edit metadata bytes", Limits.metadataSizeBytes) { n, id in
            EditMessage(channel: "general", message: id, metadata: object(bytes: n))
        },
        LimitedField("message.edit metadata levels", Limits.metadataDepth) { n, id in
            EditMessage(channel: "general", message: id, metadata: object(levels: n))
        },
        LimitedField("message.list limit", Limits.historyPage.max) { n, _ in ListMessages(channel: "general", limit: n) },
    ]

    private static let readCases: [LimitedField] = [
        LimitedField("effect.listDead limit", Limits.effectPage.max) { n, _ in ListDeadEffects(limit: n) },
        LimitedField("member.list limit", Limits.memberPage.max) { n, _ in ListMembers(channel: "general", limit: n) },
        LimitedField("channel.watch limit", Limits.historyPage.max) { n, _ in WatchChannel(channel: "general", limit: n) },
        LimitedField("stream.channelChanges limit", Limits.changesPage.max) { n, _ in
            GetChannelChanges(channel: "general", after: 0, limit: n)
        },
        LimitedField("stream.myChanges limit", Limits.changesPage.max) { n, _ in GetMyChanges(after: 0, limit: n) },
        LimitedField("stream.resume channels", Limits.channelsPerUserMax) { n, _ in
            Resume(after: 0, channels: Dictionary(uniqueKeysWithValues: (0..<n).map { ("c\($0)", Seq(0)) }))
        },
    ]

    @Test("X-01 each field is accepted at its limit, and refused one over it with nothing changed", arguments: cases)
    func atTheLimitAndOneOver(field: LimitedField) throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        for user in Self.users(101) { try world.user(user) }
        let message = try world.send("first", to: "general", as: "ann")
        let before = try world.dump()

        let over = try world.refusal(field.make(field.limit + 1, message.messageId), as: "ann", role: .admin, connection: 1)
        let unchanged = try world.dump() == before
        let fitting = try world.refusal(field.make(field.limit, message.messageId), as: "ann", role: .admin, connection: 1)
        let expected: [AnyHashable?] = [RoostError.Code.limitExceeded, Int64(field.limit), true, nil]
        #expect([over?.code, over?.limit, unchanged, fitting] as [AnyHashable?] == expected)
    }

    @Test("AM-01 a channel has room for its type's maximum of members, and no more")
    func membersPerChannel() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        for user in ["bob", "cid"] as [UserID] { try world.user(user) }
        try world.execute("UPDATE channel_heads SET member_count = \(Limits.membersPerChannel - 1)")
        let codes = try [
            world.code(JoinChannel(channel: "general"), as: "bob"), world.code(JoinChannel(channel: "general"), as: "cid"),
        ]
        #expect(codes == [nil, .memberLimit])
    }

    /// Makes a user a member of this many channels.
    private func fill(_ world: CoreWorld, _ user: UserID, channels count: Int) throws {
        for number in 1...count {
            let id = ChannelID("full-\(number)")
            try world.execute(
                """
                INSERT INTO channels (channel_id, type, is_distinct, tags, change_seq, created_at, updated_at)
                VALUES (\(id), 'community', 0, '[]', 1, 0, 0)
                """)
            try world.execute(
                """
                INSERT INTO channel_heads (channel_id, seq, member_count, message_count, last_activity) VALUES (\(id), 1, 1, 0, 0)
                """)
            try world.execute(
                """
                INSERT INTO members (channel_id, user_id, role, state, joined_at, change_seq, user_seq, read_seq, read_count, last_sent_seq)
                VALUES (\(id), \(user), 'member', 'member', 0, 1, 1, 1, 0, 0)
                """)
        }
    }

    @Test("X-20 a user is a member of 2000 channels at most, joined or created")
    func channelsPerUser() throws {
        let world = try CoreWorld()
        for channel in ["a", "b"] as [ChannelID] { try world.channel(channel, owner: "ann") }
        try world.user("bob")
        try fill(world, "bob", channels: world.options.channelsPerUser - 1)
        let codes = try [
            world.code(JoinChannel(channel: "a"), as: "bob"), world.code(JoinChannel(channel: "b"), as: "bob"),
            world.code(CreateChannel(channel: "c"), as: "bob"), world.code(CreateChannel(channel: "c", users: ["bob"]), as: "ann"),
            world.code(JoinChannel(channel: "a"), as: "bob"),
        ]
        #expect(codes == [nil, .channelLimit, .channelLimit, .channelLimit, nil])
    }

    @Test("X-20 a deleted channel, which can't be left, doesn't count towards a user's channels")
    func deletedChannelsTakeNoRoom() throws {
        let world = try CoreWorld()
        for channel in ["old", "new"] as [ChannelID] { try world.channel(channel, owner: "ann") }
        try world.user("bob")
        try fill(world, "bob", channels: world.options.channelsPerUser - 1)
        try world.perform(JoinChannel(channel: "old"), as: "bob")
        try world.perform(DeleteChannel(channel: "old"), as: "ann")
        #expect(try world.code(JoinChannel(channel: "new"), as: "bob") == nil)
    }
}
