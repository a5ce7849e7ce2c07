import RoostAPI

/// The operations of one channel that are on their way, or those of no channel.
struct OutboxQueue: Hashable, Sendable {
    private struct Place: Hashable {
        var number: Int64
        var id: Int64
    }

    private(set) var items: [Int64: OutboxItem] = [:]
    /// Those to be sent, in their order: without refused ones, and those for another server.
    private var order: ArraySlice<Place> = []
    /// The messages.
    private(set) var messages: [ClientID: Int64] = [:]
    /// Everything else: few, mostly.
    private var others: Set<Int64> = []
    /// Operations that aren't in the file yet as they are, with the number of writes that are awaited.
    private var unwritten: [Int64: Int] = [:]

    /// The one that the server is asked for right now.
    var inFlight: Int64?
    /// Whether a refusal that may pass is being waited out.
    var isWaiting = false
    /// Times that the server answered the first one with `internal_error`.
    var internalErrors = 0
    /// Retries in a row.
    var retries = 0

    var isEmpty: Bool { items.isEmpty }
    /// Whether one would be sent at once.
    var isIdle: Bool { order.isEmpty && !isWaiting && inFlight == nil }

    /// Everything but messages, in order.
    var changes: [OutboxItem] { others.compactMap { items[$0] }.sorted { $0.number < $1.number } }

    /// The operation to send next, unless one is under way.
    var next: OutboxItem? {
        guard inFlight == nil, !isWaiting, let first = order.first, unwritten[first.id] == nil else { return nil }
        return items[first.id]
    }

    /// Puts an operation in its place, or another state of it.
    ///
    /// - Parameter server: The server that operations are sent to.
    mutating func put(_ item: OutboxItem, for server: String?) {
        let before = items.updateValue(item, forKey: item.id)
        if let sent = item.operation.sent { messages[sent.clientId] = item.id } else { others.insert(item.id) }
        let isSendable = !item.isRefused && (item.server == nil || item.server == server)
        guard isSendable else { return removePlace(of: item) }
        let place = index(of: item.number)
        if before != nil, place < order.endIndex, order[place].id == item.id { return }
        order.insert(Place(number: item.number, id: item.id), at: place)
    }

    mutating func remove(_ id: Int64) -> OutboxItem? {
        guard let item = items.removeValue(forKey: id) else { return nil }
        removePlace(of: item)
        if let sent = item.operation.sent { messages[sent.clientId] = nil }
        others.remove(id)
        unwritten[id] = nil
        if inFlight == id { inFlight = nil }
        retries = 0
        internalErrors = 0
        return item
    }

    mutating func beginWriting(_ id: Int64) { unwritten[id, default: 0] += 1 }

    mutating func endWriting(_ id: Int64) {
        guard let count = unwritten[id] else { return }
        unwritten[id] = count > 1 ? count - 1 : nil
    }

    /// Whether an operation is in the file and will be sent to this server: it is shown then.
    func isShown(_ item: OutboxItem, by server: String?) -> Bool {
        !item.isRefused && unwritten[item.id] == nil && (item.server == nil || item.server == server)
    }

    private mutating func removePlace(of item: OutboxItem) {
        let place = index(of: item.number)
        guard place < order.endIndex, order[place].id == item.id else { return }
        if place == order.startIndex { order = order.dropFirst() } else { order.remove(at: place) }
    }

    private func index(of number: Int64) -> Int {
        var (low, high) = (order.startIndex, order.endIndex)
        // A new one is the last.
        guard let last = order.last, last.number >= number else { return high }
        while low < high {
            let middle = (low + high) / 2
            if order[middle].number < number { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
