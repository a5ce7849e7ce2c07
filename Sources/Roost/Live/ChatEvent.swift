public import RoostAPI

/// Something that happened in a chat, told once it is in this device's store: for sounds, banners, bots and delegates. See ``Chat/events``.
public enum ChatEvent: Hashable, Sendable {
    /// Something that happened while the client was connected and up to date.
    case happened(Happening)
    /// Things happened in these channels, after the given seqs, that aren't told one by one: while the client was away, after events were lost,
    /// or because this sequence was read too slowly. The store has the result. A program that needs every message calls `message.list` with that
    /// `after`.
    ///
    /// It is empty if only the user's own data changed. After a client's first connection it has all channels, each after 0.
    case missed(after: [ChannelID: Seq])

    /// One thing that happened.
    public struct Happening: Hashable, Sendable {
        /// What happened; nil for a kind that is newer than this version.
        public let kind: EventKind?
        /// The channel in which it happened; nil for what concerns only the user, such as preferences.
        public let channel: ChannelID?
        /// Who did it; nil if the server doesn't say.
        public let actor: UserID?
        /// Whether the user did it, on whichever device.
        public let isOwn: Bool
        /// Whether the user did it on another device, or a backend did it for them. Nil if that isn't known: the server doesn't say where a change
        /// came from, and this device was itself waiting for an answer, or the server may have marked a channel as read because the user reads it here
        /// (``LiveChannel/startReading()``). It is always known for messages that are sent with ``LiveChannel/send(_:)-(MessageDraft)``.
        public let isFromOtherDevice: Bool?
        /// Whether this device watched the channel when the server sent the event, as it does while the channel is open on a screen
        /// (``LiveChannel/watch(limit:watchersLimit:)``, ``LivePresence``). If it didn't, an app shows a notification (ST-07).
        ///
        /// Always false for what the server tells the user alone, such as `mentionReceived`, and after a reconnect until the watch has begun again. What came
        /// while the client was away has no such value: it is told as ``ChatEvent/missed(after:)``.
        public let isWatched: Bool
        /// The message that was sent, edited or deleted; nil for other kinds, and for one that was deleted for good. One that the user has deleted for
        /// themselves has no content.
        public internal(set) var message: Message?
        /// The place of the message that was deleted for good; nil for other kinds.
        public let purged: PurgedMessage?
        /// The invitations that were sent, accepted, declined or withdrawn, each with who invited whom (SB-17); with `memberJoined` and `channelCreated`
        /// those that led to it.
        ///
        /// Empty for other kinds, and for members whose channel's type doesn't tell them of invitations, or whose channel everyone may read: inviter and invited
        /// are told in any case.
        public let invitations: [Invitation]
    }
}

extension Chat {
    /// What happens from now on in the user's channels, in those of others that they watch and may read, and to the user's own data, in the order in which
    /// it is stored.
    ///
    ///     for await event in chat.events {
    ///         guard case .happened(let news) = event, news.kind == .messageNew, !news.isOwn, let message = news.message else { continue }
    ///         // Silent messages, and what the server says itself, aren't meant to be heard.
    ///         if !message.isSilent, message.kind != .system { playSound() }
    ///     }
    ///
    /// An event comes after its rows are in this device's store. What happened while the client was away isn't told as if it happened now:
    /// all of it is one ``ChatEvent/missed(after:)``. There are no events for messages that the user may not see.
    ///
    /// Each call begins its own sequence, which holds up to 1,000 unread events. If it is full, they are replaced by one
    /// ``ChatEvent/missed(after:)``. It ends when the chat is released or the user logs out.
    public var events: ChatEvents { driver.events.events() }
}

/// The sequence of ``Chat/events``. Use one iterator.
public struct ChatEvents: AsyncSequence, Sendable {
    /// One event.
    public typealias Element = ChatEvent
    let signals: AsyncStream<Void>
    let queue: EventQueue

    /// Several iterators share the events between them.
    public func makeAsyncIterator() -> Iterator { Iterator(signals: signals.makeAsyncIterator(), queue: queue) }

    /// Takes events in their order.
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
