import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@testable import RoostServer

/// The order of the users' operations, when more are queued than fit a batch.
@Suite("Fair queue")
struct FairQueueTests {
    @Test("operations that fit one batch run in the order of arrival, whichever user sent them")
    func oneBatch() {
        var queue = FairQueue<String, Int>(sizeMax: 100, batchSizeMax: 4)
        for (number, user) in ["a", "a", "b", "a"].enumerated() { _ = queue.append(number, of: user) }
        let batches = (0..<2).map { _ in queue.takeBatch() }
        #expect(batches == [[0, 1, 2, 3], []])
        #expect(queue.isEmpty)
    }

    @Test("I18 after a thousand operations of one user, another user's next one waits for two batches, and not for all")
    func turns() {
        var queue = FairQueue<String, String>(sizeMax: 10_000, batchSizeMax: 16)
        for number in 0..<1000 { _ = queue.append("many \(number)", of: "many") }
        _ = queue.append("one", of: "one")
        let batches = (0..<2).map { _ in queue.takeBatch() }
        #expect(batches[0] == (0..<16).map { "many \($0)" })
        #expect(batches[1] == ["many 16", "one"] + (17..<31).map { "many \($0)" })
    }

    @Test("I18 one user takes at most half of what the list leaves, and two a third each: there is room for the next")
    func shares() {
        for users in 1...4 {
            var queue = FairQueue<Int, Int>(sizeMax: 1200, batchSizeMax: 1)
            var isFull = false
            while !isFull {
                isFull = true
                for user in 0..<users where queue.append(0, of: user) { isFull = false }
            }
            #expect(abs(queue.count - 1200 * users / (users + 1)) <= users + 1, "\(users) users")
            let hasRoom = queue.append(0, of: users)
            #expect(hasRoom)
        }
    }

    @Test("I18 one user leaves room in a queue that is shorter than a batch, and all that is queued there is one batch")
    func shortQueue() {
        var queue = FairQueue<String, Int>(sizeMax: 312, batchSizeMax: 512)
        var count = 0
        while queue.append(count, of: "many") { count += 1 }
        // A list of a quarter, and a line as long as the room that is left.
        #expect(count == 78 + 117)
        let hasRoom = queue.append(count, of: "one")
        let batch = queue.takeBatch()
        // The list, and then the lines in turn.
        var expected = Array(0..<count)
        expected.insert(count, at: 79)
        #expect(hasRoom && batch == expected)
        #expect(queue.isEmpty)
    }

    @Test(
        "elements appended and taken at random are taken once each, in their user's order, and the queue never exceeds its limit",
        arguments: Seeds.first(300))
    func random(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let (sizeMax, batchSizeMax, users) = (random.number(1...60), random.number(1...8), random.number(1...5))
        var queue = FairQueue<Int, Int>(sizeMax: sizeMax, batchSizeMax: batchSizeMax)
        var expected: [Int: [Int]] = [:]
        var taken: [Int: [Int]] = [:]
        func take() {
            for element in queue.takeBatch() { taken[element % 10, default: []].append(element) }
        }
        for number in 0..<200 {
            let user = random.number(0...users - 1)
            let (before, element) = (queue.count, number * 10 + user)
            let isTaken = queue.append(element, of: user)
            if isTaken { expected[user, default: []].append(element) }
            #expect(isTaken || before > 0)
            #expect(queue.count == before + (isTaken ? 1 : 0) && queue.count <= sizeMax)
            if random.once(in: 6) { take() }
        }
        while !queue.isEmpty { take() }
        #expect(taken == expected)
    }

    @Test("a backend's operations take the backend's turn, whichever user it acts for")
    func backend() {
        let queue = WorkQueue(sizeMax: 100, batchSizeMax: 1)
        func append(_ user: UserID, token: UserID? = nil) throws {
            let identity = token.map { TokenIdentity(user: $0) }
            try queue.append(Job(caller: Caller(user: user, token: identity), run: { _ in [] }, destination: .waiting { _ in }))
        }
        #expect(throws: Never.self) {
            try append("first")
            for number in 0..<5 { try append(UserID("user-\(number)"), token: "backend") }
            try append("ann")
        }
        let order = (0..<7).compactMap { _ in queue.next()?.first?.caller.user }
        #expect(order == ["first", "user-0", "ann", "user-1", "user-2", "user-3", "user-4"])
    }
}
