import Testing

@testable import RoostServer

@Suite("A thread's inbox")
struct InboxTests {
    private let second = Duration.seconds(1)

    @Test(
        "I18 what has no room is dropped, and one element stands for all of it",
        arguments: [(count: 2, sizeBytes: 1000), (100, 15)])
    func overflow(limits: (count: Int, sizeBytes: Int)) {
        let inbox = Inbox<String>(room: .init(count: limits.count, sizeBytes: limits.sizeBytes, overflow: "more"))
        for _ in 0..<2 {
            for number in 1...5 { inbox.offer("\(number)", sizeBytes: 10) }
            inbox.put("put")
            #expect(inbox.take(within: second) == ["1", "2", "more", "put"])
        }
        inbox.close()
        #expect(inbox.take(within: second) == nil)
    }

    @Test("Without limits everything waits")
    func noLimits() {
        let inbox = Inbox<Int>()
        for number in 0..<1000 { inbox.offer(number, sizeBytes: 1 << 40) }
        #expect(inbox.take(within: second) == Array(0..<1000))
        #expect(inbox.take(within: .milliseconds(1)) == [])
    }
}
