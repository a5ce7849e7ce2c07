/// Every role that members can have: the three built-in ones and the app's own (ledger §8.4).
public struct ListRoles: Operation {
    public typealias Response = [RoleDefinition]
    public static let name = "role.list"
    public static let method = HTTPMethod.get
    public static let path = "/v1/roles"
    public static let permission = Permission.configRead
    public static let summary = "Every role that members can have."

    // derived: init
    /// Creates a value, which has no fields.
    public init() {}
    public func validate() throws(RoostError) {}
}

/// Creates or replaces a role of the app's own. It applies at once to all members who have it.
///
/// - Throws: `immutable_field` for `owner`, `operator` and `member`, `limit_exceeded` for the 26th role.
public struct PutRole: Operation {
    public typealias Response = RoleDefinition
    public static let name = "role.put"
    public static let method = HTTPMethod.put
    public static let path = "/v1/roles/{role}"
    public static let permission = Permission.configManage
    public static let summary = "Create or replace a custom role. For admins."

    /// The name of the role.
    public var role: ChannelRole
    /// 0 to 99; higher ranks are above lower ones. An operator has 50.
    public var rank: Int
    /// Some of `Permission.grantable`.
    public var permissions: [Permission]

    // derived: init
    /// Creates a value with these fields.
    public init(role: ChannelRole, rank: Int, permissions: [Permission]) {
        self.role = role
        self.rank = rank
        self.permissions = permissions
    }

    public func validate() throws(RoostError) {
        try role.validate(field: "role")
        guard (0...99).contains(rank) else { throw .invalidArgument("rank", "must be 0 to 99") }
        guard permissions.count <= Permission.grantable.count else {
            throw .limitExceeded("permissions", limit: Permission.grantable.count, unit: "permissions")
        }
        for permission in permissions where !Permission.grantable.contains(permission) {
            throw .invalidArgument("permissions", "can't hold \(permission.rawValue), which no role grants")
        }
    }
}

/// Deletes a role of the app's own. Its members act as ordinary members but keep its name: if a role of that name is defined again, they
/// have it. Does nothing if the role doesn't exist.
///
/// - Throws: `immutable_field` for a built-in role.
public struct DeleteRole: Operation {
    public typealias Response = Done
    public static let name = "role.delete"
    public static let method = HTTPMethod.delete
    public static let path = "/v1/roles/{role}"
    public static let permission = Permission.configManage
    public static let summary = "Delete a custom role. For admins."

    /// The role to delete: one of the app's own.
    public var role: ChannelRole
    // derived: init
    /// Creates a value with these fields.
    public init(role: ChannelRole) { self.role = role }
    public func validate() throws(RoostError) { try role.validate(field: "role") }
}
