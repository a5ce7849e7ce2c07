/// A list after a change, with what a list view needs to follow it (AM-30).
public struct ListUpdate<Item: Identifiable & Hashable & Sendable>: Sendable where Item.ID: Sendable {
    /// An item that changed its place.
    public struct Move: Hashable, Sendable {
        /// The index in the list before.
        public var from: Int
        /// The index in the list after.
        public var to: Int
    }

    /// The whole list.
    public var items: [Item]
    /// Indices in ``items`` of what is new.
    public var inserted: [Int]
    /// Indices in the list before of what is gone.
    public var removed: [Int]
    /// What was there before at another place.
    public var moved: [Move]
    /// Indices in ``items`` of what was there before with another content.
    public var updated: [Int]

    /// The difference between two lists.
    public init(from old: [Item], to new: [Item]) {
        items = new
        inserted = []
        removed = []
        moved = []
        updated = []
        for change in new.map(\.id).difference(from: old.map(\.id)).inferringMoves() {
            switch change {
            case .insert(let offset, _, let from?): moved.append(Move(from: from, to: offset))
            case .insert(let offset, _, nil): inserted.append(offset)
            case .remove(_, _, _?): break
            case .remove(let offset, _, nil): removed.append(offset)
            }
        }
        let before = Dictionary(old.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        updated = new.indices.filter { index in before[new[index].id].map { $0 != new[index] } ?? false }
    }

    /// Whether nothing changed.
    public var isEmpty: Bool { inserted.isEmpty && removed.isEmpty && moved.isEmpty && updated.isEmpty }
}

/// The updates of a live list as a sequence. The first holds everything as inserted; each later one is the difference to the one
/// before, so that a slow reader skips states and never a change.
public struct ListUpdates<Item: Identifiable & Hashable & Sendable>: AsyncSequence, Sendable where Item.ID: Sendable {
    /// One change of the list.
    public typealias Element = ListUpdate<Item>
    let snapshots: AsyncStream<[Item]>

    /// Each iterator follows from what it has given out itself; use one.
    public func makeAsyncIterator() -> Iterator { Iterator(snapshots: snapshots.makeAsyncIterator()) }

    /// Compares each list with the one it gave out before.
    public struct Iterator: AsyncIteratorProtocol {
        var snapshots: AsyncStream<[Item]>.Iterator
        var last: [Item]?

        public mutating func next() async -> ListUpdate<Item>? { await next(isolation: nil) }

        public mutating func next(isolation actor: isolated (any Actor)?) async -> ListUpdate<Item>? {
            while let items = await snapshots.next(isolation: actor) {
                let update = ListUpdate(from: last ?? [], to: items)
                let isFirst = last == nil
                last = items
                if isFirst || !update.isEmpty { return update }
            }
            return nil
        }
    }
}
