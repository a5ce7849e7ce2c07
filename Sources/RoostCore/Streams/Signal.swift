public import RoostAPI

/// News that only matters to those connected right now: that somebody types, say, or began to watch.
///
/// A signal has no seq, and isn't ordered with events. Nobody catches up on it: news that must survive an absence is a row. It is the first
/// thing to be dropped under load, and of several waiting with one ``Key`` only the newest is sent.
public struct Signal: Hashable, Sendable {
    /// The kind of a signal. Each feature names its own.
    public struct Kind: RawRepresentable, Hashable, Sendable {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
    }

    /// The key by which a newer signal replaces an older one.
    public struct Key: Hashable, Sendable {
        public let kind: Kind
        public let sender: UserID
        public let channel: ChannelID?
    }

    public var kind: Kind
    public var sender: UserID
    public var channel: ChannelID?
    public var content: JSONValue?

    // derived: init
    public init(kind: Kind, sender: UserID, channel: ChannelID? = nil, content: JSONValue? = nil) {
        self.kind = kind
        self.sender = sender
        self.channel = channel
        self.content = content
    }

    public var key: Key { Key(kind: kind, sender: sender, channel: channel) }
}
