import RoostDatabase
import Synchronization

/// A queue for one thread: many threads put elements, one takes them all.
final class Inbox<Element: Sendable>: Sendable {
    /// How many of the offered elements may be queued.
    struct Room: Sendable {
        var count: Int
        var sizeBytes: Int
        /// Queued once in place of elements that had no room, until all elements are taken.
        var overflow: Element
    }

    private struct State {
        var elements: [Element] = []
        /// The size of the offered elements among them.
        var sizeBytes = 0
        var hasOverflowed = false
        var isClosed = false
        /// The thread waits for an element, or is about to.
        var isAwaited = false

        /// Returns whether the thread is to be woken; true once for each wait.
        mutating func wakes() -> Bool {
            defer { isAwaited = false }
            return isAwaited
        }
    }
    private let state = Mutex(State())
    /// Signalled outside the lock, which the woken thread takes immediately.
    private let available = MonotonicSemaphore()
    private let closing = MonotonicSemaphore()
    private let room: Room?

    init(room: Room? = nil) { self.room = room }

    /// Adds an element if there is room for it; otherwise the room's overflow replaces it.
    func offer(_ element: Element, sizeBytes: Int) {
        let wakes = state.withLock { state in
            if let room, state.elements.count >= room.count || state.sizeBytes >= room.sizeBytes {
                if !state.hasOverflowed { state.elements.append(room.overflow) }
                state.hasOverflowed = true
            } else {
                state.elements.append(element)
                state.sizeBytes += sizeBytes
            }
            return state.wakes()
        }
        if wakes { available.signal() }
    }

    /// Adds an element even to a full inbox: one that others wait for, or of a rare kind.
    func put(_ element: Element) {
        let wakes = state.withLock { state in
            state.elements.append(element)
            return state.wakes()
        }
        if wakes { available.signal() }
    }

    /// Takes all elements; an empty list if none arrived in time; nil if the inbox is closed and empty.
    func take(within time: Duration) -> [Element]? {
        let mustWait = state.withLock { state in
            state.isAwaited = state.elements.isEmpty && !state.isClosed
            return state.isAwaited
        }
        let isWoken = mustWait && available.wait(atMost: time)
        let (taken, isLate): ([Element]?, Bool) = state.withLock { state in
            let isLate = mustWait && !isWoken && !state.isAwaited
            state.isAwaited = false
            let taken = state.elements
            (state.elements, state.sizeBytes, state.hasOverflowed) = ([], 0, false)
            return (taken.isEmpty && state.isClosed ? nil : taken, isLate)
        }
        // The signal for these elements may arrive at any moment, and would end the next wait.
        if isLate { available.wait() }
        return taken
    }

    var isClosed: Bool { state.withLock { $0.isClosed } }

    /// Waits, unless the inbox is closed meanwhile.
    func pause(for time: Duration) {
        guard !state.withLock({ $0.isClosed }), closing.wait(atMost: time) else { return }
        // For the next pause.
        closing.signal()
    }

    func close() {
        let wakes = state.withLock { state in
            state.isClosed = true
            return state.wakes()
        }
        if wakes { available.signal() }
        closing.signal()
    }
}
