import GRDB
import RoostAPI

/// The user's own channels that match a query, and the rows of those that are shown.
///
/// A change moves and rereads only the rows that it concerns, and determines the difference from the previous rows.
struct ListedChannels: Sendable {
    /// The result for the main actor.
    struct Shown: Sendable {
        var items: [ChannelItem]?
        var difference: ListUpdate<ChannelItem>?
        var hasMore: Bool
        var unreadCount: Int
        var isPartial: Bool
        /// Users shown by the rows just read, each with the known version.
        var users: [UserID: Int64]
        /// When the next silence, rate limit or mute in a shown channel ends.
        var nextEnd: Timestamp?
    }

    private let query: ChannelQuery
    private let places: StoredPlaces
    private let pageSize: Int
    private var limit: Int
    /// The places of all channels; nil while only the first rows are known.
    private var order: ChannelOrder?
    /// The rows of the first places, up to the limit. Nil before they are read.
    private var items: [ChannelItem]?
    private var difference: ListUpdate<ChannelItem>?
    private var hasMore = false
    private var unreadCount = 0
    private var users: [UserID: Int64] = [:]
    /// The earliest end of a silence, a rate limit or a mute in all rows read since the last end. The row may be gone by now.
    private var nextEnd: Timestamp?

    /// The maximum number of rows that are read before the places of all others.
    private static let firstRowsMax = 200

    init(_ query: ChannelQuery, pageSize: Int) {
        self.query = query
        places = StoredPlaces(query)
        self.pageSize = pageSize
        limit = pageSize
    }

    /// Whether an index of the order finds the first rows of such a list.
    static func usesIndex(_ query: ChannelQuery, pageSize: Int) -> Bool { query.nameContains == nil && pageSize <= firstRowsMax }

    var shown: Shown {
        Shown(
            items: items, difference: difference, hasMore: hasMore, unreadCount: unreadCount,
            isPartial: items != nil && order == nil, users: users, nextEnd: nextEnd)
    }

    /// Makes the next change read everything, because the last one was interrupted.
    mutating func reset() {
        (order, items, difference, nextEnd) = (nil, nil, nil, nil)
    }

    mutating func apply(_ change: StoreChange, in database: Database, now: Timestamp) throws {
        (difference, users) = (nil, [:])
        if items == nil, try readFirst(in: database, now: now) { return }
        // After a change of everything, no row can be kept.
        if change.isEverything { items = nil }
        // Above a certain share of the channels, reading all of them is faster than looking up each.
        let before = items
        let isIntroduced = try refreshUsers(change.users, in: database)
        if let count = order?.places.count, items != nil, change.channels.count <= max(100, count / 4) {
            try move(change.channels, in: database, now: now)
            finish()
        } else {
            try readAll(keeping: { !change.channels.contains($0) }, in: database, now: now)
        }
        if isIntroduced, let before, let items { difference = ListUpdate(from: before, to: items) }
    }

    /// Shows users as currently stored, without rereading other rows. Returns whether any row shows them.
    private mutating func refreshUsers(_ users: Set<UserID>, in database: Database) throws -> Bool {
        guard !users.isEmpty, var rows = items else { return false }
        var isIntroduced = false
        for index in rows.indices where rows[index].row.shows(users) {
            rows[index] = ChannelItem(try rows[index].row.withCurrentUsers(in: database))
            isIntroduced = true
        }
        if isIntroduced { items = rows }
        return isIntroduced
    }

    mutating func extend(in database: Database, now: Timestamp) throws {
        let before = items
        users = [:]
        try complete(in: database, now: now)
        let (sum, isTooLarge) = limit.addingReportingOverflow(pageSize)
        limit = isTooLarge ? .max : sum
        guard let order, var rows = items else { return }
        _ = try fill(&rows, from: order, in: database, now: now)
        items = rows
        difference = before.map { ListUpdate(from: $0, to: rows) }
        finish()
    }

    /// Reads the places of all channels, if only the first rows are known.
    mutating func complete(in database: Database, now: Timestamp) throws {
        difference = nil
        guard items != nil, order == nil else { return }
        // There may have been a change in between that hasn't been reported yet: rows are reread if they aren't stored as they were.
        try readAll(keeping: { _ in false }, in: database, now: now)
    }

    /// Rereads the rows of channels in which a silence, a rate limit or a mute has ended since they were read.
    mutating func endStates(in database: Database, now: Timestamp) throws {
        var ended = StoreChange()
        nextEnd = nil
        for item in items ?? [] {
            if item.row.hasEndedState(at: now) { ended.channels.insert(item.id) }
            expect(item.row.nextEnd(after: now))
        }
        try apply(ended, in: database, now: now)
    }

    private mutating func expect(_ end: Timestamp?) {
        if let end { nextEnd = min(end, nextEnd ?? end) }
    }

    // MARK: Reading

    /// Reads the first rows by an index. Returns false if there is none, or if the list isn't paged.
    private mutating func readFirst(in database: Database, now: Timestamp) throws -> Bool {
        guard limit <= Self.firstRowsMax, let first = try query.first(limit + 1, in: database) else { return false }
        items = try first.prefix(limit).map { try row($0, nil, in: database, now: now) }
        hasMore = first.count > limit
        return true
    }

    /// Reads all places, and the rows that are shown.
    ///
    /// - Parameter keeping: The channels whose current row is still right.
    private mutating func readAll(keeping: (ChannelID) -> Bool, in database: Database, now: Timestamp) throws {
        let order = ChannelOrder(try places.all(in: database), isReversed: query.isReversed)
        let known = Dictionary((items ?? []).map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        let rows = try order.places.prefix(limit).map { place in
            let before = known[place.id]
            if let before, keeping(place.id) { return before }
            return try row(place.id, before, in: database, now: now)
        }
        difference = items.map { ListUpdate(from: $0, to: rows) }
        self.order = order
        items = rows
        finish()
    }

    private mutating func row(_ id: ChannelID, _ known: ChannelItem?, in database: Database, now: Timestamp) throws -> ChannelItem {
        guard let row = try database.channelRow(id, known: known?.row, now: now) else { throw Inconsistent() }
        for user in [row.sender, row.inviter] {
            if let user { users[user.userId] = user.version }
        }
        expect(row.nextEnd(after: now))
        return ChannelItem(row)
    }

    /// Adds rows up to the limit. Returns whether there were any.
    private mutating func fill(
        _ items: inout [ChannelItem], from order: ChannelOrder, in database: Database, now: Timestamp
    ) throws -> Bool {
        let count = items.count
        for place in order.places.prefix(limit).dropFirst(count) {
            items.append(try row(place.id, nil, in: database, now: now))
        }
        return items.count > count
    }

    private mutating func finish() {
        guard let order else { return }
        hasMore = order.places.count > limit
        unreadCount = order.unreadCount
    }

    /// A channel has a place but no row.
    private struct Inconsistent: Error {}

    // MARK: Moving

    /// Moves rows to their current places, and rereads them.
    private mutating func move(_ ids: Set<ChannelID>, in database: Database, now: Timestamp) throws {
        guard let before = items, var order else { return }
        // Takes the only reference to the places, so moving them doesn't copy them. If this is interrupted, everything is read again.
        self.order = nil
        var items = before
        var changed = ids.reduce(into: [ChannelID: (old: Int?, new: Int?)]()) { changed, id in
            changed[id] = (order.index(of: id).flatMap { $0 < before.count ? $0 : nil }, nil)
        }
        var isEndMoved = false
        for id in ids {
            let moved = order.set(try places.one(id, in: database), for: id)
            var known: ChannelItem?
            if let from = moved.from, from < items.count { known = items.remove(at: from) }
            if let to = moved.to, to < limit, to <= items.count {
                items.insert(try row(id, known, in: database, now: now), at: to)
            }
            if items.count > limit {
                items.removeLast()
                isEndMoved = true
            }
            if try fill(&items, from: order, in: database, now: now) { isEndMoved = true }
        }
        self.order = order
        self.items = items
        guard !isEndMoved else {
            difference = ListUpdate(from: before, to: items)
            return
        }
        for id in ids {
            changed[id]?.new = order.index(of: id).flatMap { $0 < items.count ? $0 : nil }
        }
        difference = ListUpdate(from: before, to: items, changed: Array(changed.values))
    }
}
