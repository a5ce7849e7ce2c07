public import RoostAPI

/// What is worth telling only to those who are there at this moment: that somebody types, say, or who began to watch.
///
/// A signal has no seq, and comes in no order with events. Nobody catches up with it: what has to survive an absence is a row. It is the first thing that
/// is left out under load, and of several with one ``Key`` that wait to be sent only the newest goes out.
public struct Signal: Hashable, Sendable {
    /// What kind of signal it is. Each feature names its own.
    public struct Kind: RawRepresentable, Hashable, Sendable {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
    }

    /// What a newer signal replaces an older one by.
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
