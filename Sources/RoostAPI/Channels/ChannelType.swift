/// The name of a channel's policy. Types are rows of a table, not subclasses: see ``ChannelPolicy``.
public struct ChannelType: RawRepresentable, Codable, Hashable, Sendable, SchemaDescribed, CustomStringConvertible {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public init(from decoder: any Decoder) throws {
        self.init(rawValue: try decoder.singleValueContainer().decode(String.self))
    }
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }
    public var description: String { rawValue }

    /// An open channel that anyone may find and join: the default kind (AM-14).
    public static let community = ChannelType(rawValue: "community")

    public static var schema: Schema { .enumeration(ChannelPolicy.presets.map(\.type.rawValue)) }
    public static var schemaExample: ChannelType { .community }
}

/// What a channel's type decides: who finds, joins, reads and writes, and which limits hold (ledger §8.2).
///
/// No code asks for a type by name; it asks the policy. It is sent to clients as the `config` of a watched channel (ST-05).
public struct ChannelPolicy: Codable, Hashable, Sendable {
    /// Who may do something in the channels of a type. Admins may wherever it doesn't say `nobody`.
    public enum Audience: String, Codable, CaseIterable, Sendable, WireEnumeration {
        case everyone, members, admins, nobody
    }

    public var type: ChannelType
    /// Who may create such a channel through the SDK or the API.
    public var create: Audience
    /// Who learns that the channel exists.
    public var discovery: Audience
    /// Who may become a member without being added.
    public var join: Audience
    /// Who may give up a membership.
    public var leave: Audience
    /// Who may read messages and watch.
    public var read: Audience
    public var send: Audience
    /// Members at most.
    public var maxMembers: Int

    /// Every type that exists, in the order in which they are shown.
    public static let presets: [ChannelPolicy] = [
        ChannelPolicy(
            type: .community, create: .everyone, discovery: .everyone, join: .everyone, leave: .members, read: .members,
            send: .members, maxMembers: Limits.membersPerChannel)
    ]

    /// The policy of a type; nil for a type that doesn't exist.
    public static func named(_ type: ChannelType) -> ChannelPolicy? { presets.first { $0.type == type } }
}
