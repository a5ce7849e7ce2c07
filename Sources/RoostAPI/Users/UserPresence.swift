/// Returns which of some users are online, and when the others were last: for people whom no open channel shows, such as a list of contacts (SB-64).
///
/// While a channel is watched, the server tells of its members by itself (``Signal/Kind/presenceChanged``), and this needn't be called.
public struct ListUserPresence: Operation {
    public typealias Response = UserPresences
    public static let name = "user.listPresence"
    public static let method = HTTPMethod.post
    public static let path = "/v1/users/presence"
    public static let permission = Permission.userRead
    public static let isReadOnly = true
    public static let summary = "Which of up to 100 users are online, and when the others were last. Ask once a minute at most."

    /// At most ``Limits/usersPerCall``.
    public var users: [UserID]

    // derived: init
    /// Creates a value with these fields.
    public init(users: [UserID]) { self.users = users }

    public func validate() throws(RoostError) {
        guard users.count <= Limits.usersPerCall else {
            throw .limitExceeded("users", limit: Limits.usersPerCall, unit: "ids")
        }
        for user in users { try user.validate(field: "users") }
    }
}

/// Which of some users are online, and when the others were last.
public struct UserPresences: Codable, Hashable, Sendable {
    /// The users, each once, in the order of their ids. Unknown ids are left out.
    public var users: [UserPresence]
    /// How many seconds to wait before asking again (D-38): 60.
    public var pollSeconds: Int

    // derived: init
    /// Creates a value with these fields.
    public init(users: [UserPresence], pollSeconds: Int) {
        self.users = users
        self.pollSeconds = pollSeconds
    }
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

/// Whether a user is online, as others may know it.
public struct UserPresence: Codable, Hashable, Sendable {
    /// The user.
    public var userId: UserID
    /// Whether the user has a connection at this moment. False for one who doesn't share it (``Preferences/sharesPresence``).
    public var isOnline: Bool
    /// When the last connection of the user ended; where a server was killed, up to 15 minutes earlier. Absent while they are online, for one who
    /// doesn't share it, and for one who hasn't been online yet.
    public var lastActiveAt: Timestamp?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(userId: UserID, isOnline: Bool, lastActiveAt: Timestamp? = nil) {
        self.userId = userId
        self.isOnline = isOnline
        self.lastActiveAt = lastActiveAt
    }
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
