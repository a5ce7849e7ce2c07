/// A user of the app, as other users see them.
public struct User: Codable, Hashable, Sendable {
    public var userId: UserID
    public var displayName: String?
    public var avatarFileId: String?
    /// The app's own data: any JSON object up to `Limits.metadataSizeBytes`.
    public var metadata: JSONValue?
    public var createdAt: Timestamp
    public var updatedAt: Timestamp
    /// Since when the user is shut out; absent for an active user. Only admins are told.
    public var deactivatedAt: Timestamp?

    public init(
        userId: UserID, displayName: String? = nil, avatarFileId: String? = nil, metadata: JSONValue? = nil,
        createdAt: Timestamp, updatedAt: Timestamp, deactivatedAt: Timestamp? = nil
    ) {
        self.userId = userId
        self.displayName = displayName
        self.avatarFileId = avatarFileId
        self.metadata = metadata
        self.createdAt = createdAt
        self.updatedAt = updatedAt
        self.deactivatedAt = deactivatedAt
    }
}

/// What a user is in the whole app (ledger §8.4). It comes from the token, and is another axis than the roles in a channel (AM-22, D-39).
public enum AppRole: String, Codable, CaseIterable, Sendable, WireEnumeration {
    case user
    /// Reads what a type shows to everyone, and nothing else: neither joins nor writes.
    case guest
    /// Keeps order in every channel, as an operator does there.
    case moderator
    /// The app's console: sees and may do everything that no channel type forbids to all.
    case admin
    /// The app's own backend (SB-12): may do what an admin may, also in the name of a user.
    case service
}
