/// The text attributes of a channel, the same in the channel and in the operations that write them.
///
/// Tags and metadata are separate fields. A channel without tags has an empty list, and its metadata has a version.
public struct ChannelAttributes: Hashable, Sendable {
    /// The display name.
    public var displayName: String?
    /// An uploaded file used as the channel's picture (AM-11).
    public var avatarFileId: String?
    /// The address of a picture that the app hosts itself (SB-08).
    public var coverUrl: String?
    /// The app's own classification of the channel (SB-08).
    public var customType: String?
    /// The app's own payload (SB-08).
    public var data: String?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        displayName: String? = nil, avatarFileId: String? = nil, coverUrl: String? = nil, customType: String? = nil,
        data: String? = nil
    ) {
        self.displayName = displayName
        self.avatarFileId = avatarFileId
        self.coverUrl = coverUrl
        self.customType = customType
        self.data = data
    }
}

/// A value with a channel's attributes, which read as its own properties: `channel.displayName`.
@dynamicMemberLookup
public protocol ChannelAttributesCarrying {
    /// The channel's attributes.
    var attributes: ChannelAttributes { get set }
}

extension ChannelAttributesCarrying {
    /// An attribute.
    public subscript<Value>(dynamicMember path: WritableKeyPath<ChannelAttributes, Value>) -> Value {
        get { attributes[keyPath: path] }
        set { attributes[keyPath: path] = newValue }
    }
}

extension ChannelAttributes {
    /// Throws if an attribute is outside its limits. An empty text is allowed: it removes a value.
    public func validate() throws(RoostError) {
        try Limits.check(displayName: displayName)
        try Limits.check(avatarFileId, length: Limits.fileIDLength, field: "avatarFileId")
        try Limits.check(coverUrl: coverUrl)
        try Limits.check(customType, length: Limits.customTypeLength, field: "customType")
        try Limits.check(data, length: Limits.channelDataLength, field: "data")
    }
}
