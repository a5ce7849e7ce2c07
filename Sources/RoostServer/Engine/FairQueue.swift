import NIOCore

/// A bounded queue that is taken in batches, in which nobody waits behind all that another asks for.
///
/// While no more waits than a batch may have, and no more than a quarter of the queue, it is one list in the order of arrival. What comes beyond
/// that stands in a line for each user, and the lines give one element each in turn. A user's own elements keep their order. As a value without a
/// clock and threads it is tested by itself ([0055](docs/decisions/0055-users-take-turns.md)).
struct FairQueue<User: Hashable, Element> {
    private let sizeMax: Int
    private let batchSizeMax: Int
    /// The most elements of the list: a short queue would have no room for others if one user could fill a batch.
    private let listSizeMax: Int
    /// The list, with which the next batch begins. It has no lines, since most batches take everything that waits.
    private var list: [Element] = []
    private var lines: [User: CircularBuffer<Element>] = [:]
    /// The users that have a line, the next to give first.
    private var turns = CircularBuffer<User>()
    private(set) var count = 0

    init(sizeMax: Int, batchSizeMax: Int) {
        self.sizeMax = sizeMax
        self.batchSizeMax = batchSizeMax
        listSizeMax = max(1, min(batchSizeMax, sizeMax / 4))
    }

    var isEmpty: Bool { count == 0 }

    /// Adds an element, unless the queue is full, or this user's line is as long as the room that is left: of what the list leaves, one user takes
    /// half at most, two who ask at the same time a third each, and who comes later half of the rest. With the list, one user takes five eighths of the
    /// queue at most.
    ///
    /// - Returns: Whether there was room.
    mutating func append(_ element: Element, of user: User) -> Bool {
        guard count < sizeMax else { return false }
        if lines.isEmpty, list.count < listSizeMax {
            list.append(element)
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

    /// Takes the next batch: the list, and from the lines as much as there is room for besides. Empty if nothing waits.
    mutating func takeBatch() -> [Element] {
        var batch: [Element] = []
        swap(&batch, &list)
        while batch.count < batchSizeMax, let user = turns.popFirst() {
            guard let element = lines[user]?.popFirst() else { continue }
            batch.append(element)
            if lines[user]?.isEmpty == true { lines[user] = nil } else { turns.append(user) }
        }
        count -= batch.count
        return batch
    }
}
