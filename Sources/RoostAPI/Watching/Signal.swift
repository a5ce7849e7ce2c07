/// A transient notification, of use only to connected clients: typing, watching, or an app's own signals.
///
/// A signal has no seq, isn't stored and isn't ordered with events. It isn't backfilled: anything that must survive an absence is a row.
/// Signals are dropped first under load, and of several queued for a slow client with the same ``Key`` only the newest is sent. The
/// server's own signals therefore carry the current state, not a change.
public struct Signal: Codable, Hashable, Sendable {
    /// The kind of a signal. Clients ignore unknown kinds.
    public struct Kind: RawRepresentable, Codable, Hashable, Sendable, WireString {
        public let rawValue: String
        // derived: init
        /// Creates a value with these fields.
        public init(rawValue: String) { self.rawValue = rawValue }
        public static var schema: Schema { .string() }
        public static var schemaExample: Kind { .custom }

        /// The users typing in a channel changed, or continue to type (SB-02).
        public static let typingChanged = Kind(rawValue: "typing.changed")
        /// A channel's watchers changed (ST-13).
        public static let watchingChanged = Kind(rawValue: "watching.changed")
        /// Members' read positions changed (SB-02).
        public static let readUpdated = Kind(rawValue: "read.updated")
        /// The online members of a channel changed (D-38).
        public static let presenceChanged = Kind(rawValue: "presence.changed")
        /// The displayed profile of users in a channel changed: a name, a picture.
        public static let usersChanged = Kind(rawValue: "users.changed")
        /// An app's own signal, sent by a user to the channel's watchers.
        public static let custom = Kind(rawValue: "custom")
    }

    /// The key by which a newer signal replaces an older one.
    public struct Key: Hashable, Sendable {
        /// The signals' kind.
        public let kind: Kind
        /// The signals' channel.
        public let channel: ChannelID
        /// Nil for the server's own signals about a whole channel.
        public let sender: UserID?
        /// The app's own kind of a custom signal.
        public let type: String?
    }

    /// The signal's kind, which decides which of the members below it has.
    public var kind: Kind  // wire: "signal"
    /// The signal's channel.
    public var channel: ChannelID
    /// The sender of a custom signal.
    public var sender: UserID?
    /// The users typing now; for ``Kind/typingChanged``.
    public var typing: TypingUsers?
    /// Watchers who came and went; for ``Kind/watchingChanged``.
    public var watching: WatcherChange?
    /// Members' read positions; for ``Kind/readUpdated``.
    public var read: ReadUpdate?
    /// Members who came online or went offline; for ``Kind/presenceChanged``.
    public var presence: PresenceChange?
    /// Users with their new names; for ``Kind/usersChanged``.
    public var users: UsersChange?
    /// The app's payload; for ``Kind/custom``.
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

    /// The key by which the signal replaces an older one.
    public var key: Key { Key(kind: kind, channel: channel, sender: sender, type: custom?.type) }
}

extension Signal {
    // derived: CodingKeys
    private enum CodingKeys: String, CodingKey {
        case kind = "signal"
        case channel, sender, typing, watching, read, presence, users, custom
    }
}

/// The users currently typing in a channel. It is sent again every 5 seconds while anyone is typing; without a repeat, a client assumes
/// after ``Limits/typingSeconds`` that nobody is typing.
public struct TypingUsers: Codable, Hashable, Sendable {
    /// The users who began first, at most ``Limits/typingUsers``. Never the receiver.
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

/// How the watchers of a channel have changed since the last signal.
public struct WatcherChange: Codable, Hashable, Sendable {
    /// The number of connected users watching the channel now, members or not.
    public var watcherCount: Int
    /// Users who began to watch since, at most ``Limits/watcherNames``.
    public var started: [UserID]
    /// Users who stopped watching, at most as many.
    public var stopped: [UserID]
    /// Whether these are all. If not, a client that shows the watchers fetches them again.
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

/// How the online members of a channel have changed since the last signal. Members who don't share their presence are never included.
public struct PresenceChange: Codable, Hashable, Sendable {
    /// The number of members online now.
    public var onlineCount: Int
    /// Members who came online since, at most ``Limits/watcherNames``.
    public var online: [UserID]
    /// Members who went offline, at most as many.
    public var offline: [UserID]
    /// Whether these are all. If not, a client that shows who is online fetches that again.
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

/// Read positions of a channel's members that have changed since the last signal. A position older than the known one is out of date.
public struct ReadUpdate: Codable, Hashable, Sendable {
    /// Members who have read further, at most ``Limits/readersPerSignal``.
    public var readers: [ReadPosition]
    /// Whether these are all. If not, a client that shows who has read fetches them (`reading.listReaders`).
    public var isWhole: Bool

    // derived: init
    /// Creates a value with these fields.
    public init(readers: [ReadPosition], isWhole: Bool) {
        self.readers = readers
        self.isWhole = isWhole
    }
}

/// Users of a channel whose displayed profile has changed since the last signal. A version older than the known one is out of date.
public struct UsersChange: Codable, Hashable, Sendable {
    /// Users whose name or picture has changed, at most ``Limits/usersPerSignal``.
    public var users: [UserSummary]
    /// Whether these are all. If not, a client fetches those that it shows (`user.listChanged`).
    public var isWhole: Bool

    // derived: init
    /// Creates a value with these fields.
    public init(users: [UserSummary], isWhole: Bool) {
        self.users = users
        self.isWhole = isWhole
    }
}

/// An app's own signal to a channel's watchers, for example that a game's turn has passed. It isn't stored.
public struct CustomSignal: Codable, Hashable, Sendable {
    /// The app's own name for the kind of signal, 1 to 128 characters.
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
