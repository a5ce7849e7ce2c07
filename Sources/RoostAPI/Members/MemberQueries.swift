/// The members to list. Several states together select members in any of them (MN-15, D-21).
public enum MemberFilter: String, Codable, CaseIterable, Sendable, WireEnumeration {
    /// Members.
    case member
    /// Members who are currently muted. For callers with `member.listMuted` (D-28).
    case muted
    /// Users who are currently banned. For callers with `member.listBanned` (D-28, MN-18).
    case banned
}

/// The order of a member list.
public enum MemberSort: String, Codable, CaseIterable, Sendable, WireEnumeration {
    /// The earliest member first (AM-39).
    case firstCreated
    /// The latest member first.
    case lastCreated
    /// By user id.
    case userId

    /// The direction in which the key sorts by default.
    public var defaultOrder: SortDirection { self == .lastCreated ? .descending : .ascending }
}

/// The members of a channel, paged (AM-39, AM-42, SB-22, EM-21).
///
/// - Throws: `not_permitted` for states that the caller may not list (D-28), `kind_forbids` for states that the type doesn't have.
public struct ListMembers: Operation {
    public typealias Response = Page<MemberEntry>
    public static let name = "member.list"
    public static let method = HTTPMethod.get
    public static let path = "/v1/channels/{channel}/members"
    public static let permission = Permission.memberList
    public static let summary = "The members of a channel, paged."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// `member` when left out; at most 3.
    public var states: [MemberFilter]?
    /// Only members with one of these roles; at most 10.
    public var roles: [ChannelRole]?
    /// `firstCreated` when left out.
    public var sort: MemberSort?
    /// The direction of the sort `userId`; `ascending` when left out (ST-09). The other sorts imply their own.
    public var order: SortDirection?
    /// 1 to 100, 30 when left out.
    public var limit: Int?
    /// From an earlier page: its `nextCursor` for the page after it, its `previousCursor` for the page before it.
    public var cursor: String?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        channel: ChannelID, states: [MemberFilter]? = nil, roles: [ChannelRole]? = nil, sort: MemberSort? = nil,
        order: SortDirection? = nil, limit: Int? = nil, cursor: String? = nil
    ) {
        self.channel = channel
        self.states = states
        self.roles = roles
        self.sort = sort
        self.order = order
        self.limit = limit
        self.cursor = cursor
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        try Limits.check(states: states, roles: roles)
        guard order == nil || sort == .userId else {
            throw .invalidArgument("order", "requires the sort userId: firstCreated and lastCreated have their own direction")
        }
        _ = try Limits.page(limit, Limits.memberPage)
        try Limits.check(cursor, length: Limits.cursorLength, field: "cursor")
    }

    /// The direction, or the sort's usual one.
    public var effectiveOrder: SortDirection { order ?? (sort ?? .firstCreated).defaultOrder }
}

/// The members whose name or id matches a text, the newest membership first (MN-14, MN-15).
///
/// Case and diacritics are ignored. A text of one or two letters matches the beginning of a word of the name, a longer one any part of it;
/// either matches the beginning of the id. A page can hold fewer rows than requested, even none, and still have a `nextCursor`: one call's
/// search is bounded.
/// - Throws: `not_permitted` for the state `banned` without the right to search it (MN-18), `kind_forbids` where the type has no such tools.
public struct SearchMembers: Operation {
    public typealias Response = Page<MemberEntry>
    public static let name = "member.search"
    public static let method = HTTPMethod.get
    public static let path = "/v1/channels/{channel}/member-search"
    public static let permission = Permission.memberList
    public static let summary = "The members whose name or id matches a text, the newest first."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// 1 to 128 characters.
    public var text: String
    /// `member` when left out; at most 3.
    public var states: [MemberFilter]?
    /// Only members with one of these roles; at most 10.
    public var roles: [ChannelRole]?
    /// 1 to 100, 30 when left out.
    public var limit: Int?
    /// Where the page begins: the `nextCursor` of the page before. The first page when left out.
    public var cursor: String?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        channel: ChannelID, text: String, states: [MemberFilter]? = nil, roles: [ChannelRole]? = nil, limit: Int? = nil,
        cursor: String? = nil
    ) {
        self.channel = channel
        self.text = text
        self.states = states
        self.roles = roles
        self.limit = limit
        self.cursor = cursor
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        guard !text.isEmpty else { throw .invalidArgument("text", "must not be empty") }
        try Limits.check(text, length: Limits.displayNameLength, field: "text")
        try Limits.check(states: states, roles: roles)
        _ = try Limits.page(limit, Limits.memberPage)
        try Limits.check(cursor, length: Limits.cursorLength, field: "cursor")
    }
}

/// Returns one member of a channel; also answers whether a user is a member (EM-20).
///
/// - Throws: `not_found` with the field `user` for non-members.
public struct GetMember: Operation {
    public typealias Response = MemberEntry
    public static let name = "member.get"
    public static let method = HTTPMethod.get
    public static let path = "/v1/channels/{channel}/members/{user}"
    public static let permission = Permission.memberList
    public static let summary = "One member of a channel."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// The member's user id.
    public var user: UserID
    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID, user: UserID) {
        self.channel = channel
        self.user = user
    }
    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        try user.validate(field: "user")
    }
}

extension Limits {
    /// Throws if filters of a member list are empty or too many. A duplicate counts twice and has no effect.
    fileprivate static func check(states: [MemberFilter]?, roles: [ChannelRole]?) throws(RoostError) {
        if let states {
            guard !states.isEmpty else { throw .invalidArgument("states", "must not be empty") }
            guard states.count <= MemberFilter.allCases.count else {
                throw .limitExceeded("states", limit: MemberFilter.allCases.count, unit: "states")
            }
        }
        if let roles {
            guard !roles.isEmpty else { throw .invalidArgument("roles", "must not be empty") }
            guard roles.count <= rolesPerQuery else { throw .limitExceeded("roles", limit: rolesPerQuery, unit: "roles") }
            for role in roles { try role.validate(field: "roles") }
        }
    }
}
