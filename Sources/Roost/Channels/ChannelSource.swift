import RoostAPI

/// The source of a list of channels. Takes one call at a time.
@MainActor
protocol ChannelSource: AnyObject {
    /// The rows to show, in their order. Nil before the first answer.
    var items: [ChannelItem]? { get }
    /// Whether ``extend()`` would add something.
    var hasMore: Bool { get }
    /// The unread messages of all channels that the query holds.
    var unreadCount: Int { get }

    /// Applies a change of the store.
    func follow(_ change: StoreChange) async throws
    /// Takes in that there is a connection, and everything that was missed is stored.
    func connected() async throws
    /// Adds a page of rows.
    func extend() async throws
}

/// The user's own channels, from this device's store: complete and right offline too.
@MainActor
final class StoredChannels: ChannelSource {
    private let query: ChannelQuery
    private let pageSize: Int
    private let driver: SyncDriver
    private var order: ChannelOrder
    /// The rows that are shown. A row that changed is taken out, to be read again.
    private var rows: [ChannelID: ChannelItem] = [:]
    private var limit: Int
    private(set) var items: [ChannelItem]?

    init(_ query: ChannelQuery, pageSize: Int, driver: SyncDriver) {
        self.query = query
        self.pageSize = pageSize
        self.driver = driver
        limit = pageSize
        order = ChannelOrder(isReversed: query.isReversed)
    }

    var hasMore: Bool { order.places.count > limit }
    var unreadCount: Int { order.unreadCount }

    func follow(_ change: StoreChange) async throws {
        let (query, store) = (query, try await driver.prepare().store)
        // Past some share of all channels, reading all of them takes less than looking up each.
        if change.isEverything || items == nil || change.channels.count > max(100, order.places.count / 8) {
            order = try await store.read { ChannelOrder(try query.places(in: $0), isReversed: query.isReversed) }
            rows = [:]
        } else {
            let places = try await store.read { database in
                try change.channels.map { (id: $0, place: try query.places(in: database, only: $0).first) }
            }
            for (id, place) in places {
                order.set(place, for: id)
                rows[id] = nil
            }
        }
        try await readRows(from: store)
    }

    func connected() {}

    func extend() async throws {
        guard hasMore else { return }
        let (sum, isTooLarge) = limit.addingReportingOverflow(pageSize)
        limit = isTooLarge ? .max : sum
        try await readRows(from: try await driver.prepare().store)
    }

    private func readRows(from store: Store) async throws {
        let shown = order.places.prefix(limit).map(\.id)
        let missing = shown.filter { rows[$0] == nil }
        if !missing.isEmpty {
            let now = driver.environment.now
            let read = try await store.read { database in
                try missing.compactMap { id in try database.channelView(id).map { ChannelItem($0, now: now()) } }
            }
            for item in read { rows[item.id] = item }
        }
        let items = shown.compactMap { rows[$0] }
        if rows.count > items.count {
            rows = Dictionary(items.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        }
        self.items = items
    }
}
