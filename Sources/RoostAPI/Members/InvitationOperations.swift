/// Invites users, with a result for each (SB-13, EM-24, AM-42). Users who accept invitations automatically (SB-18) become members at once.
///
/// A user who can't be invited is reported and the others are invited: `already_member`, `already_invited`, `auto_declined`; refused for
/// `not_found`, `banned`, `member_limit` and `limit_exceeded`. A distinct channel is no longer distinct once a new user is invited (SB-05).
/// - Throws: `not_member` (SB-13), `kind_forbids` for a conversation, `not_permitted`.
public struct InviteMembers: Operation {
    public typealias Response = MemberResults
    public static let name = "invitation.send"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/invitations"
    public static let permission = Permission.invitationSend
    public static let summary = "Invite up to 100 users, with a result for each."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// 1 to 100, each once.
    public var users: [UserID]
    /// At most 500 characters, shown to the invited.
    public var welcome: String?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(channel: ChannelID, users: [UserID], welcome: String? = nil) {
        self.channel = channel
        self.users = users
        self.welcome = welcome
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        try Limits.check(users: users, field: "users")
        try Limits.check(welcome, length: Limits.welcomeLength, field: "welcome")
    }
}

/// Accepts the caller's invitation and makes the caller a member (SB-15, EM-25). Accepting again as a member changes nothing.
///
/// - Throws: `not_invited`; `member_limit` and `channel_limit`, which are checked again.
public struct AcceptInvitation: Operation {
    public typealias Response = ChannelView
    public static let name = "invitation.accept"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/invitation/accept"
    public static let permission = Permission.invitationAnswer
    public static let summary = "Accept an invitation, and become a member."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

/// Declines the caller's invitation: joining then takes another one (SB-16, EM-26).
///
/// - Throws: `not_invited`, also when declining a second time (ledger §8.3).
public struct DeclineInvitation: Operation {
    public typealias Response = Invitation
    public static let name = "invitation.decline"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/invitation/decline"
    public static let permission = Permission.invitationAnswer
    public static let summary = "Decline an invitation."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

/// Withdraws invitations: the caller's own, or anyone's if the caller may remove members. The response has a result for each.
public struct WithdrawInvitations: Operation {
    public typealias Response = MemberResults
    public static let name = "invitation.withdraw"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/invitations/withdraw"
    public static let permission = Permission.invitationSend
    public static let summary = "Withdraw up to 100 invitations, with a result for each."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// 1 to 100, each once.
    public var users: [UserID]

    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID, users: [UserID]) {
        self.channel = channel
        self.users = users
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        try Limits.check(users: users, field: "users")
    }
}

/// Returns the pending invitations to a channel, the newest first. For its members.
public struct ListInvitations: Operation {
    public typealias Response = Page<Invitation>
    public static let name = "invitation.list"
    public static let method = HTTPMethod.get
    public static let path = "/v1/channels/{channel}/invitations"
    public static let permission = Permission.invitationList
    public static let summary = "The pending invitations into a channel, paged."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// 1 to 100, 30 when left out.
    public var limit: Int?
    /// Where the page begins: the `nextCursor` of the page before. The first page when left out.
    public var cursor: String?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(channel: ChannelID, limit: Int? = nil, cursor: String? = nil) {
        self.channel = channel
        self.limit = limit
        self.cursor = cursor
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        _ = try Limits.page(limit, Limits.memberPage)
        try Limits.check(cursor, length: Limits.cursorLength, field: "cursor")
    }
}

/// Returns the caller's own pending invitations, the newest first, each with its channel's summary.
public struct ListMyInvitations: Operation {
    public typealias Response = Page<InvitationEntry>
    public static let name = "invitation.mine"
    public static let method = HTTPMethod.get
    public static let path = "/v1/me/invitations"
    public static let permission = Permission.streamRead
    public static let summary = "The caller's pending invitations, paged."

    /// 1 to 100, 30 when left out.
    public var limit: Int?
    /// Where the page begins: the `nextCursor` of the page before. The first page when left out.
    public var cursor: String?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(limit: Int? = nil, cursor: String? = nil) {
        self.limit = limit
        self.cursor = cursor
    }

    public func validate() throws(RoostError) {
        _ = try Limits.page(limit, Limits.memberPage)
        try Limits.check(cursor, length: Limits.cursorLength, field: "cursor")
    }
}
