/// Whether the caller may do something in a channel, and if not, which rule refuses and until when (AM-48, ledger §7.7).
public struct ExplainPermission: Operation {
    public typealias Response = PermissionExplanation
    public static let name = "permission.explain"
    public static let method = HTTPMethod.get
    public static let path = "/v1/channels/{channel}/permissions/{permission}"
    public static let permission = Permission.streamRead
    public static let summary = "Whether something is allowed in a channel, and if not, why and until when."

    /// The channel: its id, or `type:id` (ST-03).
    public var channel: ChannelID
    /// Named `message.send` and so on.
    public var permission: Permission
    /// Another user to ask about. Only for admins.
    public var user: UserID?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(channel: ChannelID, permission: Permission, user: UserID? = nil) {
        self.channel = channel
        self.permission = permission
        self.user = user
    }

    public func validate() throws(RoostError) {
        try channel.validate(field: "channel")
        try user?.validate(field: "user")
    }
}

/// A result of the permission table.
public struct PermissionExplanation: Codable, Hashable, Sendable {
    /// The permission asked about.
    public var permission: Permission
    /// Whether the user may currently do it.
    public var isAllowed: Bool
    /// The error that the operation would throw: its code, its rule, and when it ends, if it does.
    public var refusal: RoostError?  // wire: read as LenientError

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(permission: Permission, isAllowed: Bool, refusal: RoostError? = nil) {
        self.permission = permission
        self.isAllowed = isAllowed
        self.refusal = refusal
    }

    // derived: init(from:)
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        permission = try container.decode(Permission.self, forKey: .permission)
        isAllowed = try container.decode(Bool.self, forKey: .isAllowed)
        refusal = try container.decodeIfPresent(LenientError.self, forKey: .refusal)?.value
    }
}
