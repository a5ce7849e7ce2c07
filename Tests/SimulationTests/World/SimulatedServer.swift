import Foundation
import NIOCore
import Roost
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Synchronization

@testable import RoostServer

/// The server without threads and sockets: the engine's own `Lane` with the real rules on a real database, the hub's own `Subscriptions`, and
/// the gateway's own `SocketSession` for each connection. It does what they say, on the scheduler's clock and network.
final class SimulatedServer {
    /// The fault at the next commit.
    enum Fate: Equatable {
        /// The process ends before the commit: nothing is stored or answered.
        case crashBeforeCommit
        /// It ends between commit and delivery: everything is stored, nothing is delivered.
        case crashAfterCommit
        /// It ends right after delivery: some clients have the events, some don't.
        case crashAfterDelivery
        /// The disk is full: the whole batch is refused, to be tried again.
        case diskFull
    }

    /// What the engine reports, from any thread, until the next delivery.
    private final class Reports<Value: Sendable>: Sendable {
        private let values = Mutex<[Value]>([])

        func add(_ value: Value) { values.withLock { $0.append(value) } }

        func takeAll() -> [Value] {
            values.withLock { values in
                defer { values = [] }
                return values
            }
        }
    }

    /// A process's state in memory, which is lost when it ends.
    private final class Run {
        var lane = Lane(number: 0, patience: .seconds(10), deferredJobsMax: 10_000)
        let settings: BatchSettings
        var subscriptions = Subscriptions<SessionDriver>()
        let interest = StreamInterest()
        let presence = PresenceBoard()
        /// Connections whose welcome was refused.
        let refused = Reports<(connection: ConnectionID, error: RoostError)>()
        /// Read positions that weren't stored.
        let unstored = Reports<(connection: ConnectionID, channel: ChannelID, seq: Seq, session: Int64?, refusal: RoostError)>()
        var waiting: [Job] = []
        var isWriting = false
        /// Connections whose callers are shut out, to be closed once the turn's output is written.
        private var ending: [SessionDriver] = []
        /// Connections that got something in this turn.
        private var written: [(socket: SessionDriver, isReply: Bool)] = []
        private var output = OutputQueue<SessionDriver>()
        private let scheduler: Scheduler
        /// Called for connections whose output has waited for more.
        var waited: (Int) -> Void = { _ in }

        init(_ database: SimulatedDatabase, _ scheduler: Scheduler) throws {
            settings = BatchSettings(access: try AccessGate(database), presence: presence)
            self.scheduler = scheduler
            subscriptions.interest = interest
        }

        /// In the order in which they were opened: a seed doesn't repeat a dictionary's order.
        var sockets: [SessionDriver] { subscriptions.sockets.values.sorted { $0.id.rawValue < $1.id.rawValue } }

        func holds(_ socket: SessionDriver) -> Bool { subscriptions.sockets[socket.id] != nil }

        func perform(_ action: Subscriptions<SessionDriver>.Action) {
            switch action {
            case .send(let bytes, _, let socket):
                socket.send(event: bytes)
                written.append((socket, false))
            case .signal(let signal, let socket):
                socket.send(signal: signal)
                written.append((socket, false))
            case .reply(let payload, let socket):
                socket.send(reply: payload)
                written.append((socket, true))
            case .connected(let user): presence.connected(user)
            case .disconnected(let user): presence.disconnected(user)
            case .appeared(let user): presence.appeared(user)
            case .disappeared(let user): presence.disappeared(user)
            case .cameOnline(let user, let channels): presence.cameOnline(user, in: channels)
            case .wentOffline(let user, let channels): presence.wentOffline(user, in: channels)
            case .startedWatching(let user, let channel, let isShown): presence.startedWatching(user, channel, isShown: isShown)
            case .stoppedWatching(let user, let channels, let isShown):
                presence.stoppedWatching(user, channels, isShown: isShown)
            case .answeredOnline(let count, let channel): presence.answeredOnline(count, in: channel)
            case .forgetReading(let channel, let socket): socket.forgetReading(of: channel)
            case .checkAccess(let changes, let socket): if socket.endIfRefused(by: changes) { ending.append(socket) }
            case .emptied, .turnAway: break
            }
        }

        func closeEnded() {
            let ended = ending.sorted { $0.id.rawValue < $1.id.rawValue }
            ending = []
            for socket in ended { socket.closeEnded() }
        }

        // MARK: The end of a turn

        /// The queue's clock is this much slower than the scheduler's: batches are seldom within a millisecond of one another here.
        private static let queueSlowness: Int64 = 250

        private var queueTime: NIODeadline { .uptimeNanoseconds(UInt64(scheduler.now * 1_000_000 / Self.queueSlowness)) }

        /// Flushes a turn's output, or has it wait for more, as the queue says. In the order of the connections' numbers: the hub iterates
        /// over sets, whose order a seed doesn't repeat.
        func endTurn() {
            let turn = written.sorted { $0.socket.id.rawValue < $1.socket.id.rawValue }
            written = []
            for (socket, isReply) in turn {
                let action = output.add(socket, isReply: isReply, mayWait: !socket.mustFlush, at: queueTime)
                guard case .at(let time)? = action else { continue }
                let delay = (time - queueTime).nanoseconds * Self.queueSlowness / 1_000_000
                scheduler.after(Int(delay)) { [weak self] in
                    guard let self else { return }
                    let waiting = output.takeWaiting()
                    waited(waiting.count)
                    flush(waiting)
                }
            }
            flush(output.takeDue())
        }

        private func flush(_ sockets: [SessionDriver]) {
            for socket in sockets.sorted(by: { $0.id.rawValue < $1.id.rawValue }) { socket.flush() }
            output.flushed(sockets, at: queueTime)
        }
    }

    private let scheduler: Scheduler
    private let directory = TemporaryPlace.make()
    private let database: SimulatedDatabase
    private var run: Run?
    /// How often a connection's output has waited to share a write.
    private(set) var waitedCount = 0
    /// How far the clock of the server's machine is ahead. It is set in steps.
    var clockSkew: Int64 = 0
    var fate: Fate?
    /// Called with the changes of every operation, in the order of the commits, whether any client gets them or not.
    var committed: (Caller, [Notice]) -> Void = { _, _ in }
    /// Called for operations that failed though nothing was wrong with them.
    var failed: (String) -> Void = { _ in }
    /// Called for every event that is written to a connection.
    var delivered: (StreamID, Seq, Caller) -> Void = { _, _, _ in }

    init(scheduler: Scheduler) throws {
        self.scheduler = scheduler
        database = try SimulatedDatabase(directory: directory)
        try database.write(lane: 0) { transaction in
            let put = PutChannelType(type: Self.channelType, basedOn: .community, policy: PolicyChanges(deliveryEvents: true))
            let root = Caller(user: "root", role: .admin)
            var context = Context(
                transaction: transaction, caller: root, now: Self.start, ids: IDGenerator(), scope: put.scope(for: root))
            _ = try put.handle(in: &context)
        }
        run = try makeRun()
    }

    deinit { try? FileManager.default.removeItem(at: directory) }

    private func makeRun() throws -> Run {
        let run = try Run(database, scheduler)
        run.waited = { [weak self] in self?.waitedCount += $0 }
        return run
    }

    var isUp: Bool { run != nil }
    var isQuiet: Bool { run.map { $0.waiting.isEmpty && !$0.isWriting } ?? false }
    private var now: Timestamp { Timestamp(milliseconds: Self.start.milliseconds + scheduler.now + clockSkew) }
    private static let start = Timestamp(milliseconds: 1_772_368_205_250)

    /// The type of all channels: a community whose members see each other's deliveries.
    static let channelType: ChannelType = "gallery"

    // MARK: The process

    /// The process ends. Bytes in flight on each connection may still arrive, or are lost.
    func crash() {
        guard let ended = run else { return }
        scheduler.note("the server crashes")
        run = nil
        fate = nil
        for socket in ended.sockets {
            socket.connection.server = nil
            if scheduler.random.once(in: 2) { socket.connection.cut() } else { socket.connection.closeByServer(code: nil) }
        }
    }

    func start() throws {
        guard run == nil else { return }
        scheduler.note("the server starts")
        run = try makeRun()
    }

    // MARK: Connections

    func accept(_ connection: Connection) {
        guard let run else { return connection.cut() }
        let socket = SessionDriver(connection, scheduler: scheduler)
        socket.delivered = { [weak self] in self?.delivered($0, $1, $2) }
        socket.ask = { [weak self, weak run] socket, action in
            guard let self, let run, run === self.run else { return }
            perform(action, for: socket, in: run)
        }
        run.subscriptions.add(socket, as: socket.id)
        connection.server = { [weak self, weak run] message in
            guard let self, let run, run === self.run else { return }
            switch message {
            case .closed: remove(socket, from: run)
            case .message(let bytes): socket.receive(opcode: 1, bytes)
            case .ping: socket.receive(opcode: 9)
            case .pong(let payload): socket.receive(opcode: 10, payload)
            }
        }
        connection.sendToClient(.opened)
        tick(socket, in: run)
    }

    /// Closes a user's connections for a reason of the server's.
    func close(_ code: CloseCode, connectionsOf user: UserID) {
        for socket in run?.sockets ?? [] where socket.isOpen && socket.caller?.user == user { socket.close(code, now) }
    }

    private func tick(_ socket: SessionDriver, in run: Run) {
        scheduler.idle(5000) { [weak self, weak run] in
            guard let self, let run, run === self.run, run.holds(socket) else { return }
            socket.tick(now)
            for (socket, readable) in run.subscriptions.takeReadable(0) { socket.confirm(readable) }
            tick(socket, in: run)
        }
    }

    private func remove(_ socket: SessionDriver, from run: Run) {
        run.subscriptions.remove(socket.id) { run.perform($0) }
        socket.end()
    }

    /// Does what a session asks for. A token is its user's name, and is valid for long.
    private func perform(_ action: SocketSession.Action, for socket: SessionDriver, in run: Run) {
        switch action {
        case .verify(let token):
            let user = UserID(token)
            let expiresAt = Timestamp(milliseconds: now.milliseconds + 1000 * 86_400_000)
            socket.verified(
                VerifiedToken(
                    user: user, role: .user, displayName: nil, expiresAt: expiresAt, identity: TokenIdentity(user: user)))
        case .connect(let token):
            guard let caller = socket.caller else { return }
            let place = SocketID(shard: 0, connection: socket.id)
            let job = Job(connecting: caller, token, socket.register(), greeting: Self.greeting, at: place) {
                [id = socket.id, refused = run.refused] error in refused.add((id, error))
            }
            run.waiting.append(job)
            writeNext(in: run)
        case .call(let call):
            if let caller = socket.caller { submit(call.operation, call, by: caller, on: socket.id, in: run) }
        case .read(let seqs):
            guard let caller = socket.caller else { return }
            for (channel, seq) in seqs.sorted(by: { $0.key < $1.key }) {
                let session = run.subscriptions.readingSession(of: channel, socket.id)
                let mark = Job(marking: MarkRead(channel: channel, seq: seq), by: caller) {
                    [id = socket.id, unstored = run.unstored] refusal in
                    unstored.add((id, channel, seq, session, refusal))
                }
                run.waiting.append(mark)
            }
            writeNext(in: run)
        case .close: remove(socket, from: run)
        case .overloaded: failed("a session has no room")
        case .flush, .setReading, .hold, .refused, .restart, .lost: break
        }
    }

    private static let greeting = Greeting(
        server: "simulated", epoch: "first", version: "simulated", pingInterval: .seconds(25), drainWindow: .zero)

    private func submit(
        _ operation: some Handled, _ call: SocketSession.Call, by caller: Caller, on connection: ConnectionID, in run: Run
    ) {
        scheduler.note("\(caller.user) on \(connection.rawValue) calls \(type(of: operation).name)")
        let job = Job(operation, call: call.number, key: call.key, by: caller, at: .init(shard: 0, connection: connection))
        guard type(of: operation).isReadOnly else {
            run.waiting.append(job)
            return writeNext(in: run)
        }
        read(job, in: run)
    }

    // MARK: Reading

    /// A read sees one moment, and is answered at another: events may overtake it, and it them.
    private func read(_ job: Job, in run: Run) {
        scheduler.after(scheduler.random.number(0...10)) { [weak self, weak run] in
            guard let self, let run, run === self.run else { return }
            database.setClock(now)
            var answer: Committed?
            ReadBatch.run([job], in: database, run.settings) { action in
                if case .answered(let job, let outcome) = action { answer = Committed(outcome, of: job) } else { self.note(action) }
            }
            scheduler.after(scheduler.random.number(0...10)) { [weak self, weak run] in
                guard let self, let run, run === self.run, let answer else { return }
                deliver([answer], in: run)
            }
        }
    }

    // MARK: Writing

    /// One batch at a time, of everything queued when it begins. It is delivered before the next one begins.
    private func writeNext(in run: Run) {
        guard !run.isWriting, !run.waiting.isEmpty else { return }
        run.isWriting = true
        let delay = scheduler.random.once(in: 30) ? 500 : scheduler.random.number(0...15)
        scheduler.after(delay) { [weak self, weak run] in
            guard let self, let run, run === self.run else { return }
            write(in: run)
        }
    }

    private func write(in run: Run) {
        let batch = run.waiting
        run.waiting = []
        let fate = fate
        self.fate = nil
        switch fate {
        case .crashBeforeCommit: database.failNext(SimulatedDatabase.ProcessEnded())
        case .diskFull: database.failNext(DatabaseFailure(message: "The disk is full.", kind: .transaction))
        case .crashAfterCommit, .crashAfterDelivery, nil: break
        }
        database.setClock(now)
        var answered: [(job: Job, outcome: JobOutcome)] = []
        var isOver = false
        run.lane.run(batch, in: database, run.settings) { action in
            switch action {
            case .committed(let operations): answered += operations
            case .lost(_, is SimulatedDatabase.ProcessEnded, _): isOver = true
            case .lost(let jobs, _, let refusal): answered += jobs.map { ($0, JobOutcome(result: .failure(refusal))) }
            default: self.note(action)
            }
        }
        if isOver {
            scheduler.note("a batch of \(batch.count) is lost before its commit")
            return crash()
        }
        let outcomes = answered.map(\.outcome)
        scheduler.note("a batch of \(batch.count) ends: \(outcomes.map(\.summary).joined(separator: " "))")
        for (job, outcome) in answered { committed(job.caller, outcome.notices) }
        if fate == .crashAfterCommit { return crash() }
        scheduler.after(scheduler.random.number(0...10)) { [weak self, weak run] in
            guard let self, let run, run === self.run else { return }
            deliver(answered.map { Committed($0.outcome, of: $0.job) }, in: run)
            if fate == .crashAfterDelivery { return crash() }
            run.isWriting = false
            writeNext(in: run)
        }
    }

    /// Actions that can't happen here are reported as a failure of the server.
    private func note(_ action: BatchAction) {
        switch action {
        case .began, .maintain: break
        case .failed(_, let error), .end(let error), .lost(_, let error, _): failed("\(error)")
        case .refused(_, let refusal): failed("\(refusal)")
        case .accessChanged, .exceededMemory, .committed, .answered: failed("\(action)")
        }
    }

    // MARK: Delivery

    private func deliver(_ committed: [Committed], in run: Run) {
        for step in EventFrames.steps(for: committed) {
            let mayHaveReceivers = run.interest.mayConcern([step], shard: 0)
            run.subscriptions.deliver(step) { action in
                if !mayHaveReceivers { failed("A loop would have missed a step with receivers: \(step)") }
                run.perform(action)
            }
        }
        for operation in committed { if case .waiting(let resume) = operation.answer { resume() } }
        for (connection, error) in run.refused.takeAll() { run.subscriptions.sockets[connection]?.refuseConnection(error) }
        for (connection, channel, seq, session, refusal) in run.unstored.takeAll() {
            if refusal.isRetryable {
                run.subscriptions.noteReadable([channel: seq], of: connection)
            } else if run.subscriptions.readingSession(of: channel, connection) == session {
                run.subscriptions.stopReading(channel, connection)
            }
        }
        run.endTurn()
        run.closeEnded()
    }

    // MARK: Inspection

    /// Performs a read-only operation, past network and connections.
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
}

extension JobOutcome {
    fileprivate var events: [Event] { notices.compactMap { if case .event(let event, _) = $0 { event } else { nil } } }

    fileprivate var summary: String {
        switch result {
        case .success:
            events.isEmpty ? "nothing" : events.map { "\($0.kind.rawValue)@\($0.stream):\($0.seq)" }.joined(separator: ",")
        case .failure(let refusal): refusal.code.rawValue
        }
    }
}
