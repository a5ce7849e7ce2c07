import Foundation
import GRDB
public import RoostAPI

/// The channels that a live list holds, and their order: the filters and sorts of the operation `channel.query`. Its `limit` and `cursor` are
/// ignored, since a list pages by itself.
public typealias ChannelQuery = QueryChannels

extension QueryChannels {
    /// The same query without its `limit` and `cursor`.
    var withoutPage: QueryChannels {
        var query = self
        (query.limit, query.cursor) = (nil, nil)
        return query
    }

    /// Whether a device can answer it from its store.
    ///
    /// The store has all of the user's own channels, but only some members of each, and only those deleted channels that were deleted while this
    /// device was following them.
    var isLocal: Bool {
        (membership ?? .member) == .member && exactUsers == nil && includingUsers == nil && includeDeleted != true
    }

    /// Whether the list is in the reverse of its sort's usual direction (ST-09).
    var isReversed: Bool { effectiveOrder != effectiveSort.defaultOrder }

    /// The places of the stored channels that match the query, unordered.
    func places(in database: Database) throws -> [ChannelPlace] { try StoredPlaces(self).all(in: database) }

    /// The first channels that match the query, in its order, found by the order's index. Nil without an index: for a part of a name, which SQL
    /// doesn't compare, and before the index is created (``Store/makeIndex(for:)``).
    func first(_ count: Int, in database: Database) throws -> [ChannelID]? {
        guard nameContains == nil, try database.hasIndex(of: effectiveSort) else { return nil }
        let direction = effectiveOrder == .ascending ? "ASC" : "DESC"
        var found: [ChannelID] = []
        for group in groups where found.count < count {
            let conditions = storeConditions
            let sql = """
                SELECT c.channel_id FROM channels c INDEXED BY \(effectiveSort.index)
                CROSS JOIN memberships m ON m.channel_id = c.channel_id
                WHERE \(conditions.sql) \(group)
                ORDER BY c.\(effectiveSort.column) \(direction), c.channel_id \(direction) LIMIT ?
                """
            found += try database.values(sql, conditions.values + [count - found.count])
        }
        return found
    }

    /// The stored channels that match the query, or only the given one, as far as the store can tell: it has only some members of a channel, so
    /// filters by members (`exactUsers`, `includingUsers`) aren't checked, and it doesn't know which channels the user may find without being a
    /// member.
    func storedMatches(in database: Database, only id: ChannelID? = nil) throws -> [StoredMatch] {
        var conditions = storeConditions
        if let id { conditions.add("c.channel_id = ?", id.rawValue) }
        let sql = """
            SELECT c.channel_id, COALESCE(m.is_member, 0), o.channel_id IS NOT NULL, \(nameContains == nil ? "NULL" : "c.name_key")
            FROM channels c LEFT JOIN memberships m ON m.channel_id = c.channel_id
            LEFT JOIN overlays o ON o.channel_id = c.channel_id
            WHERE \(conditions.sql)
            """
        let part = nameContains.map { NameKey.of($0) }
        var matches: [StoredMatch] = []
        try database.each(sql, conditions.values) { row in
            let match = StoredMatch(id: try row.value(), isMember: try row.value(), hasOverlay: try row.value())
            if try Self.nameKey(in: &row, contains: part) { matches.append(match) }
        }
        return matches
    }

    /// Whether the name's key in the next column contains the key of a part; true without a part.
    fileprivate static func nameKey(in row: inout CacheReader, contains part: String?) throws -> Bool {
        guard let part else {
            row.skip()
            return true
        }
        return try !part.isEmpty && NameKey.holds(part, in: row.value())
    }

    /// The conditions of the consecutive groups, each in the order of the index.
    private var groups: [String] {
        guard effectiveSort == .unreadFirst else { return [""] }
        let groups = ["AND c.ordinal > m.read_count", "AND c.ordinal <= m.read_count"]
        return isReversed ? groups.reversed() : groups
    }

    /// The place of a channel received from the server.
    func place(of view: ChannelView) -> ChannelPlace {
        let (channel, counters, unreadCount) = (view.channel, view.channel.counters, view.unreadCount)
        let (id, isMuted) = (channel.channelId, view.membership?.isNotificationsMuted ?? false)
        func place(group: Int = 0, time: Int64 = 0, name: String? = nil) -> ChannelPlace {
            ChannelPlace(id: id, group: group, time: time, name: name, unreadCount: unreadCount, isMuted: isMuted)
        }
        let listAt = (counters.lastMessageAt ?? channel.createdAt).milliseconds
        return switch effectiveSort {
        case .lastMessage: place(time: listAt)
        case .unreadFirst: place(group: unreadCount > 0 ? 0 : 1, time: listAt)
        case .lastActivity: place(time: counters.lastActivity.milliseconds)
        case .created: place(time: channel.createdAt.milliseconds)
        case .name: place(name: NameKey.of(channel.attributes.displayName))
        }
    }

    /// The filters as conditions on the store's rows. Names are compared separately.
    fileprivate var storeConditions: StoreConditions {
        var conditions = StoreConditions()
        switch membership ?? .member {
        case .member: conditions.add("m.is_member = 1")
        case .notMember: conditions.add("COALESCE(m.is_member, 0) = 0")
        case .all: break
        }
        if includeDeleted != true { conditions.add("c.is_deleted = 0") }
        if let types { conditions.add("c.type", in: types.map(\.rawValue)) }
        // An id may be written as `type:id` (ST-03).
        if let ids {
            conditions.add("(c.channel_id", in: ids.map(\.rawValue))
            conditions.or("c.type || ':' || c.channel_id", in: ids.map(\.rawValue), end: ")")
        }
        if let customTypes { conditions.add("c.custom_type", in: customTypes) }
        if let includingTags { conditions.add("EXISTS (SELECT 1 FROM json_each(c.tags) WHERE value", in: includingTags, end: ")") }
        if let excludingTags {
            conditions.add("NOT EXISTS (SELECT 1 FROM json_each(c.tags) WHERE value", in: excludingTags, end: ")")
        }
        if let isPublic { conditions.add("c.is_public = ?", isPublic) }
        if let createdBy { conditions.add("c.created_by = ?", createdBy.rawValue) }
        if let createdBefore { conditions.add("c.created_at < ?", createdBefore) }
        if let createdAfter { conditions.add("c.created_at > ?", createdAfter) }
        if includeEmpty == false { conditions.add("c.message_count > 0") }
        if includeFrozen == false { conditions.add("c.is_frozen = 0") }
        // A deleted channel has nothing unread.
        if unreadOnly == true { conditions.add("c.ordinal > m.read_count AND c.is_deleted = 0") }
        // Users can hide only their own channels.
        guard membership ?? .member == .member else { return conditions }
        let comesBack =
            "(m.hidden_state = 'hiddenAllowAutoUnhide' AND c.ordinal > m.hidden_ordinal AND m.notifications_muted_until IS NULL)"
        switch hidden ?? .unhiddenOnly {
        case .unhiddenOnly: conditions.add("(m.hidden_state = 'unhidden' OR \(comesBack))")
        case .hiddenOnly: conditions.add("m.hidden_state <> 'unhidden' AND NOT \(comesBack)")
        case .hiddenAllowAutoUnhide: conditions.add("m.hidden_state = 'hiddenAllowAutoUnhide' AND NOT \(comesBack)")
        case .hiddenPreventAutoUnhide: conditions.add("m.hidden_state = 'hiddenPreventAutoUnhide'")
        case .all: break
        }
        return conditions
    }
}

/// Looks up the places of channels in the store. A list keeps one: each message asks for its channel's place, and building the statement took as long
/// as running it.
struct StoredPlaces: Sendable {
    private let sort: ChannelSort
    private let conditions: StoreConditions
    /// The statements for all channels, and for one.
    private let sql: (all: String, one: String)
    /// The key of the part of a name that the query asks for.
    private let part: String?

    init(_ query: ChannelQuery) {
        sort = query.effectiveSort
        conditions = query.storeConditions
        part = query.nameContains.map { NameKey.of($0) }
        let all = """
            SELECT c.channel_id, c.ordinal, m.read_count, m.notifications_muted_until IS NOT NULL,
                   \(part == nil ? "NULL" : "c.name_key"), c.\(sort.column)
            FROM memberships m CROSS JOIN channels c ON c.channel_id = m.channel_id
            WHERE \(conditions.sql)
            """
        sql = (all, all + " AND c.channel_id = ?")
    }

    /// The places of all channels that match the query, unordered.
    func all(in database: Database) throws -> [ChannelPlace] {
        var places: [ChannelPlace] = []
        try database.each(sql.all, conditions.values) { row in
            if let place = try place(&row) { places.append(place) }
        }
        return places
    }

    /// The place of a channel; nil if it doesn't match the query.
    func one(_ id: ChannelID, in database: Database) throws -> ChannelPlace? {
        try database.first(sql.one, conditions.values + [id]) { try place(&$0) } ?? nil
    }

    private func place(_ row: inout CacheReader) throws -> ChannelPlace? {
        let id: ChannelID = try row.value()
        let (ordinal, readCount): (Int, Int) = (try row.value(), try row.value())
        let isMuted: Bool = try row.value()
        guard try ChannelQuery.nameKey(in: &row, contains: part) else { return nil }
        let unreadCount = max(0, ordinal.subtractingWithSaturation(readCount))
        return switch sort {
        case .name: ChannelPlace(id: id, name: try row.value(), unreadCount: unreadCount, isMuted: isMuted)
        case .unreadFirst:
            ChannelPlace(
                id: id, group: unreadCount > 0 ? 0 : 1, time: try row.value(), unreadCount: unreadCount, isMuted: isMuted)
        case .lastMessage, .lastActivity, .created:
            ChannelPlace(id: id, time: try row.value(), unreadCount: unreadCount, isMuted: isMuted)
        }
    }
}

extension ChannelSort {
    /// The column of `channels` by which it sorts.
    fileprivate var column: String {
        switch self {
        case .lastMessage, .unreadFirst: "list_at"
        case .lastActivity: "last_activity"
        case .created: "created_at"
        case .name: "name_key"
        }
    }

    /// The index with that column and the id.
    var index: String {
        switch self {
        case .lastMessage, .unreadFirst: "channels_listed"
        case .lastActivity: "channels_active"
        case .created: "channels_created"
        case .name: "channels_named"
        }
    }

    /// Whether the index is part of the schema. The others are created once a list asks for their order, since each index slows down every new
    /// channel, and the one for the activity every message.
    var isAlwaysIndexed: Bool { index == "channels_listed" }

    /// The statement that creates the index.
    var indexStatement: String { "CREATE INDEX IF NOT EXISTS \(index) ON channels (\(column), channel_id)" }
}

/// A channel in the store that matches a query, as far as the store can tell.
struct StoredMatch: Sendable {
    let id: ChannelID
    /// Whether the user is a member, or was one when the channel was deleted.
    let isMember: Bool
    /// Whether pending operations change what is shown of it: the server may not have them yet.
    let hasOverlay: Bool
}

/// Conditions joined by AND. Values are bound, never written into the text.
private struct StoreConditions {
    private(set) var sql = "TRUE"
    private(set) var values: [any CacheColumn] = []

    mutating func add(_ condition: String, _ values: any CacheColumn...) {
        sql += " AND \(condition)"
        self.values += values
    }

    mutating func add(_ column: String, in values: [String], end: String = "") {
        sql += " AND \(column) IN (\(values.map { _ in "?" }.joined(separator: ", ")))\(end)"
        self.values += values
    }

    mutating func or(_ column: String, in values: [String], end: String) {
        sql += " OR \(column) IN (\(values.map { _ in "?" }.joined(separator: ", ")))\(end)"
        self.values += values
    }
}
