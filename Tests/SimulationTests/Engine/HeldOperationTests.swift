import Dispatch
import RoostAPI
import RoostCore
import Testing

@testable import RoostServer

/// On a busy server a mark, which no user waits for, shares a commit with the next operation.
@Suite("Operations that tolerate a delay", .timeLimit(.minutes(1)))
struct HeldOperationTests {
    private static let long = Hold.Configuration(durationMax: .seconds(3600), countMax: 4, idleAfter: .seconds(3600))

    /// Makes a queue whose lane has just run an operation that doesn't tolerate a delay.
    private func makeQueue(_ hold: Hold.Configuration = Self.long) throws -> WorkQueue {
        let queue = WorkQueue(sizeMax: 100, batchSizeMax: 100, hold: hold)
        try append("eve", toleratesDelay: false, to: queue)
        #expect(users(queue.next()) == ["eve"])
        return queue
    }

    private func append(_ user: UserID, toleratesDelay: Bool = true, to queue: WorkQueue) throws {
        let traits = Job.Traits(toleratesDelay: toleratesDelay)
        try queue.append(Job(traits, caller: Caller(user: user), run: { _ in [] }, destination: .waiting { _ in }))
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

    @Test("marks are held back until another operation arrives, and keep their place before it")
    func released() throws {
        let queue = try makeQueue()
        for user: UserID in ["ann", "bob"] { try append(user, to: queue) }
        whileHolding(queue) { try append("cat", toleratesDelay: false, to: queue) }
        #expect(users(queue.next()) == ["ann", "bob", "cat"])
        // None of them counts any longer.
        try append("dan", to: queue)
        whileHolding(queue) { try append("eve", toleratesDelay: false, to: queue) }
        #expect(users(queue.next()) == ["dan", "eve"])
    }

    @Test("nothing is held back beside an operation that doesn't tolerate it")
    func urgent() throws {
        let queue = try makeQueue()
        try append("ann", to: queue)
        try append("bob", toleratesDelay: false, to: queue)
        #expect(users(queue.next()) == ["ann", "bob"])
    }

    @Test("enough marks for a batch are no longer held back")
    func enough() throws {
        let queue = try makeQueue()
        for user: UserID in ["ann", "bob", "cat"] { try append(user, to: queue) }
        whileHolding(queue) { try append("dan", to: queue) }
        #expect(users(queue.next()) == ["ann", "bob", "cat", "dan"])
    }

    @Test("a mark is held back for a few milliseconds at most")
    func duration() throws {
        var hold = Self.long
        hold.durationMax = .milliseconds(1)
        let queue = try makeQueue(hold)
        try append("ann", to: queue)
        #expect(users(queue.next()) == ["ann"])
    }

    private static let millisecond: UInt64 = 1_000_000

    private func job(at time: UInt64, toleratesDelay: Bool = true) -> Job {
        let job = Job(.init(toleratesDelay: toleratesDelay), caller: .server, run: { _ in [] }, destination: .waiting { _ in })
        job.queuedAt = time
        return job
    }

    /// Returns how long a mark is held back that was queued some milliseconds after the lane had asked for work.
    ///
    /// - Parameter waits: How often the lane asks again before that, 20 milliseconds apart.
    private func remaining(after milliseconds: Int64, waits: Int = 0, last batch: [Job]) -> Duration? {
        var hold = Hold(Hold.Configuration())
        for job in batch { hold.appended(job, isFirst: true) }
        hold.took(batch)
        let begun = 1000 * Self.millisecond
        for wait in 0...waits { hold.waits(at: begun + UInt64(wait) * 20 * Self.millisecond) }
        let time = UInt64(Int64(begun) + milliseconds * Int64(Self.millisecond))
        hold.appended(job(at: time), isFirst: true)
        return hold.remaining(count: 1, at: max(time, begun))
    }

    @Test("a lane that had nothing to do for 20 ms runs a mark at once, however often it looked; a busy one after 4 ms")
    func idle() {
        let sent = [job(at: 1, toleratesDelay: false)]
        #expect(remaining(after: -1, last: sent) == .milliseconds(3))
        #expect(remaining(after: -4, last: sent) == nil)
        #expect(remaining(after: 19, last: sent) == .milliseconds(4))
        #expect(remaining(after: 20, last: sent) == nil)
        #expect(remaining(after: 61, waits: 3, last: sent) == nil)
    }

    @Test("after a batch of a single mark the next one is run at once: its caller may be the only one")
    func alone() {
        #expect(remaining(after: 1, last: [job(at: 1)]) == nil)
        #expect(remaining(after: 1, last: [job(at: 1), job(at: 1)]) == .milliseconds(4))
        #expect(Hold(Hold.Configuration()).remaining(count: 1, at: 0) == nil)
    }

    @Test("a queue without a hold gives marks at once")
    func none() throws {
        let queue = WorkQueue(sizeMax: 100, batchSizeMax: 100)
        try append("ann", to: queue)
        #expect(users(queue.next()) == ["ann"])
    }

    @Test("a closed queue holds nothing back")
    func closed() throws {
        let queue = try makeQueue()
        try append("ann", to: queue)
        whileHolding(queue) { queue.close() }
        #expect(users(queue.next()) == ["ann"])
        #expect(queue.next() == nil)
    }

    @Test("only marks as read and as delivered tolerate a delay")
    func operations() {
        #expect(
            OperationTable.handled.filter { $0.toleratesDelay }.map { $0.name }.sorted() == [
                "reading.mark", "reading.markDelivered",
            ])
    }
}
