import Dispatch
import Logging
import NIOCore
import NIOPosix
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Synchronization
import Testing

@testable import RoostServer

/// Brief reads, which an event loop runs itself (decision 0101).
@Suite("Reads at once")
struct ReadsAtOnceTests {
    private static func job(_ answered: @escaping @Sendable ([UInt8]) -> Void) -> Job {
        Job(
            caller: .server,
            run: { context in Array("\(try context.transaction.first("SELECT 7") { $0.int64() } ?? 0)".utf8) },
            destination: .waiting { answered((try? $0.get()) ?? []) })
    }

    /// An engine on the tests' database, and its answers.
    private struct World {
        let engine: Engine
        let group: MultiThreadedEventLoopGroup
        let answers = Answers()

        final class Answers: Sendable {
            private let all = Mutex<[String]>([])
            var list: [String] { all.withLock { $0 } }
            func add(_ bytes: [UInt8]) { all.withLock { $0.append(String(decoding: bytes, as: UTF8.self)) } }
        }

        init(_ database: any Database) async throws {
            group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            let configuration = RoostServer.Configuration(dataDirectory: TemporaryDirectory.make())
            engine = try Engine(
                database: database, hub: try await Hub(group: group), configuration: Engine.Configuration(configuration),
                logger: Logger(label: "test"))
        }

        func end() async throws {
            engine.stop()
            try await group.shutdownGracefully()
        }
    }

    @Test(
        "a brief read is answered on the thread that submits it, unless others are queued for the reading threads",
        .enabled(if: TestDatabase.Engine.chosen == .sqlite))
    func onTheLoop() async throws {
        let files = try TestDatabase()
        let database = try #require(try files.open() as? SQLiteDatabase)
        let world = try await World(database)
        let answers = world.answers
        func submit() throws -> ReadDispatch { try world.engine.submit(read: Self.job { answers.add($0) }, atOnce: true) }
        let first = try submit()
        #expect(first == (database.canReadWithoutBlocking ? .ranInline : .queued))
        if first == .ranInline { #expect(answers.list == ["7"]) }
        try await eventually("the first answer") { answers.list.count == 1 }

        // Both threads are held up, and another read is queued.
        let isFree = DispatchSemaphore(value: 0)
        let held = Atomic<Int>(0)
        for _ in 0..<2 {
            let hold: @Sendable (inout Context) throws -> [UInt8] = { _ in
                held.add(1, ordering: .relaxed)
                isFree.wait()
                return []
            }
            let before = held.load(ordering: .relaxed)
            let dispatch = try world.engine.submit(read: Job(caller: .server, run: hold, destination: .waiting { _ in }))
            #expect(dispatch == .queued)
            try await eventually("a thread that is held up") { held.load(ordering: .relaxed) > before }
        }
        let withoutConnection = try submit()
        #expect(withoutConnection == .queued, "no connection is free")
        let behindOthers = try submit()
        #expect(behindOthers == .queued, "somebody waits")
        #expect(answers.list == ["7"])
        for _ in 0..<2 { isFree.signal() }
        try await eventually("what waited") { answers.list.count == 3 }
        try await world.end()
    }

    @Test("a read that would have to wait starts over on a thread, and leaves nothing behind")
    func anew() async throws {
        let files = try TestDatabase()
        let world = try await World(Waiting(own: try files.open()))
        let answers = world.answers
        let dispatch = try world.engine.submit(read: Self.job { answers.add($0) }, atOnce: true)
        #expect(dispatch == .gaveUp)
        try await eventually("the answer") { answers.list == ["7"] }
        try await world.end()
    }

    /// A database whose reads learn only at their end that they would have had to wait.
    private struct Waiting: RoostDatabase.Database {
        let own: any RoostDatabase.Database

        var laneCount: Int { own.laneCount }
        var readerCount: Int { own.readerCount }
        func write<T>(lane: Int, _ body: (any WriteTransaction) throws -> T) throws -> T { try own.write(lane: lane, body) }
        func read<T>(_ body: (any Transaction) throws -> T) throws -> T { try own.read(body) }
        func readWithoutBlocking<T>(_ body: (any Transaction) throws -> T) throws -> T? {
            _ = try own.read(body)
            return nil
        }
    }

    // MARK: On sockets

    /// A database whose brief reads take a while and never wait. It records those that an event loop runs.
    private final class Noting: RoostDatabase.Database {
        struct Span: Sendable {
            let start: NIODeadline
            let end: NIODeadline
        }

        private let own: any RoostDatabase.Database
        private let time: TimeAmount
        private let noted = Mutex<[Span]>([])

        init(_ own: any RoostDatabase.Database, lasting time: TimeAmount) { (self.own, self.time) = (own, time) }

        /// The reads on the loop so far.
        var spans: [Span] { noted.withLock { $0 } }

        var laneCount: Int { own.laneCount }
        var readerCount: Int { own.readerCount }
        func write<T>(lane: Int, _ body: (any WriteTransaction) throws -> T) throws -> T { try own.write(lane: lane, body) }
        func read<T>(_ body: (any Transaction) throws -> T) throws -> T { try own.read(body) }
        func readWithoutBlocking<T>(_ body: (any Transaction) throws -> T) throws -> T? {
            let start = NIODeadline.now()
            let result = try own.read(body)
            while NIODeadline.now() - start < time {}
            noted.withLock { $0.append(Span(start: start, end: .now())) }
            return result
        }
    }

    /// If a turn never ended, a loop would read no more once three of these reads had used up its first.
    @Test("a loop runs a socket's only call itself, again in each of its turns")
    func eachTurn() async throws {
        let files = try TestDatabase()
        let database = Noting(try files.open(), lasting: .microseconds(100))
        let sockets = try await SocketLoop(database)
        let ann = try await sockets.socket("ann")
        // On a busy machine several of them may take long, and the loop then runs none for a while.
        try await eventually("many reads on the loop") {
            try await ann.call(GetMe())
            return database.spans.count >= 12
        }
        try await sockets.end(closing: ann)
    }

    @Test("calls of a socket that arrive together are all left to the reading threads, which run two at a time")
    func together() async throws {
        let files = try TestDatabase()
        let database = Noting(try files.open(), lasting: .zero)
        let sockets = try await SocketLoop(database)
        let ann = try await sockets.socket("ann")
        let refusals = try await ann.refusals(of: Array(repeating: GetMe(), count: 8))
        #expect(refusals.count == 8 && refusals.allSatisfy { $0 == nil })
        #expect(database.spans.isEmpty)
        // One that arrives alone isn't.
        try await eventually("a read on the loop") {
            try await ann.call(GetMe())
            return !database.spans.isEmpty
        }
        try await sockets.end(closing: ann)
    }

    @Test(
        "long reads take up a twentieth of a loop's time, and five milliseconds at a time beyond that; meanwhile the threads answer"
    )
    func pause() async throws {
        let files = try TestDatabase()
        let database = Noting(try files.open(), lasting: .milliseconds(10))
        let sockets = try await SocketLoop(database)
        let ann = try await sockets.socket("ann")
        var callCount = 0
        try await eventually("three reads on the loop") {
            try await ann.call(GetMe())
            callCount += 1
            return database.spans.count >= 3
        }
        let spans = database.spans
        for (count, next) in spans.enumerated().dropFirst() {
            let taken = spans.prefix(count).reduce(TimeAmount.zero) { $0 + ($1.end - $1.start) }
            let time = next.start - spans[0].end
            #expect((taken - LoopReads.overrunMax) * LoopReads.part <= time, "\(count) of \(callCount) calls")
        }
        try await sockets.end(closing: ann)
    }

    @Test("brief reads are single rows and pages of history without a filter")
    func brief() {
        #expect(GetMe().isBrief && GetUser(user: "ann").isBrief && GetChannel(channel: "general").isBrief)
        #expect(GetUnread(channel: "general").isBrief && GetMessage(channel: "general", message: MessageID(rawValue: 1)).isBrief)
        #expect(ListMessages(channel: "general", before: 9, limit: 100).isBrief)
        #expect(!ListMessages(channel: "general", kinds: [.text]).isBrief)
        #expect(!ListMessages(channel: "general", customType: "a").isBrief)
        #expect(!ListMessages(channel: "general", senders: ["ann"]).isBrief)
        #expect(!QueryChannels().isBrief && !GetTotalUnread().isBrief && !GetMyChanges(after: 0).isBrief)
    }
}
