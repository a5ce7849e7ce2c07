public import RoostAPI

extension LiveChannel {
    /// Pages through the channel's messages on the server, from the newest back (SB-48): for an export, a search of one's own, or a screen that keeps no list.
    /// A screen that does is better served by ``messages(around:pageSize:)``, which works offline and follows changes.
    ///
    /// - Parameters:
    ///   - limit: Messages of a page, 1 to 100.
    ///   - newestFirst: The order within a page (SB-49).
    ///   - kinds: Only messages of these kinds; nil for all (SB-53).
    ///   - customType: Only messages with this custom type; nil for all.
    ///   - senders: Only messages of these users, 20 at most; nil for all.
    public func history(
        limit: Int = 30, newestFirst: Bool = true, kinds: [MessageKind]? = nil, customType: String? = nil, senders: [UserID]? = nil
    ) -> MessageHistory {
        MessageHistory(
            ListMessages(
                channel: id, limit: limit, kinds: kinds, customType: customType, senders: senders, reverse: newestFirst), in: chat)
    }
}

extension Chat {
    /// A page of the messages that mention the user by name, in all channels, the newest first.
    ///
    /// - Parameters:
    ///   - cursor: `nextCursor` of the page before; nil for the first one.
    ///   - limit: 1 to 100.
    /// - Throws: As ``call(_:)``.
    public func mentions(after cursor: String? = nil, limit: Int = 30) async throws -> Page<Message> {
        try await call(ListMentions(limit: limit, cursor: cursor))
    }
}

/// A way through a channel's messages on the server, page by page: ``LiveChannel/history(limit:newestFirst:kinds:customType:senders:)``.
///
///     let history = channel.history(kinds: [.admin])
///     while history.hasMore { announcements += try await history.load() }
///
/// It holds its own place. Another one begins at the newest message again.
@MainActor
public final class MessageHistory {
    /// Whether there may be older messages.
    public private(set) var hasMore = true
    /// Whether a page is on its way.
    public private(set) var isLoading = false

    private let chat: Chat
    private var next: ListMessages

    init(_ first: ListMessages, in chat: Chat) {
        (next, self.chat) = (first, chat)
    }

    /// The next older page; empty after the last one. With filters a page may be empty and there may still be more.
    ///
    /// - Throws: `RoostError` with `query_in_progress` while another page of this history is on its way (SB-50), a limit, and as ``Chat/call(_:)`` does. After
    ///   a failure the same page can be asked for again.
    public func load() async throws -> [Message] {
        guard !isLoading else { throw RoostError(.queryInProgress, "A page of this history is on its way.") }
        guard hasMore else { return [] }
        isLoading = true
        defer { isLoading = false }
        let page = try await chat.call(next)
        hasMore = page.hasOlder
        next.before = page.from ?? page.messages.map(\.seq).min() ?? next.before
        return page.messages
    }
}
