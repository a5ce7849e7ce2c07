import GRDB
import RoostAPI

/// The unread messages of each of the user's channels that they haven't muted, and their sum. A change recounts only the channels that it concerns.
struct UnreadTotals: Sendable {
    /// Only channels with unread messages. Nil until all channels have been looked up.
    private var counts: [ChannelID: Int]?
    private var sum: Int64 = 0

    /// Hidden channels count too, as in the server's total.
    private static let places = StoredPlaces(ChannelQuery(hidden: .all))

    var total: TotalUnread { TotalUnread(unreadCount: Int(clamping: sum), unreadChannelCount: counts?.count ?? 0) }

    mutating func apply(_ change: StoreChange, in database: Database) throws {
        guard let known = counts, !change.isEverything else { return try readAll(in: database) }
        // If this is interrupted, everything is read again.
        counts = nil
        var updated = known
        for id in change.channels {
            let count = try Self.places.one(id, in: database)?.countedUnread ?? 0
            sum += Int64(count) - Int64(updated[id] ?? 0)
            updated[id] = count > 0 ? count : nil
        }
        counts = updated
    }

    private mutating func readAll(in database: Database) throws {
        counts = nil
        let unread = try Self.places.all(in: database).filter { $0.countedUnread > 0 }
        counts = Dictionary(unread.map { ($0.id, $0.countedUnread) }, uniquingKeysWith: { _, last in last })
        sum = unread.reduce(0) { $0 + Int64($1.countedUnread) }
    }
}
