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
    /// Indices in ``items`` of new items.
    public var inserted: [Int]
    /// Indices in the former list of removed items.
    public var removed: [Int]
    /// Items that were at another place.
    public var moved: [Move]
    /// Indices in ``items`` of items whose content changed.
    public var updated: [Int]

    /// The difference between two lists: as few moves as can be, in a time that grows hardly faster than the lists.
    ///
    /// To apply an update, first take out removed and moved items, then put in inserted and moved ones, in the order of the new indices.
    public init(from old: [Item], to new: [Item]) {
        items = new
        inserted = []
        removed = []
        moved = []
        updated = []
        // Most changes leave the beginning and the end where they were.
        let common = min(old.count, new.count)
        let head = (0..<common).first { old[$0].id != new[$0].id } ?? common
        let tail = (0..<(common - head)).first { old[old.count - 1 - $0].id != new[new.count - 1 - $0].id } ?? (common - head)
        updated = (0..<head).filter { old[$0] != new[$0] }
        compare(old, head..<(old.count - tail), head..<(new.count - tail))
        updated += (0..<tail).map { new.count - tail + $0 }.filter { old[$0 - new.count + old.count] != new[$0] }
    }

    /// The difference between the parts of two lists in which they differ.
    private mutating func compare(_ old: [Item], _ oldRange: Range<Int>, _ newRange: Range<Int>) {
        let before = Dictionary(oldRange.map { (old[$0].id, $0) }, uniquingKeysWith: { first, _ in first })
        var kept: [(from: Int, to: Int)] = []
        var isKept = [Bool](repeating: false, count: oldRange.count)
        for index in newRange {
            guard let from = before[items[index].id] else {
                inserted.append(index)
                continue
            }
            kept.append((from, index))
            isKept[from - oldRange.lowerBound] = true
            if old[from] != items[index] { updated.append(index) }
        }
        removed = oldRange.filter { !isKept[$0 - oldRange.lowerBound] }
        let staying = LongestRun.indices(of: kept.map(\.from))
        moved = kept.indices.filter { !staying.contains($0) }.map { Move(from: kept[$0].from, to: kept[$0].to) }
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

    /// Each update is the difference from the iterator's last one; use one iterator.
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
