import NIOCore

/// A bounded queue that is taken in batches, in which no user waits for all of another user's elements.
///
/// While no more is queued than fits into a batch, and no more than a quarter of the queue, it is one list in the order of arrival. Elements beyond
/// that go into one line per user, and the lines give one element each in turn. A user's own elements keep their order. As a value without a clock
/// and threads it is tested by itself ([0055](docs/decisions/0055-users-take-turns.md)).
struct FairQueue<User: Hashable, Element> {
    private let sizeMax: Int
    private let batchSizeMax: Int
    /// The most elements of the list: in a short queue, one user who fills a batch would leave no room for others.
    private let listSizeMax: Int
    /// The list, with which the next batch begins. It has no lines, since most batches take everything that is queued.
    private var list: [Element] = []
    private var lines: [User: CircularBuffer<Element>] = [:]
    /// The users that have a line, the next one to give first.
    private var turns = CircularBuffer<User>()
    private(set) var count = 0

    init(sizeMax: Int, batchSizeMax: Int) {
        self.sizeMax = sizeMax
        self.batchSizeMax = batchSizeMax
        listSizeMax = max(1, min(batchSizeMax, sizeMax / 4))
    }

    var isEmpty: Bool { count == 0 }

    /// Adds an element, unless the queue is full or this user's line is as long as the remaining room. Of the room that the list leaves, one user
    /// therefore takes at most half, two concurrent users a third each, and a later one half of the rest. Together with the list, one user takes at
    /// most five eighths of the queue.
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

    /// Takes the next batch: the list, and from the lines as many elements as still fit. Empty if nothing is queued.
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
