import Foundation
import NIOCore
import Roost
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport

@testable import RoostServer

/// The server without threads and sockets: the real rules on a real database, the real reading and writing of frames. What
/// stands between them, engine, hub and socket handler, is written anew on the scheduler's clock.
final class SimulatedServer {
    /// What the next commit meets.
    enum Fate: Equatable {
        /// The process ends before the commit: nothing is stored, nobody is answered.
        case crashBeforeCommit
        /// It ends between commit and delivery: everything is stored, nobody is told.
        case crashAfterCommit
        /// It ends right after delivery: some have been told, some haven't.
        case crashAfterDelivery
        /// The disk is full: the whole batch is refused, to be tried again.
        case diskFull
    }

    /// What a process holds in memory, and loses with its end.
    private final class Run {
        let hub = SimulatedHub()
        var waiting: [Work] = []
        var isWriting = false
    }

    /// One operation on its way, as the engine's jobs are.
    private struct Work {
        enum Destination {
            case call(ConnectionID, Int64)
            case connect(ServerSocket, Caller)
        }
        let caller: Caller
        let run: (inout Context) throws -> [UInt8]
        let destination: Destination
    }

    private struct Outcome {
        let result: Result<[UInt8], RoostError>
        let notices: [Notice]

        var events: [Event] { notices.compactMap { if case .event(let event, _) = $0 { event } else { nil } } }

        var summary: String {
            switch result {
            case .success:
                events.isEmpty ? "nothing" : events.map { "\($0.kind.rawValue)@\($0.stream):\($0.seq)" }.joined(separator: ",")
            case .failure(let refusal): refusal.code.rawValue
            }
        }
    }

    private struct Crash: Error {}

    private let scheduler: Scheduler
    private let directory = TemporaryPlace.make()
    private let database: SQLiteDatabase
    private var ids = IDGenerator()
    private var run: Run? = Run()
    /// What the clock of the server's machine is ahead by. It steps.
    var clockSkew: Int64 = 0
    var fate: Fate?
    /// Told of every event in the order of the commits, whether anybody gets it or not.
    var committed: ([Event]) -> Void = { _ in }
    /// Told of operations that failed though nothing was wrong with them.
    var failed: (String) -> Void = { _ in }
    /// Told of every event that is written to a connection of a user.
    var delivered: (StreamID, Seq, UserID) -> Void = { _, _, _ in }

    init(scheduler: Scheduler) throws {
        self.scheduler = scheduler
        database = try SQLiteDatabase(directory: directory)
    }

    deinit { try? FileManager.default.removeItem(at: directory) }

    var isUp: Bool { run != nil }
    var isQuiet: Bool { run.map { $0.waiting.isEmpty && !$0.isWriting } ?? false }
    private var now: Timestamp { Timestamp(milliseconds: 1_772_368_205_250 + scheduler.now + clockSkew) }

    // MARK: The process

    /// The process ends. Of each connection, what is on its way may still arrive, or is lost.
    func crash() {
        guard let ended = run else { return }
        scheduler.note("the server crashes")
        run = nil
        fate = nil
        for socket in ended.hub.inOrder {
            socket.connection.server = nil
            if scheduler.random.once(in: 2) { socket.connection.cut() } else { socket.connection.closeByServer(code: nil) }
        }
    }

    func start() throws {
        guard run == nil else { return }
        scheduler.note("the server starts")
        ids = try database.read { try IDGenerator(continuing: $0) }
        run = Run()
    }

    // MARK: Connections

    func accept(_ connection: Connection) {
        guard let run else { return connection.cut() }
        let socket = ServerSocket(connection)
        run.hub.add(socket)
        connection.server = { [weak self, weak run] message in
            guard let self, let run, run === self.run else { return }
            try self.receive(message, from: socket, in: run)
        }
        connection.sendToClient(.opened)
        ping(socket)
    }

    /// Closes the connections of a user for a reason that the server has.
    func close(_ code: CloseCode, connectionsOf user: UserID) {
        guard let run else { return }
        for socket in run.hub.inOrder {
            guard case .open(let caller) = socket.state, caller.user == user else { continue }
            if code == .restart { socket.write(ClosingFrame(closing: .init(reason: "restart", retryAfterMilliseconds: 1500))) }
            socket.transmit(delivered)
            remove(socket, from: run)
            socket.connection.closeByServer(code: code.rawValue)
        }
    }

    private func ping(_ socket: ServerSocket) {
        scheduler.idle(25_000) { [weak self] in
            guard let self, self.run?.hub.holds(socket) == true else { return }
            socket.connection.sendToClient(.heard)
            self.ping(socket)
        }
    }

    private func remove(_ socket: ServerSocket, from run: Run) {
        socket.state = .closed
        run.hub.remove(socket.id)
    }

    private func receive(_ message: Connection.AtServer, from socket: ServerSocket, in run: Run) throws {
        switch message {
        case .closed: remove(socket, from: run)
        case .ping: socket.connection.sendToClient(.heard)
        case .message(let bytes):
            // What comes after the server has closed concerns nobody.
            if case .closed = socket.state { return }
            switch (IncomingFrame(ByteBuffer(bytes: bytes)), socket.state) {
            case (.authenticate(let credentials), .unauthenticated): authenticate(socket, as: UserID(credentials.token), in: run)
            case (.call(let call, let operation), .open(let caller)): submit(operation, call: call, caller: caller, socket, in: run)
            case (.refused(let call, let error), .open):
                socket.write(bytes: ReplyFrame.refusal(error, call: call))
                socket.transmit(delivered)
            default: throw Missed("a frame that the server takes, not \(String(decoding: bytes, as: UTF8.self))")
            }
        }
    }

    private func authenticate(_ socket: ServerSocket, as user: UserID, in run: Run) {
        socket.state = .authenticating
        let caller = Caller(user: user, connection: socket.id)
        let welcome = WelcomeFrame(
            welcome: .init(
                user: user, role: .user, connection: socket.id.rawValue, epoch: "first", version: "simulated", now: now,
                tokenExpiresAt: now, pingIntervalSeconds: 25))
        let work = Work(
            caller: caller,
            run: { context in
                try context.admitCaller(displayName: nil)
                try context.connect(socket.id)
                return try JSONWriter.bytes(of: welcome)
            }, destination: .connect(socket, caller))
        run.waiting.append(work)
        writeNext(in: run)
    }

    private func submit(_ operation: some Handled, call: Int64, caller: Caller, _ socket: ServerSocket, in run: Run) {
        scheduler.note("\(caller.user) on \(socket.id.rawValue) calls \(type(of: operation).name)")
        let work = Work(
            caller: caller, run: { try ReplyFrame.result(operation.handle(in: &$0), call: call) },
            destination: .call(socket.id, call))
        guard type(of: operation).isReadOnly else {
            run.waiting.append(work)
            return writeNext(in: run)
        }
        read(work, in: run)
    }

    // MARK: Reading

    /// A read sees one moment, and is answered at another: events may overtake it, and it may overtake events.
    private func read(_ work: Work, in run: Run) {
        scheduler.after(scheduler.random.number(0...10)) { [weak self, weak run] in
            guard let self, let run, run === self.run else { return }
            var ids = IDGenerator()
            let outcome = try database.read { transaction in
                try self.outcome(of: work, in: run, ids: &ids) { rule in try rule(transaction) }
            }
            scheduler.after(scheduler.random.number(0...10)) { [weak self, weak run] in
                guard let self, let run, run === self.run else { return }
                publish([(work, outcome)], in: run)
            }
        }
    }

    // MARK: Writing

    /// One batch at a time, with everything that waits when it begins. It is delivered before the next one begins.
    private func writeNext(in run: Run) {
        guard !run.isWriting, !run.waiting.isEmpty else { return }
        run.isWriting = true
        let delay = scheduler.random.once(in: 30) ? 500 : scheduler.random.number(0...15)
        scheduler.after(delay) { [weak self, weak run] in
            guard let self, let run, run === self.run else { return }
            try self.write(in: run)
        }
    }

    private func write(in run: Run) throws {
        let batch = run.waiting
        run.waiting = []
        let fate = fate
        self.fate = nil
        let outcomes: [Outcome]
        do {
            outcomes = try database.write(lane: 0) { transaction in
                let outcomes = try batch.map { work in
                    try outcome(of: work, in: run, ids: &ids) { rule in try transaction.attempt { try rule(transaction) } }
                }
                try ids.save(in: transaction)
                if fate == .crashBeforeCommit { throw Crash() }
                if fate == .diskFull { throw DatabaseFailure(message: "The disk is full.", kind: .transaction) }
                return outcomes
            }
        } catch is Crash {
            scheduler.note("a batch of \(batch.count) is lost before its commit")
            return crash()
        } catch let failure as DatabaseFailure where failure.kind == .transaction {
            scheduler.note("a batch of \(batch.count) is refused")
            let refusal = RoostError(.unavailable, "The server could not store this. Try again.", retryAfterMilliseconds: 1000)
            outcomes = batch.map { _ in Outcome(result: .failure(refusal), notices: []) }
        }
        scheduler.note("a batch of \(batch.count) ends: \(outcomes.map(\.summary).joined(separator: " "))")
        committed(outcomes.flatMap(\.events))
        if fate == .crashAfterCommit { return crash() }
        scheduler.after(scheduler.random.number(0...10)) { [weak self, weak run] in
            guard let self, let run, run === self.run else { return }
            publish(Array(zip(batch, outcomes)), in: run)
            if fate == .crashAfterDelivery { return crash() }
            run.isWriting = false
            writeNext(in: run)
        }
    }

    private func outcome(
        of work: Work, in run: Run, ids: inout IDGenerator,
        _ attempt: (_ rule: (any Transaction) throws -> [UInt8]) throws -> [UInt8]
    ) throws -> Outcome {
        var notices: [Notice] = []
        do {
            let payload = try attempt { transaction in
                var context = Context(transaction: transaction, caller: work.caller, now: now, ids: ids, presence: run.hub.presence)
                defer { ids = context.ids }
                let payload = try work.run(&context)
                notices = context.notices
                return payload
            }
            return Outcome(result: .success(payload), notices: notices)
        } catch let refusal as RoostError {
            return Outcome(result: .failure(refusal), notices: [])
        } catch let failure as DatabaseFailure where failure.kind != .statement {
            throw failure
        } catch {
            failed("\(error)")
            return Outcome(result: .failure(.internalFailure), notices: [])
        }
    }

    // MARK: Delivery

    /// The hub's order: what each operation tells, then its reply, operation by operation.
    private func publish(_ answered: [(Work, Outcome)], in run: Run) {
        run.hub.deliver(
            answered.map { work, outcome in
                // A connection's welcome is written below.
                guard case .call(let connection, let call) = work.destination else {
                    return Committed(notices: outcome.notices, answer: .waiting {})
                }
                let address = SocketAddress(shard: 0, connection: connection)
                return switch outcome.result {
                case .success(let payload): Committed(notices: outcome.notices, answer: .socket(address, payload))
                case .failure(let refusal):
                    Committed(notices: outcome.notices, answer: .socket(address, ReplyFrame.refusal(refusal, call: call)))
                }
            })
        for case (let work, let outcome) in answered {
            guard case .connect(let socket, let caller) = work.destination, run.hub.holds(socket) else { continue }
            welcome(socket, caller, outcome.result, in: run)
        }
        for socket in run.hub.inOrder { socket.transmit(delivered) }
    }

    private func welcome(_ socket: ServerSocket, _ caller: Caller, _ result: Result<[UInt8], RoostError>, in run: Run) {
        switch result {
        case .success(let payload):
            socket.welcome(payload, caller)
        case .failure(let refusal):
            socket.write(["error": refusal])
            socket.transmit(delivered)
            remove(socket, from: run)
            socket.connection.closeByServer(code: CloseCode.tryAgainLater.rawValue)
        }
    }

    // MARK: Looking

    /// Performs an operation that only reads, past network and connections.
    func ask<O: Handled>(_ operation: O, as user: UserID, role: AppRole = .user) throws -> O.Response {
        try database.read { transaction in
            var context = Context(transaction: transaction, caller: Caller(user: user, role: role), now: now, ids: IDGenerator())
            return try operation.handle(in: &context)
        }
    }

    /// The seq of every channel's newest change, as the database has it.
    func heads() throws -> [ChannelID: Seq] {
        let rows = try database.read { transaction in
            try transaction.rows("SELECT channel_id, seq FROM channel_heads") { (ChannelID($0.string()), $0.int64()) }
        }
        return Dictionary(uniqueKeysWithValues: rows)
    }

    /// All messages that are on disk.
    func messages() throws -> [Message] {
        try heads().keys.sorted().flatMap { channel -> [Message] in
            var messages: [Message] = []
            var after: Seq = 0
            while true {
                let page = try ask(ListMessages(channel: channel, after: after, limit: 100), as: "root", role: .admin)
                messages += page.messages
                guard page.hasNewer, let last = page.messages.last else { return messages }
                after = last.seq
            }
        }
    }

    private struct Missed: Error { let what: String; init(_ what: String) { self.what = what } }
}
