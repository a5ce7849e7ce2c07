extension User: StreamRow {
    package static let kind = "users"
    package var key: String { userId.rawValue }
    package var stamp: Int64 { version }
}

/// Only on the stream of that user. They have no version: what comes later holds.
extension Preferences: StreamRow {
    package static let kind = "preferences"
    package static let isSingle = true
    package var key: String { "" }
    package var stamp: Int64 { 0 }
}

extension Rows {
    /// Profiles that changed: on a user's own stream the user's; nil for none.
    public var users: [User]? {
        get { self[User.self] }
        set { self[User.self] = newValue }
    }

    /// The caller's own preferences, where they changed; nil otherwise.
    public var preferences: Preferences? {
        get { self[Preferences.self]?.last }
        set { self[Preferences.self] = newValue.map { [$0] } }
    }
}
