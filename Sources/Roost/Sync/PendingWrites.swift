/// Writes that the outbox file has refused so far, for example because the disk is full, and that no caller waits for. They precede the next write.
///
/// What the server has carried out is removed together with the writes that follow from its answer: one without the other would lose changes queued
/// after a message.
struct PendingWrites: Sendable {
    /// Removals, and servers that were met, in their order.
    private var others: [OutboxWrite] = []
    /// The current states of operations.
    private var states: [Int64: State] = [:]

    private struct State {
        var item: OutboxItem
        /// Whether its content has changed too.
        var hasContent: Bool
    }

    /// All of them, in an order in which they can be written.
    var all: [OutboxWrite] {
        let states = states.values.sorted { $0.item.place < $1.item.place }
        return others + states.map { .update($0.item, content: $0.hasContent) }
    }

    /// The operations that are still to be removed.
    var removed: Set<Int64> { Set(others.compactMap(\.removed)) }

    mutating func add(_ write: OutboxWrite) {
        switch write {
        case .update(let item, let hasContent):
            states[item.id] = State(item: item, hasContent: hasContent || states[item.id]?.hasContent == true)
        case .remove(let id, _), .done(let id, _), .arrived(let id, _, _):
            states[id] = nil
            others.append(write)
        case .server: others.append(write)
        // What couldn't be noted isn't sent, and callers that wait for an operation, or a change of one, get an error.
        case .put, .sending, .change: break
        }
    }

    /// Keeps only the removals and the servers.
    mutating func dropItems() { states = [:] }

    /// Changes an outbox read from the file to what it would be with these writes.
    func apply(to saved: inout SavedOutbox) {
        let removed = removed
        saved.items.removeAll { removed.contains($0.id) }
        for index in saved.items.indices {
            let former = saved.items[index]
            guard let state = states[former.id] else { continue }
            saved.items[index] = state.item
            saved.items[index].number = former.number
            guard !state.hasContent else { continue }
            saved.items[index].operation = former.operation
            (saved.items[index].concealedSeq, saved.items[index].epoch) = (former.concealedSeq, former.epoch)
        }
        for case .arrived(_, let key, let message) in others { saved.resolve(key, message) }
        for case .server(let name) in others { saved.noteServer(name) }
    }
}
