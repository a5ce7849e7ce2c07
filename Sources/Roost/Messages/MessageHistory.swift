public import Observation
public import RoostAPI

extension LiveChannel {
    /// Pages through the channel's messages on the server, from the newest backwards (SB-48) or from another place in both directions: for an export,
    /// a custom search, or a screen without a live list. Other screens use ``messages(around:pageSize:)``, which works offline and follows changes.
    ///
    /// - Parameters:
    ///   - place: Where it starts.
    ///   - limit: The number of messages per page, 1 to 100.
    ///   - newestFirst: The order within a page (SB-49).
    ///   - kinds: Only messages of these kinds; nil for all (SB-53).
    ///   - customType: Only messages with this custom type; nil for all.
    ///   - senders: Only messages of these users, 20 at most, without the server's own unless `kinds` names them; nil for all.
    public func history(
        from place: MessageHistory.Place = .newest, limit: Int = 30, newestFirst: Bool = true, kinds: [MessageKind]? = nil,
        customType: String? = nil, senders: [UserID]? = nil
    ) -> MessageHistory {
        MessageHistory(
            ListMessages(
                channel: id, limit: limit, kinds: kinds, customType: customType, senders: senders, reverse: newestFirst),
            from: place, in: chat)
    }
}

extension LiveChannel {
    /// A page of the channel's messages that mention the user, by name or with the whole channel, the newest first. The order is that of the
    /// mentions, so an old message that was edited to mention the user comes before newer ones.
    ///
    /// - Parameters:
    ///   - cursor: `nextCursor` of the previous page; nil for the first one.
    ///   - limit: 1 to 100.
    /// - Throws: The errors of ``Chat/call(_:isolation:)``; `not_member` or `not_found` if the user can't read the channel.
    public func mentions(after cursor: String? = nil, limit: Int = 30) async throws -> Page<Message> {
        try await chat.call(ListMentions(channel: id, limit: limit, cursor: cursor))
    }
}

extension Chat {
    /// A page of the messages that mention the user by name, in all channels, the newest first. ``LiveChannel/mentions(after:limit:)`` returns one
    /// channel's, including messages that mention the whole channel.
    ///
    /// - Parameters:
    ///   - cursor: `nextCursor` of the previous page; nil for the first one.
    ///   - limit: 1 to 100.
    /// - Throws: The errors of ``call(_:isolation:)``.
    public func mentions(after cursor: String? = nil, limit: Int = 30) async throws -> Page<Message> {
        try await call(ListMentions(limit: limit, cursor: cursor))
    }
}

/// Pages through a channel's messages on the server: ``LiveChannel/history(from:limit:newestFirst:kinds:customType:senders:)``.
///
///     let history = channel.history(kinds: [.admin])
///     while history.hasOlder { announcements += try await history.loadOlder() }
///
/// Each history keeps its own position; a new one starts over. Views can show ``isLoading``, ``hasOlder`` and ``hasNewer`` as they change.
@MainActor @Observable
public final class MessageHistory {
    /// Where a history starts. Times are compared to the millisecond. Pages that start from a time or a message don't end between messages of the same
    /// time (SB-52), so they may exceed the limit. They do end there if these messages exceed 1 MiB or, with filters, extend beyond the 5,000 seqs that a
    /// page searches.
    public enum Place: Hashable, Sendable {
        /// At the newest message.
        case newest
        /// With the messages sent before a time (SB-51).
        case before(Timestamp)
        /// With the messages sent after a time (SB-54).
        case after(Timestamp)
        /// Half before a time, half at or after it (SB-55).
        case around(Timestamp)
        /// With the messages before one (SB-56).
        case beforeMessage(MessageID)
        /// With the messages after one.
        case afterMessage(MessageID)
        /// Around a message, which is the last of the first half.
        case aroundMessage(MessageID)

        fileprivate var keepsTimesWhole: Bool { self != .newest }
    }

    /// Whether there may be older messages.
    public private(set) var hasOlder = true
    /// Whether there may be newer messages: false if the history starts at the newest one.
    public private(set) var hasNewer: Bool
    /// Whether a page is on its way.
    public private(set) var isLoading = false

    @ObservationIgnored private let chat: Chat
    @ObservationIgnored private let place: Place
    @ObservationIgnored private let request: ListMessages
    /// The range of seqs searched so far. Nil before the first page.
    @ObservationIgnored private var seen: (first: Seq, last: Seq)?

    init(_ request: ListMessages, from place: Place, in chat: Chat) {
        (self.request, self.place, self.chat) = (request, place, chat)
        hasNewer = place != .newest
    }

    /// Returns the next older page; empty after the last one. The first page is the one at the history's place, whichever function loads it. With
    /// filters, a page may be empty even if there are more.
    ///
    /// - Throws: `RoostError` with `query_in_progress` while another page of this history is on its way (SB-50), `not_found` for a message that the
    ///   user can't see, the code of a limit, and the errors of ``Chat/call(_:isolation:)``. After a failure the same page can be loaded again.
    public func loadOlder() async throws -> [Message] { try await page(isNewer: false) }

    /// Returns the next newer page; empty after the newest message.
    ///
    /// - Throws: The errors of ``loadOlder()``.
    public func loadNewer() async throws -> [Message] { try await page(isNewer: true) }

    private func page(isNewer: Bool) async throws -> [Message] {
        guard !isLoading else { throw RoostError(.queryInProgress, "A page of this history is already being loaded.") }
        guard isNewer ? hasNewer : hasOlder else { return [] }
        var next = request
        next.keepsTimesWhole = place.keepsTimesWhole ? true : nil
        if let seen, isNewer { next.after = seen.last } else if let seen { next.before = seen.first } else { next.begin(at: place) }
        isLoading = true
        defer { isLoading = false }
        let page = try await chat.call(next)
        let seqs = page.messages.map(\.seq)
        let first = page.from ?? seqs.min()
        let last = page.to ?? seqs.max()
        guard let seen else {
            (hasOlder, hasNewer) = (page.hasOlder, page.hasNewer)
            // For an empty page, the flags show on which side everything is.
            self.seen = page.hasNewer && first == nil ? (1, 0) : (first ?? page.seq.addingWithSaturation(1), last ?? page.seq)
            return page.messages
        }
        if isNewer {
            hasNewer = page.hasNewer
            self.seen = (seen.first, last ?? seen.last)
        } else {
            hasOlder = page.hasOlder
            self.seen = (first ?? seen.first, seen.last)
        }
        return page.messages
    }
}

extension ListMessages {
    fileprivate mutating func begin(at place: MessageHistory.Place) {
        switch place {
        case .newest: break
        case .before(let time): beforeTime = time
        case .after(let time): afterTime = time
        case .around(let time): aroundTime = time
        case .beforeMessage(let message): beforeMessage = message
        case .afterMessage(let message): afterMessage = message
        case .aroundMessage(let message): aroundMessage = message
        }
    }
}

/// The users named by its messages are stored, because a list may show them.
extension ListMessages: UserNaming {
    static func users(in page: MessagePage) -> [UserSummary] { page.users ?? [] }
}

extension ListMentions: UserNaming {
    static func users(in page: Page<Message>) -> [UserSummary] { page.users ?? [] }
}
