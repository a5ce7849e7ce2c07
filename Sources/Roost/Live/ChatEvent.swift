public import RoostAPI

/// Something that happened in a chat, sent once it is in this device's store: for sounds, banners, bots and delegates. See ``Chat/events``.
public enum ChatEvent: Hashable, Sendable {
    /// Something that happened while the client was connected and up to date.
    case happened(Happening)
    /// Things happened in these channels, after the given seqs, that aren't sent as separate events: while the client was away, after events were
    /// lost, or because this sequence was read too slowly. The store has the result. A program that needs every message calls `message.list` with
    /// that `after`.
    ///
    /// It is empty if only the user's own data changed. After a client's first connection it lists all channels, each after 0.
    case missed(after: [ChannelID: Seq])

    /// One thing that happened.
    public struct Happening: Hashable, Sendable {
        /// What happened; nil for a kind that is newer than this version.
        public let kind: EventKind?
        /// The channel in which it happened; nil if it concerns only the user, such as a change of preferences.
        public internal(set) var channel: ChannelID?
        /// Who did it; nil if the server doesn't say.
        public internal(set) var actor: UserID?
        /// Whether the user did it, on any device.
        public let isOwn: Bool
        /// Whether the user did it on another device, or a backend did it for them. Nil if that isn't known: the server doesn't report where a change
        /// came from, and this device was itself waiting for an answer, or the server may have marked a channel as read because the user is reading
        /// it here (``LiveChannel/startReading()``). It is always known for messages sent with ``LiveChannel/send(_:)-(MessageDraft)``.
        public internal(set) var isFromOtherDevice: Bool?
        /// Whether this device was watching the channel when the server sent the event, as it does while the channel is open on a screen that watches it
        /// (``LiveChannel/watching()``, ``LivePresence``).
        ///
        /// An app in the foreground shows a notification for a new message if this is false, unless the message is the user's own, silent or a system
        /// message, or its `pushOption` is `suppress`, or the user has muted the channel (ST-07).
        ///
        /// Always false for events that only this user receives, such as `mentionReceived`, and after a reconnect until the watch has been resumed.
        /// Events missed while the client was away have no such value: they are covered by ``ChatEvent/missed(after:)``.
        public let isWatched: Bool
        /// The message that was sent, edited or deleted; nil for other kinds, and for a permanently deleted message. A message that the user has
        /// deleted for themselves has no content.
        public internal(set) var message: Message?
        /// The place of the permanently deleted message; nil for other kinds.
        public internal(set) var purged: PurgedMessage?
        /// The invitations that were sent, accepted, declined or withdrawn, each with inviter and invited user (SB-17); for `memberJoined` and
        /// `channelCreated` the invitations that led to it.
        ///
        /// Empty for other kinds, for members of a channel whose type doesn't show them invitations, and for members of a channel that everyone may
        /// read. Inviter and invited user receive them in any case.
        public internal(set) var invitations: [Invitation] = []

        // derived: init
        /// Makes an event for tests of an app's own code; ``Chat/events`` has those that happen.
        public init(
            kind: EventKind?, channel: ChannelID? = nil, actor: UserID? = nil, isOwn: Bool, isFromOtherDevice: Bool? = nil,
            isWatched: Bool, message: Message? = nil, purged: PurgedMessage? = nil, invitations: [Invitation] = []
        ) {
            self.kind = kind
            self.channel = channel
            self.actor = actor
            self.isOwn = isOwn
            self.isFromOtherDevice = isFromOtherDevice
            self.isWatched = isWatched
            self.message = message
            self.purged = purged
            self.invitations = invitations
        }
    }
}

extension Chat {
    /// Events from now on: in the user's channels, in other channels that they watch and may read, and about the user's own data. They arrive in the
    /// order in which they are stored.
    ///
    ///     for await event in chat.events {
    ///         guard case .happened(let news) = event, news.kind == .messageNew, !news.isOwn, let message = news.message else { continue }
    ///         // Silent messages, and what the server says itself, aren't meant to be heard.
    ///         if !message.isSilent, message.kind != .system { playSound() }
    ///     }
    ///
    /// An event is sent after its rows are in this device's store. Events missed while the client was away aren't replayed: a single
    /// ``ChatEvent/missed(after:)`` stands for all of them. There are no events for messages that the user may not see.
    ///
    /// Each call starts a separate sequence, which buffers up to 1,000 unread events. When the buffer is full, they are replaced by one
    /// ``ChatEvent/missed(after:)``. The sequence ends when the chat is released or the user logs out.
    public var events: ChatEvents { driver.events.events() }
}

/// The sequence of ``Chat/events``. Use one iterator.
public struct ChatEvents: AsyncSequence, Sendable {
    /// One event.
    public typealias Element = ChatEvent
    let signals: AsyncStream<Void>
    let queue: EventQueue

    /// Several iterators share the events: each event goes to only one of them.
    public func makeAsyncIterator() -> Iterator { Iterator(signals: signals.makeAsyncIterator(), queue: queue) }

    /// Returns events in order.
    public struct Iterator: AsyncIteratorProtocol {
        var signals: AsyncStream<Void>.Iterator
        let queue: EventQueue

        public mutating func next() async -> ChatEvent? {
            while !Task.isCancelled {
                if let event = queue.take() { return event }
                if await signals.next() == nil { return queue.take() }
            }
            return nil
        }

        /// Systems from before 2024 have only ``next()``.
        @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
        public mutating func next(isolation actor: isolated (any Actor)?) async -> ChatEvent? {
            while !Task.isCancelled {
                if let event = queue.take() { return event }
                if await signals.next(isolation: actor) == nil { return queue.take() }
            }
            return nil
        }
    }
}
