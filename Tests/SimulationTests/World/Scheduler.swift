import RoostTestSupport

/// The one owner of time and chance: the scheduled actions, in the order of their times.
///
/// Nothing runs in parallel. Actions for the same millisecond run in the order of scheduling, so a seed gives one history.
final class Scheduler {
    private struct Entry {
        let time: Int64
        let number: Int
        let isWork: Bool
        let body: () throws -> Void

        func isBefore(_ other: Entry) -> Bool { (time, number) < (other.time, other.number) }
    }

    /// Milliseconds since the beginning of the run.
    private(set) var now: Int64 = 0
    var random: SeededGenerator
    private(set) var history = History()
    /// Entries that advance the run, as opposed to those that only wait: timers and pings.
    private(set) var pendingWork = 0
    private(set) var stepCount = 0
    /// A binary heap: the next entry stands first.
    private var heap: [Entry] = []
    private var lastNumber = 0

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    func note(_ line: @autoclosure () -> String) { history.note("\(now) \(line())") }

    /// Schedules an action that advances the run.
    func after(_ milliseconds: Int, _ body: @escaping () throws -> Void) { add(milliseconds, isWork: true, body) }

    /// Schedules an action that only passes time, and isn't waited for.
    func idle(_ milliseconds: Int, _ body: @escaping () throws -> Void) { add(milliseconds, isWork: false, body) }

    /// Runs the next action. False if none is left.
    func step() throws -> Bool {
        guard let next = removeFirst() else { return false }
        now = max(now, next.time)
        stepCount += 1
        if next.isWork { pendingWork -= 1 }
        try next.body()
        return true
    }

    /// Drops the scheduled actions, with everything that they retain.
    func clear() { heap = [] }

    private func add(_ milliseconds: Int, isWork: Bool, _ body: @escaping () throws -> Void) {
        lastNumber += 1
        if isWork { pendingWork += 1 }
        heap.append(Entry(time: now + Int64(max(0, milliseconds)), number: lastNumber, isWork: isWork, body: body))
        var child = heap.count - 1
        while child > 0, heap[child].isBefore(heap[(child - 1) / 2]) {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    private func removeFirst() -> Entry? {
        guard let first = heap.first, let last = heap.popLast() else { return nil }
        guard !heap.isEmpty else { return first }
        heap[0] = last
        var parent = 0
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && heap[child].isBefore(heap[least]) {
                least = child
            }
            guard least != parent else { return first }
            heap.swapAt(parent, least)
            parent = least
        }
    }
}

/// The history of a run: a hash of all of it, and the newest lines for understanding a failure.
struct History {
    private(set) var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    private(set) var newest: [String] = []
    private static let kept = 60

    mutating func note(_ line: String) {
        // FNV-1a, as Swift's own hashes differ from run to run.
        for byte in line.utf8 { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
        newest.append(line)
        if newest.count > 2 * Self.kept { newest.removeFirst(Self.kept) }
    }

    var end: String { newest.suffix(Self.kept).joined(separator: "\n") }
}
