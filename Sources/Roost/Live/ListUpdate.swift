/// A list after a change, with what a list view needs to follow it (AM-30).
public struct ListUpdate<Item: Identifiable & Hashable & Sendable>: Hashable, Sendable where Item.ID: Sendable {
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
    /// Items that changed their place.
    public var moved: [Move]
    /// Indices in ``items`` of items whose content changed.
    public var updated: [Int]

    /// The difference between two lists, with as few moves as possible, in a time that grows little faster than the lists.
    ///
    /// To apply an update, first remove the removed and moved items, then insert the inserted and moved ones, in the order of the new indices.
    public init(from old: [Item], to new: [Item]) {
        items = new
        inserted = []
        removed = []
        moved = []
        updated = []
        // Most changes leave the beginning and the end as they were.
        let common = min(old.count, new.count)
        // Equal items have the same id, and mostly are the same reference.
        func differ(_ one: Item, _ other: Item) -> Bool { one != other && one.id != other.id }
        let head = (0..<common).first { differ(old[$0], new[$0]) } ?? common
        let tail = (0..<(common - head)).first { differ(old[old.count - 1 - $0], new[new.count - 1 - $0]) } ?? (common - head)
        updated = (0..<head).filter { old[$0] != new[$0] }
        compare(old, head..<(old.count - tail), head..<(new.count - tail))
        updated += (0..<tail).map { new.count - tail + $0 }.filter { old[$0 - new.count + old.count] != new[$0] }
    }

    /// The difference between two lists when the indices in both at which items may differ are known. The other items are in both lists, in the same
    /// order.
    ///
    /// Its time grows with the number of changes, not with the lists.
    init(from old: [Item], to new: [Item], changed: [(old: Int?, new: Int?)]) {
        items = new
        removed = changed.filter { $0.new == nil }.compactMap(\.old).sorted()
        inserted = changed.filter { $0.old == nil }.compactMap(\.new).sorted()
        let kept = changed.compactMap { change in
            change.old.flatMap { from in change.new.map { (from: from, to: $0) } }
        }.sorted { $0.to < $1.to }
        updated = kept.filter { old[$0.from] != new[$0.to] }.map(\.to)
        // An item is between the same unchanged items as before if the same number of them precede it.
        let (oldIndices, newIndices) = (changed.compactMap(\.old).sorted(), changed.compactMap(\.new).sorted())
        let between = kept.filter {
            $0.from - Self.count(below: $0.from, in: oldIndices) == $0.to - Self.count(below: $0.to, in: newIndices)
        }
        let staying = Set(LongestIncreasingSubsequence.indices(of: between.map(\.from)).map { between[$0].to })
        moved = kept.filter { !staying.contains($0.to) }.map { Move(from: $0.from, to: $0.to) }
    }

    private static func count(below number: Int, in sorted: [Int]) -> Int {
        sorted.partitioningIndex { $0 >= number }
    }

    /// Adds the difference within the ranges in which the two lists differ.
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
        let staying = LongestIncreasingSubsequence.indices(of: kept.map(\.from))
        moved = kept.indices.filter { !staying.contains($0) }.map { Move(from: kept[$0].from, to: kept[$0].to) }
    }

    /// Whether nothing changed.
    public var isEmpty: Bool { inserted.isEmpty && removed.isEmpty && moved.isEmpty && updated.isEmpty }
}

/// The updates of a live list as a sequence. The first inserts everything; each later one is the difference from the one before, so a
/// slow reader may skip states, but never a change.
public struct ListUpdates<Item: Identifiable & Hashable & Sendable>: AsyncSequence, Sendable where Item.ID: Sendable {
    /// One change of the list.
    public typealias Element = ListUpdate<Item>
    let states: AsyncStream<ListState<Item>>

    /// Each update is the difference from the iterator's last one; use one iterator.
    public func makeAsyncIterator() -> Iterator { Iterator(states: states.makeAsyncIterator()) }

    /// Compares each list with the one that it returned before.
    public struct Iterator: AsyncIteratorProtocol {
        var states: AsyncStream<ListState<Item>>.Iterator
        var last: ListState<Item>?

        public mutating func next() async -> ListUpdate<Item>? {
            while let state = await states.next() {
                if let update = update(to: state) { return update }
            }
            return nil
        }

        /// Systems from before 2024 have only ``next()``.
        @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
        public mutating func next(isolation actor: isolated (any Actor)?) async -> ListUpdate<Item>? {
            while let state = await states.next(isolation: actor) {
                if let update = update(to: state) { return update }
            }
            return nil
        }

        /// The difference from the previous list; nil if there is none.
        private mutating func update(to state: ListState<Item>) -> ListUpdate<Item>? {
            let before = last
            last = state
            // The difference includes states that were skipped.
            let isNext = before.map { $0.number + 1 == state.number } ?? false
            let update = isNext ? state.update : ListUpdate(from: before?.update.items ?? [], to: state.update.items)
            return before == nil || !update.isEmpty ? update : nil
        }
    }
}
