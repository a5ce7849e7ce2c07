/// The name of a channel's policy. Types are rows of a table, not subclasses: see ``ChannelPolicy``.
///
/// Besides the presets, operators can define their own types, with names of 1 to 64 characters of `a-z`, `0-9`, `-` and `_`.
public struct ChannelType: WireString {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    /// An open channel that anyone may find and join: the default type (AM-14).
    public static let community = ChannelType(rawValue: "community")
    /// Like `community`, but found by its members only; anyone who knows the id may join (AM-15, D-33).
    public static let live = ChannelType(rawValue: "live")
    /// Admins write, everyone reads (AM-16).
    public static let broadcast = ChannelType(rawValue: "broadcast")
    /// A conversation with fixed members, one for each set of members (AM-17, AM-25).
    public static let conversation = ChannelType(rawValue: "conversation")
    /// Kept for apps that still have such channels, which can't be created or changed (AM-19).
    public static let standard = ChannelType(rawValue: "standard")
    /// Like ``standard``, for private channels (AM-19).
    public static let `private` = ChannelType(rawValue: "private")
    /// A group channel, private unless it is created public (SB-03).
    public static let group = ChannelType(rawValue: "group")
    /// A channel for its members (ST-08).
    public static let messaging = ChannelType(rawValue: "messaging")
    /// A channel that non-members can also read and write in (ST-08, D-27).
    public static let livestream = ChannelType(rawValue: "livestream")

    public static var schema: Schema { .string(maxLength: Limits.typeNameLength, pattern: Limits.namePattern) }
    public static var schemaExample: ChannelType { .community }

    /// Throws `invalid_argument` with the field's name if the text can't be a type's name.
    public func validate(field: String) throws(RoostError) { try Limits.check(name: rawValue, field: field) }
}
