import NIOCore
import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@testable import RoostServer

/// The counters of bytes and connections, without a socket.
@Suite struct BudgetStateTests {
    private static func reply(_ call: Int64) -> [UInt8] { Array(#"{"reply":\#(call),"result":{}}"#.utf8) }

    /// Calls of one kind, as many at a time as allowed.
    private struct Calls {
        var budget = SocketBudget(limits: .init())
        private var number: Int64 = 0
        private let answer: AnswerWeight

        init(_ answer: AnswerWeight) { self.answer = answer }

        /// Begins calls until no further ones may be decoded.
        mutating func begin() -> Int {
            var count = 0
            while budget.mayDecode, count < 300 {
                number += 1
                count += 1
                budget.begin(call: number, asked: 80, answer)
            }
            return count
        }

        /// Answers the newest calls.
        mutating func end(_ count: Int, sizeBytes: Int) {
            for call in 0..<count {
                let frame = BudgetStateTests.reply(number - Int64(call))
                budget.end(reply: frame + [UInt8](repeating: 32, count: max(0, sizeBytes - frame.count)))
            }
        }
    }

    @Test("I18 the first page is in progress alone, small calls 256 together, and an answer makes room for the next")
    func weights() {
        var budget = SocketBudget(limits: .init())
        budget.begin(call: 1, asked: 80, .page)
        #expect(!budget.mayDecode)
        budget.end(reply: Self.reply(1))
        #expect(budget.mayDecode)
        for call in 1...255 { budget.begin(call: Int64(call), asked: 100, .small) }
        #expect(budget.mayDecode)
        budget.begin(call: 256, asked: 100, .small)
        #expect(!budget.mayDecode)
        budget.end(reply: Self.reply(7))
        #expect(budget.mayDecode)
        // A page that begins beside many small calls exceeds the window, and nothing follows it.
        budget.begin(call: 500, asked: 80, .page)
        #expect(!budget.mayDecode)
        for call in 1...255 where call != 7 { budget.end(reply: Self.reply(Int64(call))) }
        #expect(budget.mayDecode)
        budget.end(reply: Self.reply(500))
        budget.end(reply: Self.reply(256))
        #expect([budget.inFlightBytes, budget.heldBytes] == [0, 0])
    }

    @Test("I18 eight small pages run together once one was answered, and after a large page few may begin for a while")
    func pages() {
        var calls = Calls(.page)
        var counts = [calls.begin()]
        calls.end(1, sizeBytes: 18_000)
        counts.append(calls.begin())
        calls.end(8, sizeBytes: 60_000)
        counts.append(calls.begin())
        calls.end(5, sizeBytes: 1 << 20)
        counts.append(calls.begin())
        // The memory of a large page fades with those that follow it.
        for _ in 0..<8 {
            calls.end(counts[counts.count - 1], sizeBytes: 1000)
            counts.append(calls.begin())
        }
        #expect(counts == [1, 8, 5, 1, 1, 1, 1, 1, 2, 2, 4, 8])
        calls.end(8, sizeBytes: 1000)
        calls.budget.begin(call: 0, asked: 80, AnswerWeight(of: WatchChannel(channel: "general")))
        #expect(!calls.budget.mayDecode)
    }

    @Test("I18 a write that answers with up to a hundred messages runs alone")
    func writesOfMany() {
        for operation in [
            SendAdminMessage(channels: ["general"], clientId: "1", text: "x"),
            DeleteMessages(channel: "general", messages: [MessageID(rawValue: 1)]), QueryAndWatchChannels(query: QueryChannels()),
        ] as [any Handled] {
            var budget = SocketBudget(limits: .init())
            budget.begin(call: 0, asked: 80, AnswerWeight(of: operation))
            #expect(!budget.mayDecode)
        }
    }

    @Test("I18 eight calls that answer with a stored message run together, however small they are")
    func storedMessages() {
        let message = MessageID(rawValue: 1)
        for operation in [
            EditMessage(channel: "general", message: message), UpdateMetaArrays(channel: "general", message: message),
            UndeleteMessage(channel: "general", message: message), GetMessage(channel: "general", message: message),
        ] as [any Handled] {
            var budget = SocketBudget(limits: .init())
            var count: Int64 = 0
            while budget.mayDecode {
                budget.begin(call: count, asked: 80, AnswerWeight(of: operation))
                count += 1
            }
            #expect(count == 8)
        }
    }

    @Test("I18 64 small rows are read together once one was answered, and after a large one few are for a while")
    func rows() {
        var calls = Calls(.row)
        var counts = [calls.begin()]
        calls.end(1, sizeBytes: 600)
        counts.append(calls.begin())
        calls.end(16, sizeBytes: 500_000)
        counts.append(calls.begin())
        for _ in 0..<24 {
            calls.end(counts[counts.count - 1], sizeBytes: 600)
            counts.append(calls.begin())
        }
        #expect(counts.prefix(3) == [8, 8, 1])
        #expect(counts.last == 64)
        calls.end(64, sizeBytes: 600)
        // Pages count separately.
        calls.budget.begin(call: 0, asked: 80, .page)
        #expect(!calls.budget.mayDecode)
        calls.budget.end(reply: Self.reply(0))
        #expect([calls.budget.inFlightBytes, calls.budget.heldBytes] == [0, 0])
    }

    @Test("I18 a call's number is in use until its reply, whatever its size; a reply to no call releases nothing")
    func numbers() {
        for (asked, answer) in [(80, AnswerWeight.row), (100, .small), (20_000, .small), (80, .page)] {
            var budget = SocketBudget(limits: .init())
            budget.begin(call: -7, asked: asked, answer)
            budget.begin(call: 1, asked: 80, .small)
            let weight = budget.inFlightBytes
            #expect(budget.isInFlight(-7) && !budget.isInFlight(7))
            budget.end(reply: Self.reply(7))
            #expect(budget.inFlightBytes == weight)
            budget.end(reply: Self.reply(-7))
            #expect(!budget.isInFlight(-7) && budget.inFlightBytes < weight)
            budget.end(reply: Self.reply(1))
            #expect([budget.inFlightBytes, budget.heldBytes] == [0, 0])
        }
        for number in [0, 9, -1, .max, .min] as [Int64] { #expect(ReplyFrame.call(of: Self.reply(number)) == number) }
    }

    @Test("I18 a call's memory counts once: with its socket if it is small, otherwise with its job")
    func callBytes() {
        var budget = SocketBudget(limits: .init())
        var left: [Int] = []
        for (asked, answer) in [(80, AnswerWeight.small), (400, .page), (20_000, .small), (20_000, .page)] {
            left.append(budget.begin(call: Int64(left.count), asked: asked, answer))
        }
        #expect(left == [0, 0, 20_000, 20_000] && budget.heldBytes == budget.limits.smallCallBytes + 400)
        for number in 0..<4 { budget.end(reply: Self.reply(Int64(number))) }
        #expect([budget.inFlightBytes, budget.heldBytes] == [0, 0])
    }

    @Test("I18 unread replies and events count until they are read")
    func unread() {
        var budget = SocketBudget(limits: .init())
        budget.write(5000, isEvent: true)
        #expect(budget.heldBytes == 0)
        budget.becameUnwritable(1_000_000)
        #expect([budget.mayDecode, budget.exceedsEventLimit] == [false, false])
        budget.write(1 << 20, isEvent: true)
        #expect(!budget.exceedsEventLimit)
        budget.write(1, isEvent: true)
        #expect(budget.exceedsEventLimit)
        #expect(budget.heldBytes == 1_000_000 + (1 << 20) + 1)
        budget.becameWritable()
        #expect([budget.mayDecode, budget.heldBytes == 0] == [true, true])
    }

    @Test("the shared sums follow within a step, and end at zero")
    func published() {
        var budget = SocketBudget(limits: .init())
        budget.undecoded(4000)
        var changes = [budget.unpublished()]
        for size in [9000, 9000, 8000, 0, 5000] {
            budget.undecoded(size)
            changes.append(budget.unpublished())
        }
        changes += [budget.ended(), budget.ended()]
        #expect(changes == [0, 9000, 0, 0, -9000, 5000, -5000, 0])
    }

    @Test("I18 with the budget used up nothing large begins, with a quarter more nothing at all, until enough is released")
    func memory() {
        let ledger = ByteLedger(sizeBytesMax: 1000)
        let states = [999, 1, 249, 1, -251].map { change in
            ledger.add(change)
            return [ledger.isFull, ledger.hasRoom(forWriteAfter: 0)]
        }
        #expect(states == [[false, true], [true, true], [true, true], [true, false], [false, true]])
    }

    @Test("the bytes that a socket holds when it authenticates count for its user too, until they are released")
    func holding() {
        let (server, user) = (ByteLedger(sizeBytesMax: 1000), ByteLedger(sizeBytesMax: 1000))
        for _ in 0..<3 {
            var held = SocketAccount(in: server)
            held.add(700)
            #expect(held.user == nil && server.heldBytes == 700 && user.heldBytes == 0)
            held.belong(to: user)
            #expect(user.heldBytes == 700)
            held.add(200)
            held.add(-900)
            #expect(server.heldBytes == 0 && user.heldBytes == 0)
        }
    }

    @Test("I18 a queue holds as many operations as it may, and refuses the next as overloaded until some are taken")
    func queue() {
        let queue = WorkQueue(sizeMax: 3, batchSizeMax: 2)
        var users = 0
        func refusal() -> RoostError.Code? {
            users += 1
            do throws(RoostError) {
                try queue.append(Job(caller: Caller(user: UserID("\(users)")), run: { _ in [] }, destination: .waiting { _ in }))
                return nil
            } catch {
                return error.code
            }
        }
        var codes = (0..<4).map { _ in refusal() }
        #expect(codes == [nil, nil, nil, .overloaded])
        #expect(queue.next()?.count == 2)
        codes = (0..<3).map { _ in refusal() }
        #expect(codes == [nil, nil, .overloaded])
    }

    @Test("a connection counts for its address until it authenticates, and for the user after that")
    func connections() throws {
        var limits = ConnectionCounts.Configuration()
        (limits.totalMax, limits.unauthenticatedPerAddressMax, limits.perUserMax) = (5, 2, 2)
        var counts = ConnectionCounts(limits: limits)
        let (home, office) = (ClientAddress("192.0.2.1"), ClientAddress("192.0.2.2"))
        var verdicts = (0..<3).map { _ in counts.accept(from: home) }
        #expect(verdicts == [.accepted, .accepted, .reserve(.address)])
        var isTaken: [Bool] = []
        for isLimited in [true, true, true, false] {
            isTaken.append(counts.authenticate("ann", from: home, isLimited: isLimited))
            if isTaken.count < 3 { verdicts.append(counts.accept(from: home)) }
        }
        #expect(isTaken == [true, true, false, true])
        #expect(verdicts.suffix(2) == [.accepted, .accepted])
        verdicts = [counts.accept(from: office), counts.accept(from: office)]
        #expect(verdicts == [.accepted, .reserve(.total)])
        counts.end(from: office, user: nil)
        for _ in 0..<3 { counts.end(from: home, user: "ann") }
        counts.end(from: home, user: nil)
        #expect(counts.total == 0)
        verdicts = (0..<3).map { _ in counts.accept(from: home) }
        #expect(verdicts == [.accepted, .accepted, .reserve(.address)])
    }

    @Test("X-Forwarded-For is read from the right, past the trusted proxies, and only from them")
    func forwarded() throws {
        let proxies = try TrustedProxies(["10.0.0.0/8", "::1", "192.0.2.64/26"])
        let cases: [([String], String?)] = [
            (["203.0.113.7"], "203.0.113.7"), (["203.0.113.7, 10.1.2.3"], "203.0.113.7"),
            (["198.51.100.1, 203.0.113.7", "10.1.2.3"], "203.0.113.7"), (["203.0.113.7, nonsense, 10.1.2.3"], nil),
            (["10.1.2.3"], nil), ([], nil), (["203.0.113.7,192.0.2.127"], "203.0.113.7"),
            (["203.0.113.7,192.0.2.63"], "192.0.2.63"),
            ([" 2001:db8:1:2:3::4\t"], "2001:db8:1:2::"), (["::ffff:203.0.113.7"], "203.0.113.7"),
        ]
        for (values, expected) in cases {
            #expect(proxies.client(forwardedFor: values) == expected.flatMap { ClientAddress($0) }, "\(values)")
        }
        #expect(proxies.holds(try SocketAddress(ipAddress: "10.200.0.1", port: 1)))
        #expect(!proxies.holds(try SocketAddress(ipAddress: "11.0.0.1", port: 1)))
        #expect(ClientAddress("2001:db8:1:2:3::4") == ClientAddress("2001:db8:1:2:ffff::1"))
        for bad in ["10.0.0.0/33", "10.0.0.0/", "", "host", "::1/129", "10.0.0.0/-1"] {
            #expect(throws: TrustedProxies.Malformed.self) { try TrustedProxies([bad]) }
        }
    }

    @Test("an answer in progress when the server stops says that it is the last, and then the connection ends")
    func connectionStates() {
        var idle = ConnectionState()
        idle.requestBegan()
        var answers = [idle.answerEnded(), idle.drain()]
        #expect(answers == [false, true])
        // The first request of a new connection may be on its way.
        var new = ConnectionState()
        answers = [new.drain()]
        new.requestBegan()
        answers += [new.answerBegan(), new.answerEnded()]
        #expect(answers == [false, true, true])
        var busy = ConnectionState()
        busy.requestBegan()
        answers = [busy.drain(), busy.answerBegan(), busy.answerEnded(), busy.isOver]
        #expect(answers == [false, true, true, true])
        // The server stops in the middle of an answer, too late to say so: the connection still ends after it.
        var late = ConnectionState()
        late.requestBegan()
        answers = [late.answerBegan(), late.drain(), late.answerEnded()]
        #expect(answers == [false, false, true])
        // Pipelined requests are all carried out: only the last answer says that nothing follows it.
        var pipelined = ConnectionState()
        pipelined.requestBegan()
        pipelined.requestBegan()
        answers = [pipelined.drain(), pipelined.answerBegan(), pipelined.answerEnded()]
        answers += [pipelined.answerBegan(), pipelined.answerEnded()]
        #expect(answers == [false, false, false, true, true])
        var only = ConnectionState(isEnding: true)
        only.requestBegan()
        answers = [only.answerBegan(), only.answerEnded()]
        #expect(answers == [true, true])
    }

    @Test("I18 queued signals have 16 KiB together; at a byte more, the oldest is dropped")
    func signals() {
        func signal(_ kind: String, sizeBytes: Int) -> SignalFrame {
            func frame(_ count: Int) -> SignalFrame {
                let content = JSONValue.string(String(repeating: "x", count: count))
                return SignalFrame(
                    Signal(
                        kind: .init(rawValue: kind), channel: "general", sender: "bob",
                        custom: .init(type: "test", metadata: content)))
            }
            // From 126 bytes on, all of these have heads of the same length.
            return frame(1000 + sizeBytes - frame(1000).bytes.readableBytes)
        }
        let half = SignalQueue.sizeBytesMax / 2
        for (size, kept) in [(half, ["old", "new"]), (half + 1, ["new"])] {
            var queue = SignalQueue()
            let frames = [signal("old", sizeBytes: half), signal("new", sizeBytes: size)]
            #expect(frames.map(\.bytes.readableBytes) == [half, size])
            for frame in frames { queue.put(frame) }
            #expect(queue.takeAll() == frames.filter { kept.contains($0.key.kind.rawValue) }.map(\.bytes))
        }
    }

    @Test("events before a welcome are all sent, or beyond 1 MiB none of them")
    func heldEvents() {
        var held = HeldEvents()
        let event = ByteBuffer(repeating: 120, count: HeldEvents.sizeBytesMax / 2)
        held.append(event)
        held.append(event)
        var released = held.release()
        #expect(released.count == 2)
        for event in [event, event, ByteBuffer(bytes: [120])] { held.append(event) }
        released = held.release()
        #expect(released.isEmpty)
    }
}
