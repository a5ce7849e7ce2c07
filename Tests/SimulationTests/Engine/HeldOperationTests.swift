import Dispatch
import RoostAPI
import RoostCore
import Testing

@testable import RoostServer

/// On a busy server a mark, which no user waits for, shares a commit with the next operation.
@Suite("Operations that tolerate a delay", .timeLimit(.minutes(1)))
struct HeldOperationTests {
    private let never = WorkQueue.Hold(durationMax: .seconds(3600), countMax: 4, idleAfter: .seconds(3600))

    private func makeQueue(_ hold: WorkQueue.Hold) -> WorkQueue { WorkQueue(sizeMax: 100, batchSizeMax: 100, hold: hold) }

    private func append(_ user: UserID, toleratesDelay: Bool = true, to queue: WorkQueue) throws {
        try queue.append(
            Job(caller: Caller(user: user), toleratesDelay: toleratesDelay, run: { _ in [] }, destination: .waiting { _ in }))
    }

    /// Runs an action on another thread once the queue's thread holds operations back.
    private func whileHolding(_ queue: WorkQueue, _ act: @escaping @Sendable () throws -> Void) {
        DispatchQueue.global().async {
            let deadline = DispatchTime.now() + .seconds(30)
            while !queue.isHolding, DispatchTime.now() < deadline {}
            try? act()
        }
    }

    private func users(_ batch: [Job]?) -> [UserID]? { batch?.map(\.caller.user) }

    @Test("Marks are held back until another operation arrives, and keep their place before it")
    func released() throws {
        let queue = makeQueue(never)
        for user: UserID in ["ann", "bob"] { try append(user, to: queue) }
        whileHolding(queue) { try append("cat", toleratesDelay: false, to: queue) }
        #expect(users(queue.next()) == ["ann", "bob", "cat"])
        // None of them counts any longer.
        try append("dan", to: queue)
        whileHolding(queue) { try append("eve", toleratesDelay: false, to: queue) }
        #expect(users(queue.next()) == ["dan", "eve"])
    }

    @Test("Nothing is held back beside an operation that doesn't tolerate it")
    func urgent() throws {
        let queue = makeQueue(never)
        try append("ann", to: queue)
        try append("bob", toleratesDelay: false, to: queue)
        #expect(users(queue.next()) == ["ann", "bob"])
    }

    @Test("Enough marks for a batch are no longer held back")
    func enough() throws {
        let queue = makeQueue(never)
        for user: UserID in ["ann", "bob", "cat"] { try append(user, to: queue) }
        whileHolding(queue) { try append("dan", to: queue) }
        #expect(users(queue.next()) == ["ann", "bob", "cat", "dan"])
    }

    @Test("A mark is held back for a few milliseconds at most")
    func duration() throws {
        var hold = never
        hold.durationMax = .milliseconds(1)
        let queue = makeQueue(hold)
        try append("ann", to: queue)
        #expect(users(queue.next()) == ["ann"])
    }

    @Test("A lane that had nothing to do runs a mark at once, and a busy one 4 milliseconds after it was queued")
    func idle() {
        let hold = WorkQueue.Hold()
        let millisecond: UInt64 = 1_000_000
        let begun = 1000 * millisecond
        // While the last batch ran, just after it, and after a pause.
        #expect(hold.rest(of: begun - millisecond, since: begun, at: begun) == .milliseconds(3))
        #expect(hold.rest(of: begun + 19 * millisecond, since: begun, at: begun + 19 * millisecond) == .milliseconds(4))
        #expect(hold.rest(of: begun + 20 * millisecond, since: begun, at: begun + 20 * millisecond) == nil)
        // It has waited long enough.
        #expect(hold.rest(of: begun - 4 * millisecond, since: begun, at: begun) == nil)
        #expect(hold.rest(of: 0, since: .max, at: begun) == nil)
    }

    @Test("A queue without a hold gives marks at once")
    func none() throws {
        let queue = WorkQueue(sizeMax: 100, batchSizeMax: 100)
        try append("ann", to: queue)
        #expect(users(queue.next()) == ["ann"])
    }

    @Test("A closed queue holds nothing back")
    func closed() throws {
        let queue = makeQueue(never)
        try append("ann", to: queue)
        whileHolding(queue) { queue.close() }
        #expect(users(queue.next()) == ["ann"])
        #expect(queue.next() == nil)
    }

    @Test("Only marks as read and as delivered tolerate a delay")
    func operations() {
        #expect(
            OperationTable.handled.filter { $0.toleratesDelay }.map { $0.name }.sorted() == [
                "reading.mark", "reading.markDelivered",
            ])
    }
}
