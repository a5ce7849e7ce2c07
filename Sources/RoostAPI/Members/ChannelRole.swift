/// The name of a role in a channel: `owner`, `operator`, `member`, or one that the app's admins defined (ledger §8.4).
public struct ChannelRole: WireString {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Every member without another role.
    public static let member = ChannelRole(rawValue: "member")
    /// The moderator of a channel (SB-22).
    public static let `operator` = ChannelRole(rawValue: "operator")
    /// The creator of a channel (D-17), or a later owner.
    public static let owner = ChannelRole(rawValue: "owner")

    public static var schema: Schema { .string(maxLength: Limits.typeNameLength, pattern: Limits.namePattern) }
    public static var schemaExample: ChannelRole { .member }

    /// Throws `invalid_argument` with the field's name if the text can't be a role's name.
    public func validate(field: String) throws(RoostError) { try Limits.check(name: rawValue, field: field) }
}

/// A role's permissions in a channel beyond those that the channel's type gives to all members.
public struct RoleDefinition: Codable, Hashable, Sendable {
    /// The role being defined.
    public var role: ChannelRole
    /// A member may remove members of a lower rank, and give roles up to their own: 0 for members, 50 for operators, 100 for owners.
    public var rank: Int
    /// The permissions granted where the type leaves them to operators. In the order of `Permission.allCases`.
    public var permissions: [Permission]  // wire: read as KnownNames<Permission>

    // derived: init
    /// Creates a value with these fields.
    public init(role: ChannelRole, rank: Int, permissions: [Permission]) {
        self.role = role
        self.rank = rank
        self.permissions = permissions
    }

    // derived: init(from:)
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        role = try container.decode(ChannelRole.self, forKey: .role)
        rank = try container.decode(Int.self, forKey: .rank)
        permissions = try container.decode(KnownNames<Permission>.self, forKey: .permissions).value
    }

    /// The roles that every channel has. They can't be changed.
    public static let builtIn: [RoleDefinition] = [
        RoleDefinition(role: .owner, rank: 100, permissions: Permission.grantable),
        RoleDefinition(role: .operator, rank: 50, permissions: Permission.allCases.filter { $0.row.grantedBy == .operator }),
        RoleDefinition(role: .member, rank: 0, permissions: []),
    ]

    /// Returns a built-in role by its name; nil for one of the app's own.
    public static func builtIn(_ role: ChannelRole) -> RoleDefinition? { builtIn.first { $0.role == role } }
}

extension RoleDefinition: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("role", role)
        json.member("rank", rank)
        json.member("permissions", permissions)
        json.endObject()
    }
}
