import Foundation
import RoostAPI
import RoostTestSupport
import Testing

@testable import RoostCore

/// Pages are bounded by the sizes of their rows. A field missing from these would make them too large.
@Suite("Sizes of rows")
struct ContentSizeTests {
    /// As long as the shortest text that counts. Shorter ones take a few hundred bytes of a row at most.
    private static let text = "https://example.com/".padding(toLength: Limits.welcomeLength, withPad: "a", startingAt: 0)

    /// Many short texts.
    private static let texts = (0..<30).map { JSONValue.string("text-\($0)".padding(toLength: 60, withPad: "a", startingAt: 0)) }

    /// Contents for a field that takes a long text, or many short ones.
    private static let contents: [JSONValue] = [
        .string(text), .array([.string(text)]), .array(Array(texts.prefix(Limits.channelTags))), .object(["k": .string(text)]),
        .object(["k": .array(texts)]),
        .array([.object(["type": .string("user"), "users": .array(texts)])]),
    ]

    /// Returns a value with one of its fields replaced.
    private func setting<Value: Codable>(_ field: String, of value: Value, to content: JSONValue) throws -> Value {
        var fields = try JSONDecoder().decode([String: JSONValue].self, from: Data(JSONWriter.bytes(of: value)))
        fields[field] = content
        return try JSONDecoder().decode(Value.self, from: Data(JSONWriter.bytes(of: JSONValue.object(fields))))
    }

    /// Returns the fields of a row that the request can fill with a long text, and those of them that the row's size leaves out.
    private func longFields<Row: Codable, Request: RoostAPI.Operation>(
        of row: Row, writtenBy request: Request, sizeBytes: (Row) -> Int
    ) throws -> (all: [String], uncounted: [String]) {
        let names = Set(try Schema.of(Row.self).fields.map(\.name))
        let writtenBytes = try JSONWriter.bytes(of: row).count
        var all: [String] = []
        var uncounted: [String] = []
        for name in try Schema.of(Request.self).fields.map(\.name) where names.contains(name) {
            for content in Self.contents {
                guard let given = try? setting(name, of: request, to: content), (try? given.validate()) != nil,
                    let stored = try? setting(name, of: row, to: content)
                else { continue }
                // A field for other values may have been read as nothing. One that was null before takes a little less.
                guard try JSONWriter.bytes(of: stored).count - writtenBytes >= Self.text.count / 2 else { continue }
                if !all.contains(name) { all.append(name) }
                if sizeBytes(stored) - sizeBytes(row) < Self.text.count / 2 { uncounted.append(name) }
            }
        }
        return (all, uncounted)
    }

    private let time = Timestamp(milliseconds: 0)

    @Test("every field of a message that may be long counts in its size")
    func message() throws {
        let message = Message(
            messageId: MessageID(rawValue: 1), channelId: "general", seq: 1, changeSeq: 1, sender: "ann", clientId: "1", text: "x",
            createdAt: time)
        let request = SendMessage(channel: "general", clientId: "1", text: "x")
        let fields = try longFields(of: message, writtenBy: request) { $0.contentSizeBytes }
        #expect(fields.uncounted == [] && fields.all == ["text", "data", "metadata", "mentionees", "metaArrays"])
    }

    @Test("every field of a channel that may be long counts in its size")
    func channel() throws {
        let channel = Channel(
            channelId: "general", type: .group,
            counters: ChannelCounters(seq: 1, memberCount: 1, messageCount: 0, lastActivity: time), createdAt: time,
            updatedAt: time)
        let fields = try longFields(of: channel, writtenBy: CreateChannel()) { $0.contentSizeBytes }
        #expect(fields.uncounted == [] && Set(fields.all) == ["coverUrl", "data", "tags", "metadata"])
    }

    @Test("every field of a draft that may be long counts in its size")
    func draft() throws {
        let draft = ChannelDraft(channelId: "general", text: "x", updatedAt: time, userSeq: 1)
        let fields = try longFields(of: draft, writtenBy: SetDraft(channel: "general", text: "x")) { $0.contentSizeBytes }
        #expect(fields.uncounted == [] && fields.all == ["text", "metadata"])
    }

    @Test("every field of a user that may be long counts in its size")
    func user() throws {
        let user = User(userId: "ann", createdAt: time, updatedAt: time)
        let fields = try longFields(of: user, writtenBy: UpsertUser(user: "ann")) { $0.contentSizeBytes }
        #expect(fields.uncounted == [] && fields.all == ["metadata"])
    }

    @Test("every field of an invitation that may be long counts in its size")
    func invitation() throws {
        let invitation = Invitation(
            channelId: "general", userId: "bob", inviter: "ann", state: .pending, invitedAt: time, revision: 1)
        let request = InviteMembers(channel: "general", users: ["bob"])
        let fields = try longFields(of: invitation, writtenBy: request) { $0.contentSizeBytes }
        #expect(fields.uncounted == [] && fields.all == ["welcome"])
    }

    @Test("a page of small messages with the longest ids and types counts them")
    func longNames() throws {
        let long = String(repeating: "é", count: Limits.identifierLength)
        let message = Message(
            messageId: MessageID(rawValue: 1), channelId: ChannelID(long), seq: 1, changeSeq: 1, sender: UserID(long),
            clientId: ClientID(long),
            content: MessageContent(
                text: "x", customType: long,
                targetLanguages: (0..<10).map { "de-\($0)".padding(toLength: 35, withPad: "x", startingAt: 0) }),
            createdAt: time)
        let sizeBytes = try JSONWriter.bytes(of: message).count
        #expect(message.contentSizeBytes > sizeBytes / 10 * 9)
    }

    @Test("a page of channels with the longest ids, names and tags counts them")
    func longChannelNames() throws {
        let long = String(repeating: "é", count: Limits.identifierLength)
        let tags = (0..<Limits.channelTags).map { "\($0)".padding(toLength: Limits.tagLength, withPad: "é", startingAt: 0) }
        let channel = Channel(
            channelId: ChannelID(long), type: .group, displayName: long, avatarFileId: long, customType: long, metadata: ["a": 1],
            metadataVersion: 1, metadataUpdatedBy: UserID(long), tags: tags,
            policy: PolicyChanges(join: .everyone, send: .operators, invitationAudience: .members, typingEvents: false),
            counters: ChannelCounters(seq: 1, memberCount: 1, messageCount: 0, lastActivity: time), createdBy: UserID(long),
            createdAt: time, updatedAt: time)
        let membership = Membership(
            channelId: ChannelID(long), role: .owner, state: .member, joinedAt: time, joinedSeq: 1, readSeq: 1, readCount: 0,
            channelSeq: 1, userSeq: 1)
        let invitation = Invitation(
            channelId: ChannelID(long), userId: UserID(long), inviter: UserID(long), state: .pending, invitedAt: time, revision: 1)
        let view = ChannelView(
            channel: channel, membership: membership, invitation: invitation, ownCapabilities: Permission.allCases)
        let sizes: [(counted: Int, written: Int)] = [
            (channel.contentSizeBytes, try JSONWriter.bytes(of: channel).count),
            (membership.contentSizeBytes, try JSONWriter.bytes(of: membership).count),
            (invitation.contentSizeBytes, try JSONWriter.bytes(of: invitation).count),
            (view.contentSizeBytes, try JSONWriter.bytes(of: view).count),
        ]
        for (counted, written) in sizes { #expect(counted > written / 10 * 9) }
    }

    @Test("a page of users or members with the longest ids and names counts them")
    func longUserNames() throws {
        let id = UserID(String(repeating: "é", count: Limits.identifierLength))
        let name = String(repeating: "🇩🇪", count: Limits.displayNameLength)
        let user = User(
            userId: id, displayName: name, avatarFileId: name, status: name, metadata: ["a": 1], createdAt: time, updatedAt: time)
        let member = Member(userId: id, role: .member, state: .member, joinedAt: time, joinedSeq: 1, changeSeq: 1)
        let entry = MemberEntry(member: member, user: user, isOnline: true)
        #expect(try user.contentSizeBytes >= JSONWriter.bytes(of: user).count)
        #expect(try entry.contentSizeBytes >= JSONWriter.bytes(of: entry).count)
    }

    @Test("X-01 SB-37 R21 a whole message has a limit, on sending, on editing and through its lists")
    func whole() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        let wide = String(repeating: "é", count: 128)
        func values(_ count: Int) -> [String] { (0..<count).map { "\(100 + $0)\(wide.dropFirst(3))" } }
        let lists = Dictionary(uniqueKeysWithValues: (0..<10).map { ("list-\($0)", values(100)) })
        let text = String(repeating: "é", count: 20_000)
        let data = String(repeating: "\u{1}", count: 20_000)
        let metadata = JSONValue.object(["a": .string(String(repeating: "b", count: 99_000))])
        let limit = Limits.messageContentSizeBytes
        func refusal(_ operation: some Handled) throws -> (field: String?, limit: Int64?) {
            let refusal = try world.refusal(operation, as: "ann")
            return (refusal?.code == .limitExceeded ? refusal?.field : nil, refusal?.limit)
        }
        let tooLarge = try refusal(
            SendMessage(channel: "general", clientId: "1", text: text, data: data, metadata: metadata, metaArrays: lists))
        #expect(tooLarge == ("metaArrays", Int64(limit)))
        let sent = try world.perform(
            SendMessage(channel: "general", clientId: "1", text: text, metadata: metadata, metaArrays: lists), as: "ann")
        #expect(sent.content.sizeBytes <= limit)
        let before = try world.dump()
        #expect(try refusal(EditMessage(channel: "general", message: sent.messageId, data: data)) == ("metaArrays", Int64(limit)))
        #expect(try world.dump() == before)
    }

    @Test("I18 the users sent with a page of messages are limited, and include the senders")
    func accompanyingUsers() throws {
        let world = try CoreWorld()
        let senders = (0..<20).map { UserID("sender-\($0)") }
        try world.channel("general", owner: "ann", members: senders)
        let members = (0..<220).map { UserID("a\($0)") }
        for user in members { try world.user(user) }
        for start in stride(from: 0, to: 220, by: 100) {
            try world.perform(AddMembers(channel: "general", users: Array(members[start..<min(220, start + 100)])), as: "ann")
        }
        for (number, sender) in senders.enumerated() {
            let named = (0..<11).map { members[number * 11 + $0] }
            try world.perform(
                SendMessage(channel: "general", clientId: "1", text: "x", mentionees: [.users(named)]), as: sender)
        }
        let users = try world.perform(ListMessages(channel: "general", limit: 100), as: "ann").users ?? []
        #expect(users.count == Limits.usersPerChanges && Set(senders).isSubset(of: users.map(\.userId)))
    }
}
