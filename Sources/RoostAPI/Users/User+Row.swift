extension User: StreamRow {
    package static let kind = "users"
    package var key: String { userId.rawValue }
    package var stamp: Int64 { version }
    package var contentSizeBytes: Int {
        let texts: [String?] = [userId.rawValue, profile.displayName, profile.avatarFileId, profile.status]
        return texts.reduce((profile.metadata?.sizeBytes ?? 0) + 400) { $0 + ($1.map(JSONBytes.sizeBytes) ?? 0) }
    }
}

/// Only on the stream of that user. They have no version: the last one received wins.
extension Preferences: StreamRow {
    package static let kind = "preferences"
    package static let isSingle = true
    package var key: String { "" }
    package var stamp: Int64 { 0 }
}

extension Rows {
    /// Changed profiles: on a user's own stream only the user's; nil for none.
    public var users: [User]? {
        get { self[User.self] }
        set { self[User.self] = newValue }
    }

    /// The caller's own preferences, if they changed; nil otherwise.
    public var preferences: Preferences? {
        get { self[Preferences.self]?.last }
        set { self[Preferences.self] = newValue.map { [$0] } }
    }
}
