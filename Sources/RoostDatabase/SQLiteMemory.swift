import RoostAPI
import RoostCore
import Synchronization

/// The values that a database in one process keeps between its reads (``ReadCache``), and the record of changes that keeps them exact.
///
/// All writes use one connection, so commits are numbered in the order in which they become visible. The record has the number of the newest commit
/// of each mark, and is never shortened: an unused mark costs only its place.
final class SQLiteMemory: Sendable {
    private let changes = Mutex(Changes())
    private let values: Mutex<Values>
    private let isChecked: Bool

    init(sizeBytesMax: Int, isChecked: Bool) {
        values = Mutex(Values(sizeBytesMax: sizeBytesMax))
        self.isChecked = isChecked
    }

    // MARK: The writer

    /// Records the changes of a commit, which isn't visible before this returns.
    func willCommit(_ marks: [ChangeMark]) {
        changes.withLock { changes in
            changes.begun += 1
            guard !changes.latest.isEmpty else { return }
            for mark in marks { changes.latest[Int(mark.index)] = changes.begun }
        }
    }

    /// Records that the commit is visible to every new snapshot, or has failed.
    func didCommit() { changes.withLock { $0.ended = $0.begun } }

    // MARK: Readers

    /// Returns the memory for a snapshot that hasn't begun.
    func forSnapshot() -> any ReadCache { Snapshot(memory: self, commit: changes.withLock { $0.ended }) }

    func forget() { values.withLock { $0.removeAll() } }

    /// The size of the kept values, and the number of users they belong to.
    var extent: (sizeBytes: Int, userCount: Int) { values.withLock { $0.extent } }

    private struct Snapshot: ReadCache {
        let memory: SQLiteMemory
        let commit: Int64

        var isChecked: Bool { memory.isChecked }

        func value(for user: UserID) -> (any CachedValue)? { memory.values.withLock { $0.value(for: user) } }

        func keep(_ value: any CachedValue, for user: UserID) -> Bool {
            memory.changes.withLock { $0.record() }
            return memory.values.withLock { $0.keep(value, for: user) }
        }

        /// Checked in parts, so the writer waits for one part at most.
        func changes(among marks: [ChangeMark], after commit: Int64, atMost max: Int) -> [Int]? {
            var found: [Int] = []
            for start in stride(from: 0, to: marks.count, by: 1024) {
                let part = start..<min(start + 1024, marks.count)
                memory.changes.withLock { changes in
                    changes.latest.withUnsafeBufferPointer { latest in
                        for index in part where latest.isEmpty || latest[Int(marks[index].index)] > commit { found.append(index) }
                    }
                }
                if found.count > max { return nil }
            }
            return found
        }
    }

    private struct Changes {
        /// The number of the newest commit, running or ended.
        var begun: Int64 = 0
        var ended: Int64 = 0
        /// The number of the newest commit that changed a mark. Empty until something is kept.
        var latest: [Int64] = []

        /// Starts the record, as if everything had just changed.
        mutating func record() {
            if latest.isEmpty { latest = Array(repeating: begun, count: ChangeMark.count) }
        }
    }

    /// Values by user; the least recently used ones are evicted.
    private struct Values {
        private struct Entry {
            var value: any CachedValue
            var lastUse: Int64
            let sizeBytes: Int
        }

        private var entries: [UserID: Entry] = [:]
        private var useCount: Int64 = 0
        private var sizeBytes = 0
        private let sizeBytesMax: Int

        init(sizeBytesMax: Int) { self.sizeBytesMax = sizeBytesMax }

        mutating func value(for user: UserID) -> (any CachedValue)? {
            useCount += 1
            entries[user]?.lastUse = useCount
            return entries[user]?.value
        }

        mutating func keep(_ value: any CachedValue, for user: UserID) -> Bool {
            useCount += 1
            // The sizes of the entry and the user's id are estimates.
            let entry = Entry(value: value, lastUse: useCount, sizeBytes: value.sizeBytes + user.rawValue.utf8.count + 128)
            guard entry.sizeBytes <= sizeBytesMax / 2 else { return false }
            sizeBytes += entry.sizeBytes - (entries.updateValue(entry, forKey: user)?.sizeBytes ?? 0)
            if sizeBytes > sizeBytesMax { makeRoom() }
            return true
        }

        /// Evicts the least recently used values, a quarter more than necessary, so they are sorted only rarely.
        private mutating func makeRoom() {
            for (user, entry) in entries.sorted(by: { $0.value.lastUse < $1.value.lastUse }) {
                guard sizeBytes > sizeBytesMax / 4 * 3 else { return }
                entries[user] = nil
                sizeBytes -= entry.sizeBytes
            }
        }

        var extent: (sizeBytes: Int, userCount: Int) { (sizeBytes, entries.count) }

        mutating func removeAll() {
            entries = [:]
            sizeBytes = 0
        }
    }
}
