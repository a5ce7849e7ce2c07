/// A user's profile, the same in the user and in the operations that write it.
public struct UserProfile: Hashable, Sendable {
    /// The display name.
    public var displayName: String?
    /// The id of the app's file with the user's picture.
    public var avatarFileId: String?
    /// The user's current status text, such as "on holiday", shown beside the name.
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

/// A value with a user's profile, whose fields read as its own: `user.displayName`.
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
    /// Throws if a field is outside its limits. An empty text is allowed: it removes a value.
    public func validate() throws(RoostError) {
        try Limits.check(displayName: displayName)
        try Limits.check(avatarFileId, length: Limits.fileIDLength, field: "avatarFileId")
        try Limits.check(displayName: status, field: "status")
        try Limits.check(metadata: metadata)
    }
}
