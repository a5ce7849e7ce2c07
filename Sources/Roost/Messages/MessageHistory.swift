public import RoostAPI

extension LiveChannel {
    /// Pages through the channel's messages on the server, from the newest back (SB-48) or from another place, both ways: for an export, a custom search, or
    /// a screen without a live list. Other screens use ``messages(around:pageSize:)``, which works offline and follows changes.
    ///
    /// - Parameters:
    ///   - place: Where it begins.
    ///   - limit: Messages per page, 1 to 100.
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
    /// A page of the channel's messages that mention the user, by name or with the whole channel, the newest first: by when they began to, so that an old
    /// message that was edited to mention the user comes before newer ones.
    ///
    /// - Parameters:
    ///   - cursor: `nextCursor` of the page before; nil for the first one.
    ///   - limit: 1 to 100.
    /// - Throws: As ``Chat/call(_:isolation:)``; `not_member` or `not_found` if the user can't read the channel.
    public func mentions(after cursor: String? = nil, limit: Int = 30) async throws -> Page<Message> {
        try await chat.call(ListMentions(channel: id, limit: limit, cursor: cursor))
    }
}

extension Chat {
    /// A page of the messages that mention the user by name, in all channels, the newest first. ``LiveChannel/mentions(after:limit:)`` has one channel's,
    /// with those that mention the whole channel.
    ///
    /// - Parameters:
    ///   - cursor: `nextCursor` of the page before; nil for the first one.
    ///   - limit: 1 to 100.
    /// - Throws: As ``call(_:isolation:)``.
    public func mentions(after cursor: String? = nil, limit: Int = 30) async throws -> Page<Message> {
        try await call(ListMentions(limit: limit, cursor: cursor))
    }
}

/// A way through a channel's messages on the server, page by page: ``LiveChannel/history(from:limit:newestFirst:kinds:customType:senders:)``.
///
///     let history = channel.history(kinds: [.admin])
///     while history.hasOlder { announcements += try await history.loadOlder() }
///
/// Each history keeps its own position; a new one starts over.
@MainActor
public final class MessageHistory {
    /// Where a history begins. Times are compared to the millisecond. The pages from a time or a message on don't end between messages of one time (SB-52),
    /// so they may be larger than the limit; they do if these are more than 1 MiB, or, with filters, reach beyond the 5,000 seqs that a page looks through.
    public enum Place: Hashable, Sendable {
        /// At the newest message.
        case newest
        /// With the messages that were sent before a time (SB-51).
        case before(Timestamp)
        /// With the messages that were sent after a time (SB-54).
        case after(Timestamp)
        /// Half before a time, half at it or after it (SB-55).
        case around(Timestamp)
        /// With the messages before one (SB-56).
        case beforeMessage(MessageID)
        /// With the messages after one.
        case afterMessage(MessageID)
        /// Around a message, which is the last one of the first half.
        case aroundMessage(MessageID)

        fileprivate var keepsTimesWhole: Bool { self != .newest }
    }

    /// Whether there may be older messages.
    public private(set) var hasOlder = true
    /// Whether there may be newer messages: not if the history begins at the newest one.
    public private(set) var hasNewer: Bool
    /// Whether a page is on its way.
    public private(set) var isLoading = false

    private let chat: Chat
    private let place: Place
    private let question: ListMessages
    /// The seqs that were looked through. Nil before the first page.
    private var seen: (first: Seq, last: Seq)?

    init(_ question: ListMessages, from place: Place, in chat: Chat) {
        (self.question, self.place, self.chat) = (question, place, chat)
        hasNewer = place != .newest
    }

    /// Returns the next older page; empty after the last one. The first page is the one at the history's place, whichever function loads it. With filters, a page
    /// may be empty even if there are more.
    ///
    /// - Throws: `RoostError` with `query_in_progress` while another page of this history is on its way (SB-50), `not_found` for a message that the user can't
    ///   see, the code of a limit, and as ``Chat/call(_:isolation:)`` does. After a failure the same page can be loaded again.
    public func loadOlder() async throws -> [Message] { try await page(isNewer: false) }

    /// Returns the next newer page; empty after the newest message.
    ///
    /// - Throws: As ``loadOlder()``.
    public func loadNewer() async throws -> [Message] { try await page(isNewer: true) }

    private func page(isNewer: Bool) async throws -> [Message] {
        guard !isLoading else { throw RoostError(.queryInProgress, "A page of this history is on its way.") }
        guard isNewer ? hasNewer : hasOlder else { return [] }
        var next = question
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
            // Of an empty page it is known on which side of it everything is.
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

/// The users that its messages name are stored, because a list may show them.
extension ListMessages: UserNaming {
    static func users(in page: MessagePage) -> [UserSummary] { page.users ?? [] }
}

extension ListMentions: UserNaming {
    static func users(in page: Page<Message>) -> [UserSummary] { page.users ?? [] }
}
