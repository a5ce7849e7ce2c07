/// Returns which of the given users are online, and when the others last were: for users not shown by any open channel, such as a list of
/// contacts (SB-64).
///
/// While a channel is watched, the server itself reports changes of its members (``Signal/Kind/presenceChanged``), and this needn't be called.
public struct ListUserPresence: Operation {
    public typealias Response = UserPresences
    public static let name = "user.listPresence"
    public static let method = HTTPMethod.post
    public static let path = "/v1/users/presence"
    public static let permission = Permission.userRead
    public static let isReadOnly = true
    public static let summary = "Which of up to 100 users are online, and when the others last were. Ask once a minute at most."

    /// At most ``Limits/usersPerCall``.
    public var users: [UserID]

    // derived: init
    /// Creates a value with these fields.
    public init(users: [UserID]) { self.users = users }

    public func validate() throws(RoostError) { try Limits.check(users: users, field: "users", as: .lookup) }
}

/// Which of the requested users are online, and when the others last were.
public struct UserPresences: Codable, Hashable, Sendable {
    /// The users, each once, ordered by id. Unknown ids are left out.
    public var users: [UserPresence]
    /// How many seconds to wait before asking again (D-38): 60.
    public var pollSeconds: Int

    // derived: init
    /// Creates a value with these fields.
    public init(users: [UserPresence], pollSeconds: Int) {
        self.users = users
        self.pollSeconds = pollSeconds
    }

    /// ``pollSeconds`` as a duration: how long to wait before asking again. Never negative.
    public var pollInterval: Duration { .seconds(max(0, pollSeconds)) }
}

extension UserPresences: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("users", users)
        json.member("pollSeconds", pollSeconds)
        json.endObject()
    }
}

/// Whether a user is online, as far as others may see it.
public struct UserPresence: Codable, Hashable, Sendable {
    /// The user.
    public var userId: UserID
    /// Whether the user is currently connected. False for a user who doesn't share it (``Preferences/sharesPresence``).
    public var isOnline: Bool
    /// When the last connection of the user ended; up to 15 minutes earlier if a server was killed. Absent while the user is online,
    /// if they don't share it, and if they have never been online.
    public var lastActiveAt: Timestamp?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(userId: UserID, isOnline: Bool, lastActiveAt: Timestamp? = nil) {
        self.userId = userId
        self.isOnline = isOnline
        self.lastActiveAt = lastActiveAt
    }
}

extension UserPresence: Identifiable {
    /// ``userId``.
    public var id: UserID { userId }
}

extension UserPresence: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("userId", userId)
        json.member("isOnline", isOnline)
        json.member("lastActiveAt", lastActiveAt)
        json.endObject()
    }
}
