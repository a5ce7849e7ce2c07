import NIOCore
import Synchronization

/// The pages of `/metrics` that clients haven't read yet.
///
/// Anyone may ask for the page, so it counts for no user, and each one is new. So only a few exist at a time. They are made one after another, and
/// requests that arrive meanwhile share the one being made. While there are as many as may exist, further requests share the last one, and the
/// server no longer waits for clients that leave one unread.
final class UnreadPages: Sendable {
    /// A page, which exists until its clients have it.
    final class Page: Sendable {
        let bytes: ByteBuffer
        private let counter: Counter

        fileprivate init(_ bytes: ByteBuffer, in counter: Counter) {
            self.bytes = bytes
            self.counter = counter
            counter.count.add(1, ordering: .relaxed)
        }

        deinit { counter.count.subtract(1, ordering: .relaxed) }

        /// Whether there are as many as may exist.
        var isOneOfTooMany: Bool { counter.isFull }
    }

    fileprivate final class Counter: Sendable {
        let count = Atomic<Int>(0)

        var isFull: Bool { count.load(ordering: .relaxed) >= UnreadPages.countMax }
    }

    private struct State {
        /// Makes, or has made, the last page, which is kept.
        var last: Task<Page, any Error>?
        var isMaking = false
    }

    /// The most pages, including the last one made.
    static let countMax = 8

    private let counter = Counter()
    private let state = Mutex(State())

    /// Returns a new page; the one being made, if there is one; or the last one, if there are too many.
    func page(_ make: @escaping @Sendable () async throws -> String) async throws -> Page {
        let page = state.withLock { state -> Task<Page, any Error> in
            // Only one is made at a time, so the number of those that exist can't pass the maximum, and the last one is the newest.
            if let last = state.last, state.isMaking || counter.isFull { return last }
            let new = Task<Page, any Error> {
                defer { self.state.withLock { $0.isMaking = false } }
                return Page(ByteBuffer(string: try await make()), in: self.counter)
            }
            state = State(last: new, isMaking: true)
            return new
        }
        return try await page.value
    }
}
