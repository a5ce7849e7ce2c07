import NIOCore
import Synchronization

/// The pages `/metrics` that clients haven't read yet.
///
/// Anyone may ask for the page, so it counts for no user, and each one is new. So only a few exist at a time. While that many are unread, further
/// requests share the last one, and the server no longer waits for clients that leave one unread.
final class UnreadPages: Sendable {
    /// A page, which exists until its client has it.
    final class Page: Sendable {
        let bytes: ByteBuffer
        private let place: Place

        fileprivate init(_ bytes: ByteBuffer, _ place: Place) {
            self.bytes = bytes
            self.place = place
        }

        /// Whether there are as many as may exist.
        var isOneOfTooMany: Bool { place.counter.count.load(ordering: .relaxed) >= UnreadPages.countMax }
    }

    fileprivate final class Counter: Sendable {
        let count = Atomic<Int>(0)
    }

    /// One page's place among them.
    fileprivate final class Place: Sendable {
        let counter: Counter
        /// How many there are with this one.
        let number: Int

        init(in counter: Counter) {
            self.counter = counter
            number = counter.count.add(1, ordering: .relaxed).newValue
        }

        deinit { counter.count.subtract(1, ordering: .relaxed) }
    }

    /// The most pages, including the last one made, which is kept.
    static let countMax = 8

    private let counter = Counter()
    private let last = Mutex<Page?>(nil)

    /// Returns a new page, or the last one if there are too many.
    func page(_ make: @Sendable () async throws -> String) async throws -> Page {
        let place = Place(in: counter)
        if place.number > Self.countMax, let last = last.withLock({ $0 }) { return last }
        let page = Page(ByteBuffer(string: try await make()), place)
        last.withLock { $0 = page }
        return page
    }
}
