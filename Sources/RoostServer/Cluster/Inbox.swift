import Foundation
import Synchronization

/// A queue for one thread: many threads put elements, one takes them all.
final class Inbox<Element: Sendable>: Sendable {
    private struct State {
        var elements: [Element] = []
        var isClosed = false
    }
    // A condition and not a mutex, since the thread that takes waits with a time limit.
    private let condition = NSCondition()
    private let state: Mutex<State>
    private let sizeMax: Int

    init(sizeMax: Int) {
        self.sizeMax = sizeMax
        state = Mutex(State())
    }

    /// Adds an element unless the inbox is full.
    ///
    /// - Returns: Whether there was room.
    func offer(_ element: Element) -> Bool { add(element, sizeMax: sizeMax) }

    /// Adds an element even to a full inbox: one that others wait for, or of a kind that is rare.
    func put(_ element: Element) { _ = add(element, sizeMax: .max) }

    private func add(_ element: Element, sizeMax: Int) -> Bool {
        condition.withLock {
            let hasRoom = state.withLock { state in
                guard state.elements.count < sizeMax else { return false }
                state.elements.append(element)
                return true
            }
            if hasRoom { condition.signal() }
            return hasRoom
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
                state.elements = []
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
