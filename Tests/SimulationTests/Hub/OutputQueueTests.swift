import NIOCore
import RoostTestSupport
import Testing

@testable import RoostServer

/// When the output of sockets is flushed.
@Suite struct OutputQueueTests {
    private final class Socket: QueuedOutput {
        let name: String
        var outputState = OutputState()

        init(_ name: String) { self.name = name }
    }

    private let ann = Socket("ann")
    private let bob = Socket("bob")
    private let cleo = Socket("cleo")
    private let start = NIODeadline.uptimeNanoseconds(1_000_000_000)

    private func after(_ microseconds: Int64) -> NIODeadline { start + .microseconds(microseconds) }

    @Test("an idle socket's event goes out at the end of the turn, with all events of the turn")
    func idle() {
        var queue = OutputQueue<Socket>()
        #expect(queue.add(ann, isReply: false, at: start) == .atEndOfTurn)
        #expect(queue.add(bob, isReply: false, at: start) == nil)
        #expect(queue.add(ann, isReply: false, at: start) == nil)
        #expect(queue.takeDue().map(\.name) == ["ann", "bob"])
        #expect(queue.takeDue().isEmpty)
        #expect(queue.takeWaiting().isEmpty)
    }

    @Test("events that closely follow a flush wait for the rest of the millisecond, and no longer")
    func close() {
        var queue = OutputQueue<Socket>()
        _ = queue.add(ann, isReply: false, at: start)
        queue.flushed(queue.takeDue(), at: after(100))

        #expect(queue.add(ann, isReply: false, at: after(200)) == .at(after(1100)))
        #expect(queue.add(ann, isReply: false, at: after(600)) == nil)
        #expect(queue.takeDue().isEmpty)
        #expect(queue.takeWaiting().map(\.name) == ["ann"])
        queue.flushed([ann], at: after(1150))

        // A millisecond after the last flush the socket is idle again.
        #expect(queue.add(ann, isReply: false, at: after(2150)) == .atEndOfTurn)
    }

    @Test("a socket with a large backlog doesn't wait for more, whether it was waiting already or not")
    func large() {
        for hasWaited in [false, true] {
            var queue = OutputQueue<Socket>()
            let socket = Socket("ann")
            _ = queue.add(socket, isReply: false, at: start)
            queue.flushed(queue.takeDue(), at: start)
            if hasWaited { _ = queue.add(socket, isReply: false, at: after(10)) }
            #expect(queue.add(socket, isReply: false, mayWait: false, at: after(20)) == .atEndOfTurn)
            #expect(queue.add(socket, isReply: false, mayWait: false, at: after(30)) == nil)
            #expect(queue.takeDue().map(\.name) == ["ann"])
            queue.flushed([socket], at: after(40))
            #expect(queue.takeWaiting().isEmpty)
        }
    }

    @Test("a busy socket doesn't make an idle one wait")
    func others() {
        var queue = OutputQueue<Socket>()
        _ = queue.add(ann, isReply: false, at: start)
        queue.flushed(queue.takeDue(), at: start)
        #expect(queue.add(ann, isReply: false, at: after(10)) == .at(after(1000)))
        #expect(queue.add(bob, isReply: false, at: after(10)) == .atEndOfTurn)
        #expect(queue.takeDue().map(\.name) == ["bob"])
        #expect(queue.takeWaiting().map(\.name) == ["ann"])
    }

    @Test("a channel with a thousand busy sockets doesn't make the only member of a quiet one wait, in any turn")
    func quietChannel() {
        var queue = OutputQueue<Socket>()
        let busy = (0..<1000).map { Socket("\($0)") }
        for turn in 0..<20 {
            let now = after(Int64(turn) * 300)
            for socket in busy { _ = queue.add(socket, isReply: false, at: now) }
            // A quiet socket has output only every third millisecond, which is flushed at the end of that very turn.
            if turn % 10 == 5 { _ = queue.add(cleo, isReply: false, at: now) }
            let due = queue.takeDue()
            #expect(due.contains { $0 === cleo } == (turn % 10 == 5))
            queue.flushed(due, at: now)
            if turn % 4 == 3 { queue.flushed(queue.takeWaiting(), at: now) }
        }
    }

    @Test("a reply waits for nothing, goes first, and takes earlier events along")
    func replies() {
        var queue = OutputQueue<Socket>()
        for socket in [ann, bob] { _ = queue.add(socket, isReply: false, at: start) }
        queue.flushed(queue.takeDue(), at: start)
        // Ann's queued events go out with her reply, before bob's and cleo's.
        #expect(queue.add(ann, isReply: false, at: after(10)) == .at(after(1000)))
        #expect(queue.add(bob, isReply: false, at: after(10)) == nil)
        #expect(queue.add(cleo, isReply: false, at: after(10)) == .atEndOfTurn)
        #expect(queue.add(ann, isReply: true, at: after(10)) == nil)
        #expect(queue.add(ann, isReply: true, at: after(10)) == nil)
        #expect(queue.add(ann, isReply: false, at: after(10)) == nil)
        let due = queue.takeDue()
        #expect(due.map(\.name) == ["ann", "cleo"])
        queue.flushed(due, at: after(20))
        #expect(queue.takeWaiting().map(\.name) == ["bob"])
    }

    @Test("a socket whose reply follows an event of the same turn is flushed once")
    func once() {
        var queue = OutputQueue<Socket>()
        for socket in [bob, ann] { _ = queue.add(socket, isReply: false, at: start) }
        _ = queue.add(ann, isReply: true, at: start)
        #expect(queue.takeDue().map(\.name) == ["ann", "bob"])
    }

    @Test("in any order of output, each piece is flushed within a millisecond of its turn", arguments: 0..<200)
    func random(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var queue = OutputQueue<Socket>()
        let sockets = (0..<4).map { Socket("\($0)") }
        var (time, timer): (NIODeadline, NIODeadline?) = (start, nil)
        /// The time of each socket's oldest unflushed output.
        var oldest: [NIODeadline?] = Array(repeating: nil, count: 4)

        func flush(_ flushed: [Socket]) {
            for socket in flushed { oldest[Int(socket.name) ?? 0] = nil }
            queue.flushed(flushed, at: time)
        }
        for _ in 0..<300 {
            time = time + .microseconds(Int64(generator.next() % 400))
            if let due = timer, due <= time {
                timer = nil
                flush(queue.takeWaiting())
            }
            var isArranged = false
            for _ in 0..<(generator.next() % 6) {
                let number = Int(generator.next() % 4)
                oldest[number] = oldest[number] ?? time
                switch queue.add(sockets[number], isReply: generator.next() % 5 == 0, at: time) {
                case .atEndOfTurn:
                    #expect(!isArranged)
                    isArranged = true
                case .at(let end):
                    #expect(timer == nil)
                    timer = end
                case nil: break
                }
            }
            if isArranged { flush(queue.takeDue()) }
            for waiting in oldest {
                guard let waiting else { continue }
                #expect(timer.map { $0 <= waiting + .milliseconds(1) } == true)
            }
        }
    }

    @Test("I18 a delivery's output for single users is written each time a megabyte is queued, and shared output isn't")
    func told() {
        var unshared = UnsharedOutput<Socket>()
        unshared.note(5 << 20, to: cleo)
        #expect(unshared.takeFull().isEmpty)
        var written: [String] = []
        for number in 0..<40 {
            unshared.isUnshared = true
            unshared.note(100 << 10, to: number.isMultiple(of: 2) ? ann : bob)
            written += unshared.takeFull().map(\.name)
            // Eleven of 100 KiB each are more than a megabyte.
            #expect(written.count == (number + 1) / 11 * 11)
        }
        unshared.note(5 << 20, to: cleo)
        #expect(unshared.takeFull().isEmpty)
    }
}
