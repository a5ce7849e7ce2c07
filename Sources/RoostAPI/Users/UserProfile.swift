/// What a user shows of themselves: the same in the operations that write it and in the user.
public struct UserProfile: Hashable, Sendable {
    /// The name that is shown.
    public var displayName: String?
    /// The id of a file of the app's own for the user's picture.
    public var avatarFileId: String?
    /// What the user says of themselves at this moment, such as "on holiday": shown beside the name.
    public var status: String?
    /// The app's own data: any JSON object up to `Limits.metadataSizeBytes`.
    public var metadata: JSONValue?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(displayName: String? = nil, avatarFileId: String? = nil, status: String? = nil, metadata: JSONValue? = nil) {
        self.displayName = displayName
        self.avatarFileId = avatarFileId
        self.status = status
        self.metadata = metadata
    }
}

/// A value with a user's profile. The profile's fields read as its own: `user.displayName`.
@dynamicMemberLookup
public protocol UserProfileCarrying {
    /// The user's profile.
    var profile: UserProfile { get set }
}

extension UserProfileCarrying {
    /// A field of the profile.
    public subscript<Value>(dynamicMember path: WritableKeyPath<UserProfile, Value>) -> Value {
        get { profile[keyPath: path] }
        set { profile[keyPath: path] = newValue }
    }
}

extension UserProfile {
    /// Throws when something in it is outside its limits. An empty text is within: it removes a value.
    public func validate() throws(RoostError) {
        try Limits.check(displayName: displayName)
        try Limits.check(avatarFileId, length: Limits.fileIDLength, field: "avatarFileId")
        try Limits.check(displayName: status, field: "status")
        try Limits.check(metadata: metadata)
    }
}
