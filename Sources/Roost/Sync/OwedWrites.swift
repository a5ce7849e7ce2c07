/// Writes that the outbox file has refused so far, for a full disk, say, and that nobody waits for. They go before the next write.
///
/// What the server has carried out is removed, and what follows from its answer is put with that: one without the other would lose changes behind a message.
struct OwedWrites: Sendable {
    /// Removals, and servers that were met, in their order.
    private var others: [OutboxWrite] = []
    /// Operations as they are by now.
    private var items: [Int64: OutboxItem] = [:]

    /// All of them, in an order in which they can be written.
    var all: [OutboxWrite] {
        let items = items.values.sorted { $0.place < $1.place }
        return others + items.map(OutboxWrite.put)
    }

    /// The operations that are still to be removed.
    var removed: Set<Int64> { Set(others.compactMap(\.removed)) }

    mutating func add(_ write: OutboxWrite) {
        switch write {
        case .put(let item): items[item.id] = item
        case .remove(let id, _), .done(let id, _):
            items[id] = nil
            others.append(write)
        case .server: others.append(write)
        // What couldn't be noted isn't sent, and whoever waits for a change is told that it wasn't kept.
        case .sending, .change: break
        }
    }

    /// Keeps the removals and the servers alone.
    mutating func dropItems() { items = [:] }

    /// Makes of what is in the file what it would be with these writes.
    func apply(to saved: inout SavedOutbox) {
        let removed = removed
        saved.items.removeAll { removed.contains($0.id) }
        for index in saved.items.indices {
            if let item = items[saved.items[index].id] { saved.items[index] = item }
        }
        for case .server(let name) in others { saved.meet(name) }
    }
}
