import RoostAPI
import RoostCore
import RoostTestSupport

/// Random channels of every kind in every state, and what a query has to find among them: by reading each channel, as
/// `GetChannel` shows it to the caller, and applying all the filters in Swift.
struct QueryOracle {
    let world: CoreWorld
    var random: SeededGenerator
    let users: [UserID] = ["ann", "bob", "cid", "dan"]
    private(set) var channels: [ChannelID] = []
    /// Views already computed, by user and role.
    private var seen: [[String]: [Seen]] = [:]
    let tags = ["red", "green", "blue"]
    let names: [String?] = [
        nil, "Général", "general talk", "Ten 100%", "Ten 100x", "snake_case", "snakeXcase", "Straße 9", "a!b", "Tea",
        "नमस्ते दोस्त",
    ]
    let customTypes: [String?] = [nil, "support", "sales"]

    init(seed: UInt64, channels count: Int) throws {
        world = try CoreWorld()
        random = SeededGenerator(seed: seed)
        for user in users { try world.user(user) }
        for _ in 0..<count { try makeChannel() }
        for _ in 0..<count { try changeSomething() }
    }

    private mutating func makeChannel() throws {
        world.advance(milliseconds: Int64(random.number(0...3)))
        let type = random.pick([ChannelType.community, .live, .broadcast, .conversation, .group, .messaging, .livestream])
        let creator = random.pick(users)
        var users = users.filter { _ in random.once(in: 2) }
        if type == .conversation, Set(users).subtracting([creator]).isEmpty { users = self.users }
        let create = CreateChannel(
            channel: ChannelID("channel-\(channels.count)"), type: type, displayName: random.pick(names),
            tags: tags.filter { _ in random.once(in: 3) }, users: users
        ).with { [customType = random.pick(customTypes)] in $0.customType = customType }
        let view = try world.perform(create, as: creator, role: type == .broadcast ? .admin : .user)
        if !channels.contains(view.channel.channelId) { channels.append(view.channel.channelId) }
    }

    /// Tries an operation that its caller may or may not be allowed.
    private mutating func changeSomething() throws {
        world.advance(milliseconds: Int64(random.number(0...3)))
        let (channel, user) = (random.pick(channels), random.pick(users))
        let role: AppRole = random.once(in: 2) ? .user : .admin
        switch random.number(1...12) {
        case 1...4:
            _ = try world.refusal(SendMessage(channel: channel, clientId: ClientID("\(random.next())"), text: "x"), as: user)
        case 5: _ = try world.refusal(MarkRead(channel: channel), as: user)
        case 6...7:
            let hide = HideChannel(
                channel: channel, hidePreviousMessages: random.once(in: 3), allowAutoUnhide: random.once(in: 2))
            _ = try world.refusal(hide, as: user)
        case 8: _ = try world.refusal(FreezeChannel(channel: channel), as: user, role: role)
        case 9: _ = try world.refusal(DeleteChannel(channel: channel), as: user, role: role)
        case 10: _ = try world.refusal(LeaveChannel(channel: channel), as: user)
        case 11:
            // As the moderation tools will do: a ban ends the membership.
            _ = try world.refusal(LeaveChannel(channel: channel), as: user)
            try world.execute(
                """
                UPDATE members SET banned_until = \(random.once(in: 2) ? .forever : world.now)
                WHERE channel_id = \(channel) AND user_id = \(user) AND state = 'none'
                """)
        default:
            let update = UpdateChannel(channel: channel, displayName: random.pick(names) ?? "", tags: [random.pick(tags)])
                .with { [isPublic = random.once(in: 2)] in $0.isPublic = isPublic }
            _ = try world.refusal(update, as: user, role: role)
        }
    }

    // MARK: Asking

    /// All of a query's results, page after page.
    func answer(_ query: QueryChannels, as user: UserID, role: AppRole, pages limit: Int = 100) throws -> [ChannelID] {
        var query = query
        query.limit = limit
        var found: [ChannelID] = []
        repeat {
            let page = try world.perform(query, as: user, role: role)
            found += page.items.map(\.channel.channelId)
            query.cursor = page.nextCursor
        } while query.cursor != nil
        return found
    }

    /// The expected answer.
    mutating func expected(_ query: QueryChannels, as user: UserID, role: AppRole) throws -> [ChannelID] {
        let seen = try seen[[user.rawValue, role.rawValue]] ?? look(as: user, role: role)
        self.seen[[user.rawValue, role.rawValue]] = seen
        return seen.filter { wants($0, query, user) }.sorted { one, other in
            query.effectiveOrder == query.effectiveSort.defaultOrder
                ? precedes(one, other, query.effectiveSort) : precedes(other, one, query.effectiveSort)
        }.map(\.view.channel.channelId)
    }

    /// Every channel as a user sees it. Nothing changes between two queries.
    private func look(as user: UserID, role: AppRole) throws -> [Seen] {
        let own = Set(try world.rows("SELECT channel_id FROM members WHERE user_id = \(user) AND state = 'member'") { $0.string() })
        return try channels.compactMap { channel -> Seen? in
            guard let view = try? world.perform(GetChannel(channel: channel), as: user, role: role) else { return nil }
            let members: [UserID] = try world.rows(
                "SELECT user_id FROM members WHERE channel_id = \(channel) AND state = 'member'"
            ) { $0.identifier() }
            return Seen(view: view, isOwn: own.contains(channel.rawValue), members: Set(members))
        }
    }

    private struct Seen {
        let view: ChannelView
        /// Whether the caller is a member, or was when the channel was deleted.
        let isOwn: Bool
        let members: Set<UserID>

        var channel: Channel { view.channel }
        var name: [UInt8] { Array(QueryOracle.folded(channel.displayName).utf8) }
        var listedAt: Timestamp { channel.counters.lastMessageAt ?? channel.createdAt }
        var id: [UInt8] { Array(channel.channelId.rawValue.utf8) }
    }

    private func wants(_ seen: Seen, _ query: QueryChannels, _ user: UserID) -> Bool {
        let channel = seen.channel
        let isWanted: [Bool] = [
            query.membership ?? .member == .all || (query.membership ?? .member == .member) == seen.isOwn,
            query.types?.contains(channel.type) ?? true,
            query.ids?.contains(channel.channelId) ?? true,
            query.includingTags.map { !$0.allSatisfy { !channel.tags.contains($0) } } ?? true,
            query.excludingTags.map { $0.allSatisfy { !channel.tags.contains($0) } } ?? true,
            query.customTypes.map { channel.customType.map($0.contains) ?? false } ?? true,
            query.nameContains.map { Self.name(channel.displayName, holds: $0) } ?? true,
            query.isPublic.map { $0 == channel.isPublic } ?? true,
            query.createdBy.map { $0 == channel.createdBy } ?? true,
            query.createdBefore.map { channel.createdAt.milliseconds < $0 } ?? true,
            query.createdAfter.map { channel.createdAt.milliseconds > $0 } ?? true,
            query.includeDeleted == true || channel.deletedAt == nil,
            query.includeEmpty != false || channel.counters.messageCount > 0,
            query.includeFrozen != false || !channel.isFrozen,
            query.membership ?? .member != .member || isShown(seen, query.hidden ?? .unhiddenOnly),
            query.unreadOnly != true || seen.view.unreadCount > 0,
            query.exactUsers.map { seen.members == Set($0).union([user]) } ?? true,
            query.includingUsers.map { users in
                query.includingUsersMatch == .any ? !seen.members.isDisjoint(with: users) : seen.members.isSuperset(of: users)
            } ?? true,
        ]
        return isWanted.allSatisfy { $0 }
    }

    private func isShown(_ seen: Seen, _ filter: HiddenFilter) -> Bool {
        switch filter {
        case .all: true
        case .unhiddenOnly: seen.view.hiddenState == .unhidden
        case .hiddenOnly: seen.view.hiddenState != .unhidden
        case .hiddenAllowAutoUnhide: seen.view.hiddenState == .hiddenAllowAutoUnhide
        case .hiddenPreventAutoUnhide: seen.view.hiddenState == .hiddenPreventAutoUnhide
        }
    }

    private func precedes(_ one: Seen, _ other: Seen, _ sort: ChannelSort) -> Bool {
        func newest<Key: Comparable>(_ key: (Seen) -> Key) -> Bool {
            key(one) == key(other) ? other.id.lexicographicallyPrecedes(one.id) : key(one) > key(other)
        }
        switch sort {
        case .lastMessage: return newest(\.listedAt)
        case .lastActivity: return newest(\.channel.counters.lastActivity)
        case .created: return newest(\.channel.createdAt)
        case .name:
            return one.name == other.name
                ? one.id.lexicographicallyPrecedes(other.id) : one.name.lexicographicallyPrecedes(other.name)
        case .unreadFirst:
            let (left, right) = (one.view.unreadCount > 0, other.view.unreadCount > 0)
            return left == right ? newest(\.listedAt) : left
        }
    }

    // MARK: Names

    /// Enough for the names above.
    private static func folded(_ name: String?) -> String {
        (name ?? "").lowercased().replacing("é", with: "e").replacing("ß", with: "ss")
    }

    private static func name(_ name: String?, holds part: String) -> Bool {
        let (name, part) = (folded(name), folded(part))
        // Letters are scalars, of which a character can have several.
        let (letters, wanted) = (Array(name.unicodeScalars), Array(part.unicodeScalars))
        if wanted.count > 2 {
            return letters.indices.contains { letters[$0...].starts(with: wanted) }
        }
        return name.split { !$0.isLetter && !$0.isNumber }.contains { $0.unicodeScalars.starts(with: wanted) }
    }
}
