/// Creates a user, or replaces the given fields of an existing one. Absent fields stay unchanged.
public struct UpsertUser: Operation, UserProfileCarrying {
    public typealias Response = User
    public static let name = "user.upsert"
    public static let method = HTTPMethod.put
    public static let path = "/v1/users/{user}"
    public static let permission = Permission.userManage
    public static let summary = "Create a user, or update one that exists. For admins."

    /// The user's id, which never changes: 1 to ``Limits/identifierLength`` characters.
    public var user: UserID
    /// Replaces the given fields.
    public var profile: UserProfile  // inline

    // derived: package init
    package init(user: UserID, profile: UserProfile) {
        self.user = user
        self.profile = profile
    }

    // derived: flat init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        user: UserID, displayName: String? = nil, avatarFileId: String? = nil, status: String? = nil, metadata: JSONValue? = nil
    ) {
        let profile = UserProfile(displayName: displayName, avatarFileId: avatarFileId, status: status, metadata: metadata)
        self.init(user: user, profile: profile)
    }

    public func validate() throws(RoostError) {
        try user.validate(field: "user")
        try profile.validate()
    }
}

extension UpsertUser {
    // derived: CodingKeys
    private enum CodingKeys: String, CodingKey {
        case user, displayName, avatarFileId, status, metadata
    }

    // derived: encode(to:)
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(user, forKey: .user)
        try container.encodeIfPresent(profile.displayName, forKey: .displayName)
        try container.encodeIfPresent(profile.avatarFileId, forKey: .avatarFileId)
        try container.encodeIfPresent(profile.status, forKey: .status)
        try container.encodeIfPresent(profile.metadata, forKey: .metadata)
    }

    // derived: init(from:)
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        user = try container.decode(UserID.self, forKey: .user)
        let displayName = try container.decodeIfPresent(String.self, forKey: .displayName)
        let avatarFileId = try container.decodeIfPresent(String.self, forKey: .avatarFileId)
        let status = try container.decodeIfPresent(String.self, forKey: .status)
        let metadata = try container.decodeIfPresent(JSONValue.self, forKey: .metadata)
        profile = UserProfile(displayName: displayName, avatarFileId: avatarFileId, status: status, metadata: metadata)
    }
}

/// Returns a user's profile.
///
/// - Throws: `not_found` for a user who doesn't exist.
public struct GetUser: Operation {
    public typealias Response = User
    public static let name = "user.get"
    public static let method = HTTPMethod.get
    public static let path = "/v1/users/{user}"
    public static let permission = Permission.userRead
    public static let summary = "One user."

    /// The user's id.
    public var user: UserID
    // derived: init
    /// Creates a value with these fields.
    public init(user: UserID) { self.user = user }
    public func validate() throws(RoostError) { try user.validate(field: "user") }
}

/// Returns several users at once. Unknown ids are left out of the response.
public struct GetUsers: Operation {
    public typealias Response = [User]
    public static let name = "user.getMany"
    public static let method = HTTPMethod.get
    public static let path = "/v1/users"
    public static let permission = Permission.userRead
    public static let summary = "Several users by their ids, at most 100. Unknown ids are left out."

    /// Up to 100 users.
    public var users: [UserID]
    /// Whether to omit the profiles' metadata, which may be large; false when left out.
    public var omitMetadata: Bool?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(users: [UserID], omitMetadata: Bool? = nil) {
        self.users = users
        self.omitMetadata = omitMetadata
    }
    public func validate() throws(RoostError) { try Limits.check(users: users, field: "users", as: .lookup) }
}

/// Returns the changed summaries among those of given users: after an absence, a client refreshes the names and pictures of all the users
/// that it shows in one call.
public struct ListChangedUsers: Operation {
    public typealias Response = ChangedUsers
    public static let name = "user.listChanged"
    public static let method = HTTPMethod.post
    public static let path = "/v1/users/changed"
    public static let permission = Permission.userRead
    public static let isReadOnly = true
    public static let summary =
        "The users among up to 1000 whose name, picture or status is newer than the caller's version."

    /// The version that the caller has of each user (`UserSummary.version`), at most ``Limits/changedUsersPerCall``: 0 for a user known only by id.
    public var versions: [String: Int64]

    // derived: init
    /// Creates a value with these fields.
    public init(versions: [String: Int64]) { self.versions = versions }

    public func validate() throws(RoostError) {
        guard versions.count <= Limits.changedUsersPerCall else {
            throw .limitExceeded("versions", limit: Limits.changedUsersPerCall, unit: "users")
        }
        for (user, version) in versions {
            try UserID(user).validate(field: "versions")
            guard version >= 0 else { throw .invalidArgument("versions", "must contain only versions of 0 or more") }
        }
    }
}

/// The response to ``ListChangedUsers``.
public struct ChangedUsers: Codable, Hashable, Sendable {
    /// The users with a newer version, ordered by id.
    public var users: [UserSummary]
    /// Whether there are others that didn't fit: call again with the versions of these.
    public var hasMore: Bool

    // derived: init
    /// Creates a value with these fields.
    public init(users: [UserSummary], hasMore: Bool) {
        self.users = users
        self.hasMore = hasMore
    }
}

extension ChangedUsers: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("users", users)
        json.member("hasMore", hasMore)
        json.endObject()
    }
}

/// The caller. A user exists from the first use of a token that names them.
public struct GetMe: Operation {
    public typealias Response = User
    public static let name = "user.me"
    public static let method = HTTPMethod.get
    public static let path = "/v1/me"
    public static let permission = Permission.userRead
    public static let summary = "The calling user."

    // derived: init
    /// Creates a value, which has no fields.
    public init() {}
    public func validate() throws(RoostError) {}
}

/// Replaces the given fields of the caller's own profile. Absent fields stay unchanged.
public struct UpdateMe: Operation, UserProfileCarrying {
    public typealias Response = User
    public static let name = "user.updateMe"
    public static let method = HTTPMethod.patch
    public static let path = "/v1/me"
    public static let permission = Permission.userUpdateMe
    public static let summary = "Update the calling user's profile."

    /// Replaces the given fields.
    public var profile: UserProfile  // inline

    // derived: package init
    package init(profile: UserProfile) { self.profile = profile }

    // derived: flat init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(displayName: String? = nil, avatarFileId: String? = nil, status: String? = nil, metadata: JSONValue? = nil) {
        let profile = UserProfile(displayName: displayName, avatarFileId: avatarFileId, status: status, metadata: metadata)
        self.init(profile: profile)
    }

    public func validate() throws(RoostError) { try profile.validate() }
}

extension UpdateMe {
    // derived: CodingKeys
    private enum CodingKeys: String, CodingKey {
        case displayName, avatarFileId, status, metadata
    }

    // derived: encode(to:)
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(profile.displayName, forKey: .displayName)
        try container.encodeIfPresent(profile.avatarFileId, forKey: .avatarFileId)
        try container.encodeIfPresent(profile.status, forKey: .status)
        try container.encodeIfPresent(profile.metadata, forKey: .metadata)
    }

    // derived: init(from:)
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let displayName = try container.decodeIfPresent(String.self, forKey: .displayName)
        let avatarFileId = try container.decodeIfPresent(String.self, forKey: .avatarFileId)
        let status = try container.decodeIfPresent(String.self, forKey: .status)
        let metadata = try container.decodeIfPresent(JSONValue.self, forKey: .metadata)
        profile = UserProfile(displayName: displayName, avatarFileId: avatarFileId, status: status, metadata: metadata)
    }
}
