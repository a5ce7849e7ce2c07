import NIOCore

/// A bounded queue that is taken in batches, in which nobody waits behind all that another asks for.
///
/// While no more waits than a batch may have, it is one list in the order of arrival. What comes beyond that stands in a line for each user,
/// and the lines give one element each in turn. A user's own elements keep their order. As a value without a clock and threads it is tested by
/// itself ([0055](docs/decisions/0055-users-take-turns.md)).
struct FairQueue<User: Hashable, Element> {
    private let sizeMax: Int
    private let batchSizeMax: Int
    /// The next batch. It has no lines, since most batches take everything that waits.
    private var next: [Element] = []
    private var lines: [User: CircularBuffer<Element>] = [:]
    /// The users that have a line, the next to give first.
    private var turns = CircularBuffer<User>()
    private(set) var count = 0

    init(sizeMax: Int, batchSizeMax: Int) {
        self.sizeMax = sizeMax
        self.batchSizeMax = batchSizeMax
    }

    var isEmpty: Bool { count == 0 }

    /// Adds an element, unless the queue is full, or this user's line is as long as the room that is left: one user takes half of the
    /// queue at most, and two a third each.
    ///
    /// - Returns: Whether there was room.
    mutating func append(_ element: Element, of user: User) -> Bool {
        guard count < sizeMax else { return false }
        if lines.isEmpty, next.count < batchSizeMax {
            next.append(element)
        } else if let length = lines[user]?.count {
            guard length < sizeMax - count else { return false }
            lines[user]?.append(element)
        } else {
            var line = CircularBuffer<Element>(initialCapacity: 1)
            line.append(element)
            lines[user] = line
            turns.append(user)
        }
        count += 1
        return true
    }

    /// Takes the next batch; empty if nothing waits.
    mutating func takeBatch() -> [Element] {
        var batch: [Element] = []
        if !next.isEmpty {
            swap(&batch, &next)
        } else {
            while batch.count < batchSizeMax, let user = turns.popFirst() {
                guard let element = lines[user]?.popFirst() else { continue }
                batch.append(element)
                if lines[user]?.isEmpty == true { lines[user] = nil } else { turns.append(user) }
            }
        }
        count -= batch.count
        return batch
    }
}
