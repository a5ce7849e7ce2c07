public import RoostAPI

extension ListMessages: Handled {
    /// With a filter it may pass over any number of messages.
    public var isBrief: Bool { kinds == nil && customType == nil && senders == nil }

    public func handle(in context: inout Context) throws -> MessagePage {
        let access = try context.require(.historyRead, in: channel)
        let limit = try Limits.page(limit, Limits.historyPage)
        let walk = HistoryWalk(self, in: access, context)
        var page = try walk.page(at: place(in: access, &context), limit: limit, newerLimit: newerLimit)
        page.messages = try context.shown(page.messages, in: access)
        page.users = try context.summaries(for: page.messages)
        if reverse ?? false { page.messages.reverse() }
        return page
    }

    /// The place of the page among the channel's seqs.
    private func place(in access: ChannelAccess, _ context: inout Context) throws -> HistoryWalk.Place {
        func first(from time: Timestamp) throws -> Seq {
            let seq = try context.transaction.firstSeq(from: time, in: access.channelId, upTo: access.counters.seq)
            // The times of messages hidden from the caller are hidden too.
            return max(seq, access.historyFloor + 1)
        }
        if let before { return .before(before) }
        if let after { return .after(after) }
        if let around { return .around(around) }
        func seq(of message: MessageID, _ field: String) throws -> Seq {
            try context.seq(of: message, in: access, field: field)
        }
        if let aroundMessage { return .around(try seq(of: aroundMessage, "aroundMessage")) }
        if let beforeMessage { return .before(try seq(of: beforeMessage, "beforeMessage")) }
        if let afterMessage { return .after(try seq(of: afterMessage, "afterMessage")) }
        if let beforeTime { return .before(try first(from: beforeTime)) }
        // Times are whole milliseconds.
        if let afterTime { return .after(try first(from: Timestamp(milliseconds: afterTime.milliseconds + 1)) - 1) }
        if let aroundTime { return .around(try first(from: aroundTime) - 1) }
        return .newest
    }
}

/// Reads a page of a channel's messages by their seqs, limited to those that the caller may see.
struct HistoryWalk {
    enum Place {
        case newest
        case before(Seq)
        case after(Seq)
        /// Up to a seq, and after it.
        case around(Seq)
    }

    /// The number of seqs that a call with filters searches on each side.
    static let filteredSeqsMax: Seq = 5000

    private let transaction: any Transaction
    private let channel: ChannelID
    private let head: Seq
    private let lastMessageAt: Timestamp?
    private let floor: Seq
    /// The condition of the filters; nil without any.
    private let filter: SQL?
    /// Whether a page never splits messages of the same time.
    private let keepsTimesWhole: Bool

    init(_ operation: ListMessages, in access: ChannelAccess, _ context: Context) {
        transaction = context.transaction
        channel = access.channelId
        head = access.counters.seq
        lastMessageAt = access.counters.lastMessageAt
        floor = access.historyFloor
        filter = operation.filter(for: context.caller.user, in: access)
        let isByTime = operation.beforeTime != nil || operation.afterTime != nil || operation.aroundTime != nil
        let isByMessage = operation.beforeMessage != nil || operation.afterMessage != nil || operation.aroundMessage != nil
        keepsTimesWhole = operation.keepsTimesWhole ?? (isByTime || isByMessage)
    }

    /// A part of the page on one side of its place, oldest first.
    private struct Side {
        var messages: [Message]
        /// Whether there are more messages beyond it, which may not match.
        var hasMore: Bool
        /// The last seq searched.
        var end: Seq
    }

    func page(at place: Place, limit: Int, newerLimit: Int?) throws -> MessagePage {
        switch place {
        case .newest, .before:
            let seq = if case .before(let seq) = place { seq } else { Seq.max }
            let older = try side(before: seq, limit: limit, sizeBytesMax: Limits.pageContentBytes)
            let hasNewer = try seq != .max && hasNewer(than: older.messages.last, before: seq)
            return page(older.messages, hasOlder: older.hasMore, hasNewer: hasNewer, from: older.end, to: seq - 1)
        case .after(let seq):
            let newer = try side(after: seq, limit: limit, sizeBytesMax: Limits.pageContentBytes)
            let first = newer.messages.first?.seq ?? seq + 1
            let hasOlder = try exists(before: filter == nil ? first : seq + 1)
            return page(newer.messages, hasOlder: hasOlder, hasNewer: newer.hasMore, from: seq + 1, to: newer.end)
        case .around(let seq):
            // Both together are one page. Each side gets up to half of it, so that a long tie on one leaves room for the other. What remains is for
            // ties, the older side's first.
            let half = Limits.pageContentBytes / 2
            let nearest = try nearestMessages(after: seq, limit: newerLimit ?? limit / 2, sizeBytesMax: half)
            let older = try side(
                before: seq.advanced(by: 1), limit: newerLimit == nil ? (limit + 1) / 2 : limit, sizeBytesMax: half,
                withTieMax: Limits.pageContentBytes - Self.sizeBytes(of: nearest.messages))
            let newer = try side(
                after: seq, startingWith: nearest, withTieMax: Limits.pageContentBytes - Self.sizeBytes(of: older.messages),
                from: older.messages.last?.createdAt)
            return page(
                older.messages + newer.messages, hasOlder: older.hasMore, hasNewer: newer.hasMore, from: older.end, to: newer.end)
        }
    }

    /// Whether there is any message after those of a page that ends before a seq.
    private func hasNewer(than last: Message?, before seq: Seq) throws -> Bool {
        guard filter == nil, let last else { return try exists(after: seq - 1) }
        // Times never decrease within a channel, so most pages need no query for this.
        if let lastMessageAt, last.createdAt < lastMessageAt { return true }
        return try exists(after: last.seq)
    }

    private func page(_ messages: [Message], hasOlder: Bool, hasNewer: Bool, from: Seq, to: Seq) -> MessagePage {
        MessagePage(
            messages: messages, hasOlder: hasOlder, hasNewer: hasNewer, seq: head, from: filter == nil ? nil : max(from, 0),
            to: filter == nil ? nil : max(min(to, head), 0))
    }

    /// - Parameter tieMax: The maximum size with the other messages of the last one's time.
    private func side(
        before seq: Seq, limit: Int, sizeBytesMax: Int, withTieMax tieMax: Int = Limits.pageContentBytes
    ) throws -> Side {
        let lowest = filter == nil ? floor : max(floor, min(seq, head + 1) - Self.filteredSeqsMax - 1)
        /// The nearest messages, which are the newest, first.
        func read(before seq: Seq, limit: Int, sizeBytesMax: Int) throws -> MessageRun {
            var run = try transaction.messages(
                before: seq, above: lowest, in: channel, limit: limit, sizeBytesMax: sizeBytesMax, filter ?? "",
                readsNext: keepsTimesWhole)
            if keepsTimesWhole { run.messages.reverseInPlace() }
            return run
        }
        var run = try read(before: seq, limit: limit, sizeBytesMax: sizeBytesMax)
        if keepsTimesWhole {
            run = try keepingTimeWhole(run, from: seq, withTieMax: tieMax, read)
            run.messages.reverseInPlace()
        }
        let continues = try run.hasMore || (lowest > floor && exists(before: lowest + 1))
        let end = run.hasMore ? run.messages.first?.seq ?? lowest + 1 : lowest + 1
        return Side(messages: run.messages, hasMore: continues, end: end)
    }

    private func side(after seq: Seq, limit: Int, sizeBytesMax: Int) throws -> Side {
        let nearest = try nearestMessages(after: seq, limit: limit, sizeBytesMax: sizeBytesMax)
        return try side(after: seq, startingWith: nearest, withTieMax: Limits.pageContentBytes)
    }

    /// - Parameters:
    ///   - nearest: The messages nearest to the place.
    ///   - tieMax: The maximum size with the other messages of the last one's time.
    ///   - time: The time of the message before the place, if that is on the page too.
    private func side(
        after seq: Seq, startingWith nearest: MessageRun, withTieMax tieMax: Int, from time: Timestamp? = nil
    ) throws -> Side {
        let (start, highest) = range(after: seq)
        let run = try keepingTimeWhole(nearest, from: start, withTieMax: tieMax, after: time) {
            try transaction.messages(
                after: $0, upTo: highest, in: channel, limit: $1, sizeBytesMax: $2, filter ?? "", readsNext: keepsTimesWhole)
        }
        let continues = try run.hasMore || (highest < head && exists(after: highest))
        return Side(messages: run.messages, hasMore: continues, end: run.hasMore ? run.messages.last?.seq ?? start : highest)
    }

    /// Up to so many messages right after a place, at least one of them however large, whatever times they split.
    private func nearestMessages(after seq: Seq, limit: Int, sizeBytesMax: Int) throws -> MessageRun {
        let (start, highest) = range(after: seq)
        return try transaction.messages(
            after: start, upTo: highest, in: channel, limit: limit, sizeBytesMax: sizeBytesMax, filter ?? "",
            readsNext: keepsTimesWhole)
    }

    /// The searched range after a place: after the first seq, up to the other.
    private func range(after seq: Seq) -> (start: Seq, highest: Seq) {
        let start = max(seq, floor)
        return (start, filter == nil ? Seq.max : min(start, Limits.seqMax) + Self.filteredSeqsMax)
    }

    /// Adds to the messages on one side, the nearest first, all others of the last one's time if a page keeps times whole, as far as they fit.
    ///
    /// - Parameters:
    ///   - tieMax: The maximum size of all of them.
    ///   - time: The time of the message before the place, if that is on the page too.
    ///   - read: Reads from a seq on, excluding it.
    private func keepingTimeWhole(
        _ found: MessageRun, from seq: Seq, withTieMax tieMax: Int, after time: Timestamp? = nil,
        _ read: (Seq, Int, Int) throws -> MessageRun
    ) throws -> MessageRun {
        var run = found
        guard keepsTimesWhole, let time = run.messages.last?.createdAt ?? time else { return found }
        var sizeBytes = Self.sizeBytes(of: run.messages)
        // The next one usually has another time already.
        while run.hasMore, run.next.map({ $0.createdAt == time }) ?? true, sizeBytes < tieMax {
            let more = try read(run.messages.last?.seq ?? seq, Limits.historyPage.max, tieMax - sizeBytes)
            let same = more.messages.prefix { $0.createdAt == time }
            sizeBytes += same.reduce(0) { $0 + $1.contentSizeBytes }
            // A read returns a message that is too large too.
            if sizeBytes > tieMax, same.count == 1 { break }
            run.messages += same
            run.hasMore = more.hasMore || same.count < more.messages.count
            if same.count < more.messages.count { break }
            run.next = more.next
        }
        return run
    }

    private static func sizeBytes(of messages: [Message]) -> Int { messages.reduce(0) { $0 + $1.contentSizeBytes } }

    /// Whether there is any message, matching or not.
    private func exists(before seq: Seq) throws -> Bool {
        try transaction.hasMessages(before: seq, above: floor, in: channel)
    }

    private func exists(after seq: Seq) throws -> Bool {
        try transaction.hasMoreMessages(than: 0, after: max(floor, seq), in: channel)
    }
}

extension ListMessages {
    /// The filters as a condition on rows of `messages`; nil without any.
    fileprivate func filter(for user: UserID, in access: ChannelAccess) -> SQL? {
        var conditions: [SQL] = []
        if let kinds { conditions.append("kind IN (\(list: kinds.map(\.rawValue)[...]))") }
        if let customType {
            conditions.append("custom_type = \(customType)")
            // A message deleted for oneself has no custom type, like one deleted for all.
            if access.rowKinds.mayContain(OwnDeletion.self) {
                conditions.append(OwnDeletion.excluding(seq: "messages.seq", of: user, in: access.channelId))
            }
        }
        if let senders {
            conditions.append("sender_id IN (\(list: senders.map(\.rawValue)[...]))")
            // The server's messages about users' actions belong to no user.
            if kinds?.contains(.system) != true { conditions.append("kind <> \(MessageKind.system.rawValue)") }
        }
        return conditions.isEmpty ? nil : conditions.reduce("") { "\($0) AND \($1)" }
    }
}

extension Transaction {
    /// Returns the lowest seq from which on no message of a channel was sent before a time.
    ///
    /// Times never decrease within a channel, so a binary search finds it. Ids grow with time as well, except where clocks
    /// differ: the index on them usually makes the first guess right.
    func firstSeq(from time: Timestamp, in channel: ChannelID, upTo head: Seq) throws -> Seq {
        let byID: SQL = """
            SELECT seq FROM messages WHERE channel_id = \(channel) AND message_id >= \(IDGenerator.firstID(at: time))
            ORDER BY message_id LIMIT 1
            """
        // Messages up to `low` were sent before the time, those from `high` on weren't.
        var (low, high): (Seq, Seq) = (0, head + 1)
        var guess = try first(byID) { $0.int64() } ?? high - 1
        var step: Seq = 1
        while low + 1 < high {
            let seq = min(max(guess, low + 1), high - 1)
            let next: SQL = """
                SELECT seq, created_at FROM messages WHERE channel_id = \(channel) AND seq >= \(seq) AND seq < \(high)
                ORDER BY seq LIMIT 1
                """
            if let found = try first(next, { (seq: $0.int64(), at: $0.timestamp()) }), found.at < time {
                low = found.seq
                guess = low + step
            } else {
                high = seq
                guess = high - step
            }
            step = min(step * 4, head + 1)
            if step > (high - low) / 2 { guess = low + (high - low) / 2 }
        }
        return high
    }
}
