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

/// An answer of the permission table.
public struct PermissionExplanation: Codable, Hashable, Sendable {
    /// What was asked about.
    public var permission: Permission
    /// Whether the user may do it at this moment.
    public var isAllowed: Bool
    /// The refusal that the operation would give: its code, its rule, and its end if it has one.
    public var refusal: RoostError?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(permission: Permission, isAllowed: Bool, refusal: RoostError? = nil) {
        self.permission = permission
        self.isAllowed = isAllowed
        self.refusal = refusal
    }
}
