import GRDB
import RoostAPI

/// The part of a channel's cached messages that a list holds: without gaps, and never more than a given number.
///
/// It is a value that reads incrementally: given its previous state, it reads the rows that have changed since, by their stamps, and those that the
/// app asks for. It rereads all of its rows only if the channel has started over or very much has changed.
///
/// It stays within one cached part of the channel's messages (``Position/stretches``), either the newest ones or a stretch. If the part is no longer
/// cached, the window is lost: it is empty until it is opened again.
struct MessageWindow: Sendable {
    /// A request of the app.
    enum Move: Hashable, Sendable {
        case stay
        /// A page of older messages. From then on, the oldest messages are kept if there are too many.
        case older
        /// A page of newer messages. From then on, the newest messages are kept.
        case newer
        /// The newest page.
        case newest
        /// Half a page up to a seq, and half a page after it.
        case open(Seq)
    }

    /// The state of the cache to which the rows belong.
    private struct Origin: Hashable {
        /// Changes when the channel starts over.
        var generation: Int64
        /// All changes up to this seq are in the rows.
        var cursor: Seq
        /// Likewise for messages that the user has deleted for themselves.
        var deletionSeq: Seq
    }

    let pageSize: Int
    let rowsMax: Int

    /// Ordered by seq.
    private(set) var rows: [CachedMessage] = []
    /// Whether there are older messages, in the cache or on the server.
    private(set) var hasOlder = false
    /// Whether older messages are cached.
    private(set) var hasOlderCached = false
    /// Whether there are newer messages, in the cache or on the server.
    private(set) var hasNewer = false
    /// Whether newer messages are cached.
    private(set) var hasNewerCached = false
    /// The number of newer messages, up to ``MessageList/newerCountMax``. Nil if it isn't known.
    private(set) var newerCount: Int? = 0
    /// A seq of the current part: ``Seq/max`` while the window has the newest messages.
    private(set) var place = Seq.max
    /// Whether its part is no longer cached.
    private(set) var isLost = false

    private var origin: Origin?
    private var keepsOldest = false
    /// Whether the channel is ephemeral, which never changes; nil until that is known.
    private var isEphemeral: Bool?

    init(pageSize: Int, rowsMax: Int = MessageList.rowsMax) {
        self.pageSize = pageSize
        self.rowsMax = max(rowsMax, pageSize)
    }

    /// The rows as a list shows them: of rows with the same id, only the first.
    ///
    /// Only an ephemeral channel has several with the same id. Its server doesn't remember client ids: a message that is sent again because the
    /// answer was lost counts as another message.
    var shownRows: [CachedMessage] {
        guard isEphemeral == true else { return rows }
        var ids: Set<MessageItem.ID> = []
        return rows.filter { ids.insert($0.item.id).inserted }
    }

    /// Whether it holds rows of some state of the cache.
    var isRead: Bool { origin != nil }

    /// Reads incrementally. All rows belong to one state of the cache.
    ///
    /// - Parameter start: The seq from which the channel keeps its messages, while the earlier ones are being deleted: those aren't read any more.
    mutating func read(_ move: Move, of channel: ChannelID, trimmedTo start: Seq? = nil, in database: Database) throws {
        let state = try database.messageState(of: channel, trimmedTo: start)
        switch move {
        case .stay: break
        case .older: keepsOldest = true
        case .newer: keepsOldest = false
        case .newest: if place == .max { keepsOldest = false } else { begin(at: .max) }
        case .open(let seq): begin(at: seq)
        }
        if origin?.generation != state?.generation { begin(at: place) }
        guard let state, let part = state.position.part(holding: place) else { return lose(isFollowed: state != nil) }
        isLost = false
        if isEphemeral == nil { isEphemeral = try database.isEphemeral(channel) }
        let floor = state.floor
        guard floor < part.upperBound else {
            // Nothing of the newest part may be seen either: there is nothing to ask the server for.
            return part.isNewest ? lose(isFollowed: false) : try read(.newest, of: channel, trimmedTo: start, in: database)
        }
        let first = floor.addingWithSaturation(1)
        let cached = CachedPart(channel: channel, range: max(part.lowerBound, first)...part.upperBound, database: database)
        if try !takeChanges(state, of: cached) { try readAll(of: cached) }
        origin = Origin(generation: state.generation, cursor: state.position.cursor, deletionSeq: state.deletionSeq)
        try look(cached, part)
        try make(move, in: cached)
        try look(cached, part)
        if hasNewerCached, rows.count < pageSize { try appendNewer(pageSize - rows.count, in: cached) }
        if rows.count < pageSize { try extend(by: pageSize - rows.count, in: cached) }
        try look(cached, part)
        // Concealed messages can't be requested.
        hasOlder = hasOlderCached || part.lowerBound > first
        newerCount = try hasNewer ? (part.isNewest ? cached.count(after: rows.last?.seq ?? 0) : nil) : 0
        // A list that lost its rows continues at the newest ones.
        if rows.isEmpty, place != .max { return try read(.newest, of: channel, trimmedTo: start, in: database) }
        place = hasNewer ? rows.isEmpty ? place : rows[rows.count / 2].seq : .max
    }

    /// Drops the rows. They are then read from a seq on, or are the newest ones.
    private mutating func begin(at place: Seq) {
        self.place = place
        rows = []
        origin = nil
        isEphemeral = nil
        keepsOldest = false
        hasNewer = place != .max
    }

    private mutating func lose(isFollowed: Bool) {
        rows = []
        (hasOlder, hasOlderCached, hasNewer, hasNewerCached, newerCount) = (false, false, false, false, 0)
        origin = nil
        isLost = isFollowed
        if !isFollowed { place = .max }
    }

    /// Determines whether there are messages on either side of the rows.
    private mutating func look(_ cached: CachedPart, _ part: ClosedRange<Seq>) throws {
        hasOlderCached = try cached.hasMessage(before: rows.first?.seq ?? .max)
        hasNewerCached = try rows.last.map { try cached.hasMessage(after: $0.seq) } ?? false
        hasNewer = hasNewerCached || !part.isNewest
    }

    /// Shows users as currently stored. No message is reread.
    mutating func refreshUsers(_ users: Set<UserID>, in database: Database) throws {
        for index in rows.indices where rows[index].item.shows(anyOf: users) {
            rows[index] = try rows[index].withCurrentUsers(in: database)
        }
    }

    // MARK: Changes

    /// Applies the changes since the rows were read. Returns false if all of them must be reread.
    private mutating func takeChanges(_ state: MessageState, of cached: CachedPart) throws -> Bool {
        guard let origin, !rows.isEmpty else { return false }
        var changed = try cached.messages(changedAfter: origin.cursor, limit: rowsMax + 1)
        if state.deletionSeq > origin.deletionSeq {
            changed += try cached.messages(deletedForMeAfter: origin.deletionSeq, limit: rowsMax + 1)
        }
        let purged = Set(try cached.purgedMessages(changedAfter: origin.cursor, limit: rowsMax + 1))
        guard changed.count <= rowsMax, purged.count <= rowsMax else { return false }
        if let first = rows.first, first.seq < cached.range.lowerBound || !purged.isEmpty {
            rows.removeAll { $0.seq < cached.range.lowerBound || purged.contains($0.seq) }
            guard !rows.isEmpty else { return false }
        }
        for message in changed.sorted(by: { $0.seq < $1.seq }) { take(message) }
        if rows.count > rowsMax {
            if keepsOldest {
                rows.removeLast(rows.count - rowsMax)
                hasNewer = true
            } else {
                rows.removeFirst(rows.count - rowsMax)
            }
        }
        return true
    }

    private mutating func take(_ message: CachedMessage) {
        let index = rows.partitioningIndex { $0.seq >= message.seq }
        if index < rows.count, rows[index].seq == message.seq {
            rows[index] = message
        } else if index == rows.count {
            if !hasNewer { rows.append(message) }
        } else if index > 0 {
            rows.insert(message, at: index)
        }
    }

    /// Rereads the rows: from the current first one on, around the place, or the same number of the newest ones. Rows with an equal stamp aren't
    /// decoded again.
    private mutating func readAll(of cached: CachedPart) throws {
        let known = rows
        if keepsOldest || hasNewer, let first = known.first {
            rows = try cached.messages(from: first.seq, limit: rowsMax, known: known)
        } else if place != .max {
            let next = place.addingWithSaturation(1)
            rows = try cached.messages(before: next, limit: (pageSize + 1) / 2)
            rows += try cached.messages(from: next, limit: pageSize / 2)
        } else {
            rows = try cached.messages(before: .max, limit: known.isEmpty ? pageSize : rowsMax, known: known)
        }
    }

    // MARK: Requests of the app

    private mutating func make(_ move: Move, in cached: CachedPart) throws {
        switch move {
        case .stay, .newest, .open: break
        case .older: try extend(by: pageSize, in: cached)
        case .newer: if hasNewerCached { try appendNewer(pageSize, in: cached) }
        }
    }

    private mutating func appendNewer(_ count: Int, in cached: CachedPart) throws {
        rows += try cached.messages(from: (rows.last?.seq ?? 0).addingWithSaturation(1), limit: count)
        if rows.count > rowsMax { rows.removeFirst(rows.count - rowsMax) }
    }

    /// Adds older messages.
    private mutating func extend(by count: Int, in cached: CachedPart) throws {
        rows = try cached.messages(before: rows.first?.seq ?? .max, limit: count) + rows
        if rows.count > rowsMax { rows.removeLast(rows.count - rowsMax) }
    }
}
