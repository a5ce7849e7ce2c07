/// Every channel type: the presets and the operator's own, each with its whole policy (ledger §8.2).
public struct ListChannelTypes: Operation {
    public typealias Response = [ChannelPolicy]
    public static let name = "type.list"
    public static let method = HTTPMethod.get
    public static let path = "/v1/channel-types"
    public static let permission = Permission.configRead
    public static let summary = "Every channel type with its policy."

    // derived: init
    /// Creates a value, which has no fields.
    public init() {}
    public func validate() throws(RoostError) {}
}

/// Creates or replaces a channel type of the app's own. It applies at once to all channels of the type, except `discovery` and `join`, which
/// a channel keeps from its creation; connected clients receive their new capabilities with the next channel state sent to them.
///
/// - Throws: `immutable_field` for the name of a preset, `not_found` with the field `basedOn`, `limit_exceeded` for the 51st type.
public struct PutChannelType: Operation {
    public typealias Response = ChannelPolicy
    public static let name = "type.put"
    public static let method = HTTPMethod.put
    public static let path = "/v1/channel-types/{type}"
    public static let permission = Permission.configManage
    public static let summary = "Create or replace a custom channel type. For admins."

    /// The name of the type.
    public var type: ChannelType
    /// The preset that provides the rules absent from `policy`; `community` when left out.
    public var basedOn: ChannelType?
    /// The rules that differ from the preset's.
    public var policy: PolicyChanges?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(type: ChannelType, basedOn: ChannelType? = nil, policy: PolicyChanges? = nil) {
        self.type = type
        self.basedOn = basedOn
        self.policy = policy
    }

    public func validate() throws(RoostError) {
        try type.validate(field: "type")
        try basedOn?.validate(field: "basedOn")
        try policy?.validate(field: "policy")
    }
}

/// Deletes a channel type of the app's own. Does nothing if it doesn't exist.
///
/// - Throws: `immutable_field` for a preset, and for a type in use by channels.
public struct DeleteChannelType: Operation {
    public typealias Response = Done
    public static let name = "type.delete"
    public static let method = HTTPMethod.delete
    public static let path = "/v1/channel-types/{type}"
    public static let permission = Permission.configManage
    public static let summary = "Delete a custom channel type that no channel has. For admins."

    /// The type to delete: one of the app's own, not in use by any channel.
    public var type: ChannelType
    // derived: init
    /// Creates a value with these fields.
    public init(type: ChannelType) { self.type = type }
    public func validate() throws(RoostError) { try type.validate(field: "type") }
}
