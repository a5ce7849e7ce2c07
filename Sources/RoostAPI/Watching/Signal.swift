/// News that only matters to those connected right now: that somebody types, began to watch, or what an app tells its users in passing.
///
/// A signal has no seq, isn't stored and isn't ordered with events. Nobody catches up on it: what must survive an absence is a row. It is the
/// first thing to be dropped under load, and of several that wait for a slow client with one ``Key`` only the newest is sent. So signals of
/// the server's own say what is now, not what changed.
public struct Signal: Codable, Hashable, Sendable {
    /// The kind of a signal. A client leaves out those that it doesn't know.
    public struct Kind: RawRepresentable, Codable, Hashable, Sendable, WireString {
        public let rawValue: String
        // derived: init
        /// Creates a value with these fields.
        public init(rawValue: String) { self.rawValue = rawValue }
        public static var schema: Schema { .string() }
        public static var schemaExample: Kind { .custom }

        /// Who types in a channel has changed, or goes on (SB-02).
        public static let typingChanged = Kind(rawValue: "typing.changed")
        /// Who watches a channel has changed (ST-13).
        public static let watchingChanged = Kind(rawValue: "watching.changed")
        /// How far members have read has changed (SB-02).
        public static let readUpdated = Kind(rawValue: "read.updated")
        /// Who of a channel's members is online has changed (D-38).
        public static let presenceChanged = Kind(rawValue: "presence.changed")
        /// What is shown of users in a channel has changed: a name, a picture.
        public static let usersChanged = Kind(rawValue: "users.changed")
        /// What a user's app tells those who watch the channel.
        public static let custom = Kind(rawValue: "custom")
    }

    /// What a newer signal replaces an older one by.
    public struct Key: Hashable, Sendable {
        /// What the signals are about.
        public let kind: Kind
        /// The channel that they are of.
        public let channel: ChannelID
        /// Nil for what the server tells of a whole channel.
        public let sender: UserID?
        /// The app's own kind of a custom signal.
        public let type: String?
    }

    /// What it is about, and which of the members below it has.
    public var kind: Kind  // wire: "signal"
    /// The channel that it is of.
    public var channel: ChannelID
    /// Who sent a custom signal.
    public var sender: UserID?
    /// Who types now; of ``Kind/typingChanged``.
    public var typing: TypingUsers?
    /// Who came and went; of ``Kind/watchingChanged``.
    public var watching: WatcherChange?
    /// How far members have read; of ``Kind/readUpdated``.
    public var read: ReadUpdate?
    /// Who is online now, and who isn't any more; of ``Kind/presenceChanged``.
    public var presence: PresenceChange?
    /// Users with their new names; of ``Kind/usersChanged``.
    public var users: UsersChange?
    /// What the app says; of ``Kind/custom``.
    public var custom: CustomSignal?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        kind: Kind, channel: ChannelID, sender: UserID? = nil, typing: TypingUsers? = nil, watching: WatcherChange? = nil,
        read: ReadUpdate? = nil, presence: PresenceChange? = nil, users: UsersChange? = nil, custom: CustomSignal? = nil
    ) {
        self.kind = kind
        self.channel = channel
        self.sender = sender
        self.typing = typing
        self.watching = watching
        self.read = read
        self.presence = presence
        self.users = users
        self.custom = custom
    }

    /// What the signal replaces an older one by.
    public var key: Key { Key(kind: kind, channel: channel, sender: sender, type: custom?.type) }
}

extension Signal {
    // derived: CodingKeys
    private enum CodingKeys: String, CodingKey {
        case kind = "signal"
        case channel, sender, typing, watching, read, presence, users, custom
    }
}

/// Who types in a channel at this moment. It is told again every 5 seconds as long as anybody does; without that, a client takes
/// it that nobody does any more after ``Limits/typingSeconds``.
public struct TypingUsers: Codable, Hashable, Sendable {
    /// Those who began first, at most ``Limits/typingUsers``. Never the receiver.
    public var users: [UserID]
    /// Whether there are more.
    public var hasMore: Bool

    // derived: init
    /// Creates a value with these fields.
    public init(users: [UserID], hasMore: Bool) {
        self.users = users
        self.hasMore = hasMore
    }
}

/// How the watchers of a channel have changed since it was last told.
public struct WatcherChange: Codable, Hashable, Sendable {
    /// Connected users who watch the channel now, members or not.
    public var watcherCount: Int
    /// Who watches since, at most ``Limits/watcherNames``.
    public var started: [UserID]
    /// Who doesn't any more, at most as many.
    public var stopped: [UserID]
    /// Whether these are all. If not, a client that shows the watchers asks for them again.
    public var isWhole: Bool

    // derived: init
    /// Creates a value with these fields.
    public init(watcherCount: Int, started: [UserID], stopped: [UserID], isWhole: Bool) {
        self.watcherCount = watcherCount
        self.started = started
        self.stopped = stopped
        self.isWhole = isWhole
    }
}

/// How it has changed who of a channel's members is online, since it was last told. Members who don't share that are never among them.
public struct PresenceChange: Codable, Hashable, Sendable {
    /// Members who are online now.
    public var onlineCount: Int
    /// Who is online since, at most ``Limits/watcherNames``.
    public var online: [UserID]
    /// Who isn't any more, at most as many.
    public var offline: [UserID]
    /// Whether these are all. If not, a client that shows who is online asks again.
    public var isWhole: Bool

    // derived: init
    /// Creates a value with these fields.
    public init(onlineCount: Int, online: [UserID], offline: [UserID], isWhole: Bool) {
        self.onlineCount = onlineCount
        self.online = online
        self.offline = offline
        self.isWhole = isWhole
    }
}

/// How far some members of a channel have read, since it was last told. A position that is older than a known one is out of date.
public struct ReadUpdate: Codable, Hashable, Sendable {
    /// Those who have read further, at most ``Limits/readersPerSignal``.
    public var readers: [ReadPosition]
    /// Whether these are all. If not, a client that shows who has read asks for them (`reading.listReaders`).
    public var isWhole: Bool

    // derived: init
    /// Creates a value with these fields.
    public init(readers: [ReadPosition], isWhole: Bool) {
        self.readers = readers
        self.isWhole = isWhole
    }
}

/// What is shown of some users of a channel, since it was last told. An older version than a known one is out of date.
public struct UsersChange: Codable, Hashable, Sendable {
    /// Whose name or picture has changed, at most ``Limits/usersPerSignal``.
    public var users: [UserSummary]
    /// Whether these are all. If not, a client asks about those whom it shows (`user.listChanged`).
    public var isWhole: Bool

    // derived: init
    /// Creates a value with these fields.
    public init(users: [UserSummary], isWhole: Bool) {
        self.users = users
        self.isWhole = isWhole
    }
}

/// What an app tells those who watch a channel: that a game's turn has passed, say. Nothing of it is kept.
public struct CustomSignal: Codable, Hashable, Sendable {
    /// The app's own name for what it tells, 1 to 128 characters.
    public var type: String
    /// A JSON object of up to ``Limits/signalSizeBytes``.
    public var metadata: JSONValue?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(type: String, metadata: JSONValue? = nil) {
        self.type = type
        self.metadata = metadata
    }
}
