import Foundation
import Synchronization

/// A queue for one thread: many threads put elements, one takes them all.
final class Inbox<Element: Sendable>: Sendable {
    /// How much of what is offered may wait.
    struct Room: Sendable {
        var count: Int
        var sizeBytes: Int
        /// Is put once where something had no room, until all elements are taken.
        var overflow: Element
    }

    private struct State {
        var elements: [Element] = []
        /// What the offered elements among them take.
        var sizeBytes = 0
        var hasOverflowed = false
        var isClosed = false
    }
    // A condition and not a mutex, since the thread that takes waits with a time limit.
    private let condition = NSCondition()
    private let state = Mutex(State())
    private let room: Room?

    init(room: Room? = nil) { self.room = room }

    /// Adds an element if there is room for it; otherwise the room's overflow stands for it.
    func offer(_ element: Element, sizeBytes: Int) {
        condition.withLock {
            state.withLock { state in
                if let room, state.elements.count >= room.count || state.sizeBytes >= room.sizeBytes {
                    if !state.hasOverflowed { state.elements.append(room.overflow) }
                    state.hasOverflowed = true
                } else {
                    state.elements.append(element)
                    state.sizeBytes += sizeBytes
                }
            }
            condition.signal()
        }
    }

    /// Adds an element even to a full inbox: one that others wait for, or of a kind that is rare.
    func put(_ element: Element) {
        condition.withLock {
            state.withLock { $0.elements.append(element) }
            condition.signal()
        }
    }

    /// Takes all elements; an empty list when none came in time; nil when the inbox is closed and empty.
    func take(within time: Duration) -> [Element]? {
        condition.withLock {
            if state.withLock({ $0.elements.isEmpty && !$0.isClosed }) {
                _ = condition.wait(until: Date(timeIntervalSinceNow: time / .seconds(1)))
            }
            return state.withLock { state in
                let taken = state.elements
                (state.elements, state.sizeBytes, state.hasOverflowed) = ([], 0, false)
                return taken.isEmpty && state.isClosed ? nil : taken
            }
        }
    }

    /// Waits, unless the inbox is closed meanwhile.
    func pause(for time: Duration) {
        let end = Date(timeIntervalSinceNow: time / .seconds(1))
        condition.withLock {
            while !state.withLock({ $0.isClosed }), condition.wait(until: end) {}
        }
    }

    func close() {
        condition.withLock {
            state.withLock { $0.isClosed = true }
            condition.broadcast()
        }
    }
}
