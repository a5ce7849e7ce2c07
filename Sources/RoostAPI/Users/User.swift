/// A user of the app, as other users see them.
public struct User: UserProfileCarrying, Hashable, Sendable {
    /// The id of the user: the app's own string.
    public var userId: UserID
    /// The profile that others see, which reads as fields of the user.
    public var profile: UserProfile  // inline
    /// When the user was first seen.
    public var createdAt: Timestamp
    /// When the profile last changed.
    public var updatedAt: Timestamp
    /// Counts the changes of the profile: of two rows of one user, the one with the higher version is newer; timestamps can't decide that.
    /// A server before 0.2 sends no version, which counts as older than any.
    public var version: Int64 = 1  // wire: absent is 0
    /// When the user was deactivated; absent for an active user. Only admins see it.
    public var deactivatedAt: Timestamp?

    // derived: package init
    package init(
        userId: UserID, profile: UserProfile, createdAt: Timestamp, updatedAt: Timestamp, version: Int64 = 1,
        deactivatedAt: Timestamp? = nil
    ) {
        self.userId = userId
        self.profile = profile
        self.createdAt = createdAt
        self.updatedAt = updatedAt
        self.version = version
        self.deactivatedAt = deactivatedAt
    }

    // derived: flat init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        userId: UserID, displayName: String? = nil, avatarFileId: String? = nil, status: String? = nil, metadata: JSONValue? = nil,
        createdAt: Timestamp, updatedAt: Timestamp, version: Int64 = 1, deactivatedAt: Timestamp? = nil
    ) {
        let profile = UserProfile(displayName: displayName, avatarFileId: avatarFileId, status: status, metadata: metadata)
        self.init(
            userId: userId, profile: profile, createdAt: createdAt, updatedAt: updatedAt, version: version,
            deactivatedAt: deactivatedAt
        )
    }
}

extension User: Identifiable {
    /// ``userId``.
    public var id: UserID { userId }
}

extension User: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("userId", userId)
        json.member("displayName", profile.displayName)
        json.member("avatarFileId", profile.avatarFileId)
        json.member("status", profile.status)
        json.member("metadata", profile.metadata)
        json.member("createdAt", createdAt)
        json.member("updatedAt", updatedAt)
        json.member("version", version)
        json.member("deactivatedAt", deactivatedAt)
        json.endObject()
    }
}

extension User: Codable {
    // derived: CodingKeys
    private enum CodingKeys: String, CodingKey {
        case userId, displayName, avatarFileId, status, metadata, createdAt, updatedAt, version, deactivatedAt
    }

    // derived: encode(to:)
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(userId, forKey: .userId)
        try container.encodeIfPresent(profile.displayName, forKey: .displayName)
        try container.encodeIfPresent(profile.avatarFileId, forKey: .avatarFileId)
        try container.encodeIfPresent(profile.status, forKey: .status)
        try container.encodeIfPresent(profile.metadata, forKey: .metadata)
        try container.encode(createdAt, forKey: .createdAt)
        try container.encode(updatedAt, forKey: .updatedAt)
        try container.encode(version, forKey: .version)
        try container.encodeIfPresent(deactivatedAt, forKey: .deactivatedAt)
    }

    // derived: init(from:)
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        userId = try container.decode(UserID.self, forKey: .userId)
        let displayName = try container.decodeIfPresent(String.self, forKey: .displayName)
        let avatarFileId = try container.decodeIfPresent(String.self, forKey: .avatarFileId)
        let status = try container.decodeIfPresent(String.self, forKey: .status)
        let metadata = try container.decodeIfPresent(JSONValue.self, forKey: .metadata)
        createdAt = try container.decode(Timestamp.self, forKey: .createdAt)
        updatedAt = try container.decode(Timestamp.self, forKey: .updatedAt)
        version = try container.decodeIfPresent(Int64.self, forKey: .version) ?? 0
        deactivatedAt = try container.decodeIfPresent(Timestamp.self, forKey: .deactivatedAt)
        profile = UserProfile(displayName: displayName, avatarFileId: avatarFileId, status: status, metadata: metadata)
    }
}

/// A user's role in the whole app (ledger §8.4). It comes from the token, and is independent of the roles in a channel (AM-22, D-39).
public enum AppRole: String, Codable, CaseIterable, Sendable, WireEnumeration {
    case user
    /// Reads only channels whose type lets everyone read: neither joins nor writes.
    case guest
    /// Moderates every channel, like an operator there.
    case moderator
    /// The app's console: sees and may do everything that no channel type forbids to all.
    case admin
    /// The app's own backend (SB-12): may do what an admin may, and act on behalf of a user.
    case service
}
