/// Joins a channel. Joining a channel that the caller is a member of changes nothing and returns the same (AM-26). Joining accepts an invitation.
///
/// - Throws: `invite_required` for a private channel, `banned` with the end of the ban, `member_limit`, `channel_limit`, `kind_forbids`.
public struct JoinChannel: Operation {
    public typealias Response = ChannelView
    public static let name = "member.join"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/join"
    public static let permission = Permission.memberJoin
    public static let summary = "Join a channel. Joining again changes nothing."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

/// Leaves a channel (AM-41). A non-member's call changes nothing. A distinct channel is no longer distinct afterwards (SB-05).
///
/// - Throws: `kind_forbids` for a conversation (AM-18); `not_found` for a channel hidden from the caller, such as a private one after leaving it.
public struct LeaveChannel: Operation {
    public typealias Response = Done
    public static let name = "member.leave"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/leave"
    public static let permission = Permission.memberLeave
    public static let summary = "Leave a channel. Leaving again changes nothing."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID) { self.channel = channel }
    public func validate() throws(RoostError) { try channel.validate(field: "channel") }
}

/// Makes users members at once, without asking them (AM-40). All are added in one change of the channel; the response has a result for each.
///
/// A user who can't be added is reported and the others are added: `already_member`, `not_found`, `banned`, `member_limit`, `channel_limit`.
/// - Throws: `kind_forbids` for a conversation (AM-18), `not_permitted`.
public struct AddMembers: Operation {
    public typealias Response = MemberResults
    public static let name = "member.add"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/members"
    public static let permission = Permission.memberAdd
    public static let summary = "Make up to 100 users members, with a result for each."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// 1 to 100, each once.
    public var users: [UserID]
    /// Whether earlier messages are hidden from them. If the app hides these from all new members, they are hidden either way:
    /// ``AppOptions/showsHistoryToNewMembers`` (D-11).
    public var hideHistory: Bool?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(channel: ChannelID, users: [UserID], hideHistory: Bool? = nil) {
        self.channel = channel
        self.users = users
        self.hideHistory = hideHistory
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        try Limits.check(users: users, field: "users")
    }
}

/// Ends the membership of users with a lower role than the caller's (AM-40, R13). The response has a result for each.
///
/// - Throws: `kind_forbids` for a conversation (AM-18), `not_permitted`.
public struct RemoveMembers: Operation {
    public typealias Response = MemberResults
    public static let name = "member.remove"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/members/remove"
    public static let permission = Permission.memberRemove
    public static let summary = "Remove up to 100 members, with a result for each."

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

/// Gives members a role (AM-47, SB-10, R33). The caller's own role has to be above each member's current one, at least as high as the new
/// one, and grant everything that the new one grants. Callers who may give roles may also lower their own. An owner who makes another
/// member the owner becomes an operator.
///
/// - Throws: `not_found` with the field `role` for a role that doesn't exist, `kind_forbids`, `not_permitted`.
public struct SetMemberRole: Operation {
    public typealias Response = MemberResults
    public static let name = "member.setRole"
    public static let method = HTTPMethod.post
    public static let path = "/v1/channels/{channel}/members/role"
    public static let permission = Permission.memberSetRole
    public static let summary = "Give up to 100 members a role, with a result for each."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// 1 to 100, each once; exactly one if the role is `owner`.
    public var users: [UserID]
    /// The role to give.
    public var role: ChannelRole

    // derived: init
    /// Creates a value with these fields.
    public init(channel: ChannelID, users: [UserID], role: ChannelRole) {
        self.channel = channel
        self.users = users
        self.role = role
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        try Limits.check(users: users, field: "users")
        try role.validate(field: "role")
        guard role != .owner || users.count == 1 else {
            throw .limitExceeded("users", limit: 1, unit: "users, since a channel has one owner")
        }
    }
}

/// The results of an operation on several users, in the order given.
public struct MemberResults: Codable, Hashable, Sendable {
    /// One for each user, in the order of the call.
    public var results: [MemberResult]
    // derived: init
    /// Creates a value with these fields.
    public init(results: [MemberResult]) { self.results = results }
}

extension MemberResults: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("results", results)
        json.endObject()
    }
}

/// The result for one user.
public struct MemberResult: Codable, Hashable, Sendable {
    /// The outcome. Those that begin with `already` or `not` changed nothing.
    public enum Outcome: OpenWireEnumeration {
        /// Done as requested.
        case added, removed, changed, invited, withdrawn
        /// The user was already a member.
        case alreadyMember
        /// The user was already invited, and hasn't answered.
        case alreadyInvited
        /// It already was as requested.
        case unchanged
        /// The user isn't a member.
        case notMember
        /// The user has no pending invitation.
        case notInvited
        /// Declined for the user, who has reached the limit of channels.
        case autoDeclined
        /// See `error`.
        case refused
        /// An outcome unknown to this version.
        case unknown(String)

        public static let allCases: [Outcome] = [
            .added, .removed, .changed, .invited, .withdrawn, .alreadyMember, .alreadyInvited, .unchanged, .notMember, .notInvited,
            .autoDeclined, .refused,
        ]

        public var rawValue: String {
            switch self {
            case .added: "added"
            case .removed: "removed"
            case .changed: "changed"
            case .invited: "invited"
            case .withdrawn: "withdrawn"
            case .alreadyMember: "already_member"
            case .alreadyInvited: "already_invited"
            case .unchanged: "unchanged"
            case .notMember: "not_member"
            case .notInvited: "not_invited"
            case .autoDeclined: "auto_declined"
            case .refused: "refused"
            case .unknown(let name): name
            }
        }
    }

    /// The user that the result is about.
    public var userId: UserID
    /// What was done.
    public var outcome: Outcome
    /// Why nothing was done.
    public var error: RoostError?  // wire: read as LenientError

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(userId: UserID, outcome: Outcome, error: RoostError? = nil) {
        self.userId = userId
        self.outcome = outcome
        self.error = error
    }

    // derived: init(from:)
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        userId = try container.decode(UserID.self, forKey: .userId)
        outcome = try container.decode(Outcome.self, forKey: .outcome)
        error = try container.decodeIfPresent(LenientError.self, forKey: .error)?.value
    }
}

extension MemberResult: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("userId", userId)
        json.member("outcome", outcome)
        json.member("error", error)
        json.endObject()
    }
}
