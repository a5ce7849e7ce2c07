import Dispatch
import Foundation
import Logging
import RoostAPI
import RoostCore
import RoostDatabase
import Synchronization

/// Runs every operation: those that write in lanes, in batches, each batch in one durable transaction; those that only read beside them.
///
/// A database says how many lanes it has: SQLite one, PostgreSQL several. A lane is a thread. Operations with a channel in common go to one lane,
/// so that a hot channel too is committed in batches. The way of a batch:
/// 1. What waits is taken off the lane's queue, at most ``Configuration/batchSizeMax`` operations.
/// 2. One transaction begins; it locks the streams that the operations may move, where there are other writers.
/// 3. Each operation runs in its place, and one that is refused leaves nothing behind.
/// 4. The transaction commits, which includes the fsync.
/// 5. Only then is delivered what each operation tells, in their order: its events, then its reply.
///
/// While a commit waits for the disk the queue fills, so that a batch is as large as the disk is slow. A queue that is full is a refusal
/// (`overloaded`), never a wait without end.
final class Engine: Sendable {
    struct Configuration: Sendable {
        /// Operations that may wait; one more is refused.
        var queueSizeMax = 20_000
        /// Operations in one transaction.
        var batchSizeMax = 512
        /// How long an operation waits for a lock that somebody else holds, before it is refused.
        var lockPatience = Duration.seconds(10)
    }

    let database: any Database
    private let hub: Hub
    private let delivery: any Delivery
    private let options: AppOptions
    /// What is held for all clients: while that is too much, what would add to it is refused.
    private let memory: ByteLedger?
    private let logger: Logger
    private let lanes: [WorkQueue]
    private let reads: WorkQueue
    private let access: AccessGate
    private let alarm: EffectAlarm?
    private let stopping = DispatchSemaphore(value: 0)
    private let threads = Threads()
    private let metrics: ServerMetrics
    private let security: SecurityLog
    private let losses = LogPace()
    /// Operations that wait for one of the same connection and channel, before which presence is brought together.
    private let waitingTurns = Mutex<[Job.Turn: [Job]]>([:])

    /// Starts the threads.
    ///
    /// - Parameters:
    ///   - delivery: what brings out what was committed: the hub itself where this server is alone.
    ///   - options: what every rule is told of the app.
    init(
        database: any Database, hub: Hub, delivery: (any Delivery)? = nil, options: AppOptions = .init(),
        configuration: Configuration = .init(), metrics: ServerMetrics = .init(), security: SecurityLog? = nil,
        memory: ByteLedger? = nil, alarm: EffectAlarm? = nil, logger: Logger
    ) throws {
        self.database = database
        access = try AccessGate(database)
        self.hub = hub
        self.delivery = delivery ?? hub
        self.options = options
        self.metrics = metrics
        self.security = security ?? SecurityLog(logger: logger)
        self.memory = memory
        self.alarm = alarm
        self.logger = logger
        lanes = (0..<max(1, database.laneCount)).map { _ in
            WorkQueue(sizeMax: configuration.queueSizeMax / max(1, database.laneCount), batchSizeMax: configuration.batchSizeMax)
        }
        reads = WorkQueue(sizeMax: configuration.queueSizeMax, batchSizeMax: 16)
        for (number, queue) in lanes.enumerated() {
            threads.start("roost-lane-\(number + 1)") { [self] in
                runLane(
                    number, queue, patience: configuration.lockPatience,
                    setAsideMax: configuration.queueSizeMax / max(1, database.laneCount))
            }
        }
        for number in 1...max(1, database.readerCount) {
            threads.start("roost-reader-\(number)") { [self] in
                while let batch = reads.next() { read(batch) }
            }
        }
        if database.laneCount > 1 || delivery != nil { threads.start("roost-access") { [self] in watchAccess() } }
    }

    /// Operations that wait: those that may write, over all lanes, and those that only read.
    var queueLengths: (writes: Int, reads: Int) { (lanes.reduce(0) { $0 + $1.length }, reads.length) }

    /// Where others write too, every transaction learns whom they have shut out. A server that has nothing to do looks for it.
    private func watchAccess() {
        while stopping.wait(timeout: .now() + Self.accessPause) == .timedOut {
            try? submit(read: Job(caller: .server, run: { _ in [] }, destination: .waiting { _ in }))
        }
    }

    /// How long a socket may outlive its right to be there on a server without operations.
    private static let accessPause = DispatchTimeInterval.milliseconds(300)

    /// Queues an operation that may write. Throws `overloaded` when the queue is full, `unavailable` when the engine stops.
    func submit(write job: Job) throws(RoostError) {
        let mustWait = waitingTurns.withLock { waiting in
            guard !waiting.isEmpty || job.presenceChannel != nil, let turn = job.turn else { return false }
            guard waiting[turn] == nil else {
                waiting[turn]?.append(job)
                return true
            }
            if job.presenceChannel != nil { waiting[turn] = [] }
            return false
        }
        guard !mustWait else { return }
        guard job.presenceChannel != nil else { return try append(job, to: lanes[job.lane(of: lanes.count)]) }
        prepareAndQueue(job)
    }

    /// Queues an operation that only reads. Throws as ``submit(write:)`` does.
    func submit(read job: Job) throws(RoostError) {
        guard let channel = job.presenceChannel else { return try append(job, to: reads) }
        prepare(names(of: channel)) { [self] in
            do throws(RoostError) {
                try append(job, to: reads)
            } catch {
                answer(job, .failure(error))
            }
        }
    }

    private func append(_ job: Job, to queue: WorkQueue) throws(RoostError) {
        do {
            try queue.append(job)
        } catch {
            metrics.refused(job.operation, error)
            if error.code == .overloaded {
                metrics.overloaded(.queue)
                security.reached(.queue, user: job.caller.user)
            }
            throw error
        }
    }

    /// Queues an operation that writes once presence is brought together, and then those of the same connection and channel that came
    /// meanwhile.
    private func prepareAndQueue(_ job: Job) {
        guard let channel = job.presenceChannel else { return queue(job) }
        prepare(names(of: channel)) { [self] in
            queue(job)
            guard let turn = job.turn else { return }
            while let next = nextWaiting(in: turn) {
                guard next.presenceChannel == nil else { return prepareAndQueue(next) }
                queue(next)
            }
        }
    }

    private func nextWaiting(in turn: Job.Turn) -> Job? {
        waitingTurns.withLock { waiting in
            guard waiting[turn]?.isEmpty == false else {
                waiting[turn] = nil
                return nil
            }
            return waiting[turn]?.removeFirst()
        }
    }

    /// Queues an operation whose caller is told of a refusal by the answer.
    private func queue(_ job: Job) {
        do throws(RoostError) {
            try append(job, to: lanes[job.lane(of: lanes.count)])
        } catch {
            publish([(job, Outcome(result: .failure(error), notices: []))])
        }
    }

    /// Which of the names that a channel may have is its own is known when the rule has run.
    private func names(of channel: ChannelID) -> [ChannelID] { Scope.channel(channel).channels.sorted() }

    /// Brings together who is present in some channels, one after another.
    private func prepare(_ channels: [ChannelID], then run: @escaping @Sendable () -> Void) {
        guard let channel = channels.first else { return run() }
        delivery.preparePresence(of: channel) { [self] in prepare(Array(channels.dropFirst()), then: run) }
    }

    /// Finishes what waits, then ends the threads. Blocks.
    ///
    /// - Parameter atMost: how long. What a database holds up longer than that was not acknowledged.
    /// - Returns: whether all was finished.
    @discardableResult
    func stop(atMost: Duration = .seconds(60)) -> Bool {
        stopping.signal()
        for lane in lanes { lane.close() }
        reads.close()
        return threads.wait(atMost: atMost)
    }

    // MARK: Writing

    /// - Parameter ids: the lane's generator; nil when it has to be continued from the database, as after every failure.
    /// - Returns: where a lock that somebody else holds stopped all of them; nil when they are answered.
    func write(_ batch: [Job], lane: Int, _ ids: inout IDGenerator?) -> Obstacle? {
        metrics.began(batch, isReading: false)
        let started = DispatchTime.now()
        var running: Job?
        var hasBegun = false
        var scope = Scope()
        for job in batch { scope.formUnion(job.scope) }
        do {
            let held = ids
            // The body can run more than once, and begins with the same generator each time.
            let (outcomes, generator) = try database.write(lane: lane) { transaction in
                var ids = try held ?? IDGenerator(node: transaction.idGenerator, continuing: transaction)
                hasBegun = false
                endSockets(try access.begin(transaction, writing: scope))
                hasBegun = true
                try scope.lock(in: transaction)
                let now = try transaction.now()
                var answerBytes = 0
                let outcomes = try batch.map { job in
                    running = job
                    // Answers of a batch are held until it is committed.
                    guard memory?.hasRoom(forWriteAfter: answerBytes) != false else { return refusal(.overloadedMemory, of: job) }
                    let outcome = try outcome(of: job, ids: &ids, now: now) { rule in
                        try transaction.attempt { try rule(transaction) }
                    }
                    if case .success(let payload) = outcome.result { answerBytes += payload.count }
                    return outcome
                }
                try ids.save(in: transaction)
                return (outcomes, ids)
            }
            ids = generator
            metrics.committed(batch.count, since: started)
            for (job, outcome) in zip(batch, outcomes) {
                metrics.ran(job.operation, refusal: outcome.refusal)
                if outcome.refusal == nil { security.done(job.operation, by: job.caller) }
            }
            publish(zip(batch, outcomes))
        } catch let failure as DatabaseFailure where failure.kind == .damage && batch.count > 1 {
            // One of them needs a damaged page. The others may not: each gets a transaction of its own.
            ids = nil
            for job in batch { _ = write([job], lane: lane, &ids) }
        } catch {
            ids = nil
            if (error as? DatabaseFailure)?.kind == .locked {
                guard hasBegun else { return .access }
                return (running ?? batch.first).map { .row($0.order) }
            }
            lost(batch, error)
        }
        return nil
    }

    /// What somebody else's lock keeps out.
    enum Obstacle {
        /// The beginning, by the lock of those who change somebody's access.
        case access
        /// The operations of a channel, or of a user, which need a row.
        case row(Job.Order)
    }

    func refuse(_ jobs: [Job], _ refusal: RoostError) {
        guard !jobs.isEmpty else { return }
        for job in jobs { metrics.refused(job.operation, refusal) }
        publish(jobs.map { ($0, Outcome(result: .failure(refusal), notices: [])) })
    }

    /// What the lane owes the database between two batches, after what was committed is answered.
    func maintain(lane: Int) {
        do {
            guard let done = try database.maintain(lane: lane) else { return }
            metrics.checkpointed(done)
            if !done.isComplete, done.logFrames > Self.logFramesMax, losses.shouldLog() {
                logger.warning(
                    "The write-ahead log grows, since it is being read without a pause.", metadata: ["pages": "\(done.logFrames)"])
            }
        } catch {
            end(error)
        }
    }

    /// Pages of the log past which its growth is told: 64 MB.
    private static let logFramesMax = 16_000

    /// Nobody knows what is on disk after a failed fsync. Nothing that isn't on disk was acknowledged; a new process reads what is there.
    private func end(_ error: any Error) -> Never {
        logger.critical(
            "The disk failed. The server ends now, so that nothing is acknowledged that isn't stored.",
            metadata: ["error": "\(error)"])
        exit(74)
    }

    /// What is answered to an operation that needs a damaged page.
    private func damaged(_ failure: DatabaseFailure) -> RoostError {
        metrics.damaged()
        if losses.shouldLog() {
            logger.error("A page of the database is damaged. Restore a backup.", metadata: ["error": "\(failure)"])
        }
        return RoostError(.internalError, "What this needs is damaged on the server's disk. Its log says where.")
    }

    func lost(_ batch: [Job], _ error: any Error) {
        let failure = error as? DatabaseFailure
        if failure?.kind == .fatal { end(error) }
        metrics.lost(batch.count)
        if let failure, failure.kind == .damage {
            let refusal = damaged(failure)
            for job in batch { metrics.refused(job.operation, refusal) }
            return publish(zip(batch, batch.map { _ in Outcome(result: .failure(refusal), notices: []) }))
        }
        if losses.shouldLog() {
            logger.error("Operations were refused, since they couldn't be stored.", metadata: ["error": "\(error)"])
        }
        let refusal = RoostError(.unavailable, "The server could not store this. Try again.", retryAfterMilliseconds: 1000)
        refuse(batch, refusal)
    }

    private struct Outcome {
        let result: Result<[UInt8], RoostError>
        let notices: [Notice]
        var callerSeq: Seq = 0
        var effectDueAt: Timestamp?

        var refusal: RoostError? { if case .failure(let refusal) = result { refusal } else { nil } }
    }

    /// Runs one rule. Refusals become its answer; a failure of the engine is thrown on, since it concerns the whole batch.
    private func outcome(
        of job: Job, ids: inout IDGenerator, now: Timestamp,
        _ attempt: (_ rule: (any Transaction) throws -> [UInt8]) throws -> [UInt8]
    ) throws -> Outcome {
        var notices: [Notice] = []
        var callerSeq: Seq = 0
        var effectDueAt: Timestamp?
        do {
            let payload = try attempt { transaction in
                var context = Context(
                    transaction: transaction, caller: job.caller, now: now, ids: ids, presence: delivery.presence, options: options)
                defer { ids = context.ids }
                try access.admit(context)
                let payload = try job.run(&context)
                (notices, callerSeq, effectDueAt) = (context.notices, context.callerSeq, context.effectDueAt)
                return payload
            }
            return Outcome(result: .success(payload), notices: notices, callerSeq: callerSeq, effectDueAt: effectDueAt)
        } catch let refusal as RoostError {
            return Outcome(result: .failure(refusal), notices: [])
        } catch let failure as DatabaseFailure where failure.kind != .statement {
            throw failure
        } catch {
            logger.error("An operation failed.", metadata: ["error": "\(error)"])
            return Outcome(result: .failure(.internalFailure), notices: [])
        }
    }

    /// Other nodes have shut somebody out.
    private func endSockets(_ changes: [AccessChange]) {
        if !changes.isEmpty { hub.deliver([.change(.accessChanged(changes))]) }
    }

    /// Nothing is run for an operation that there is no room for.
    private func refusal(_ error: RoostError, of job: Job) -> Outcome {
        metrics.overloaded(.server)
        security.reached(.memory, user: job.caller.user)
        return Outcome(result: .failure(error), notices: [])
    }

    private func publish(_ answered: some Sequence<(Job, Outcome)>) {
        var eventCount = 0
        defer { metrics.made(events: eventCount) }
        for (_, outcome) in answered {
            if let due = outcome.effectDueAt { alarm?.ring(at: due) }
            for case .accessChanged(let changes) in outcome.notices { access.learn(changes) }
        }
        delivery.deliver(
            answered.map { job, outcome in
                for case .event in outcome.notices { eventCount += 1 }
                return committed(job, outcome)
            })
    }

    private func committed(_ job: Job, _ outcome: Outcome) -> Committed {
        var notices = outcome.notices
        let answer: Committed.Answer
        switch (job.destination, outcome.result) {
        case (.socket(let address, let call), let result):
            answer = .socket(address, result.payload(call: call))
        case (.welcome(let address, _), .success(let welcome)):
            answer = .socket(address, welcome)
        case (.welcome(_, let refused), .failure(let error)):
            notices = []
            answer = .waiting { refused(error) }
        case (.waiting(let resume), let result):
            answer = .waiting { resume(result) }
        }
        return Committed(
            notices: notices, answer: answer, user: job.caller.user, channel: job.scope.orderingChannel,
            callerSeq: outcome.callerSeq)
    }

    // MARK: Reading

    /// Reads what waits on one snapshot, and answers each as it is read.
    private func read(_ batch: [Job]) {
        metrics.began(batch, isReading: true)
        let started = DispatchTime.now()
        defer { metrics.read(batch.count, since: started) }
        var answered = 0
        do {
            try database.read { transaction in
                var ids = IDGenerator()
                endSockets(try access.begin(transaction, writing: nil))
                for job in batch {
                    let outcome =
                        memory?.isFull == true
                        ? refusal(.overloadedMemory, of: job)
                        : try outcome(of: job, ids: &ids, now: database.now()) { rule in try rule(transaction) }
                    answered += 1
                    metrics.ran(job.operation, refusal: outcome.refusal)
                    answer(job, outcome.result)
                }
            }
        } catch let failure as DatabaseFailure where failure.kind == .damage && answered < batch.count {
            // The snapshot is gone with the failure. The operations behind the one that met it get another.
            let refusal = damaged(failure)
            metrics.refused(batch[answered].operation, refusal)
            answer(batch[answered], .failure(refusal))
            let rest = Array(batch.dropFirst(answered + 1))
            if !rest.isEmpty { read(rest) }
        } catch {
            logger.error("A read failed.", metadata: ["error": "\(error)"])
            // What a rule throws is its own answer above: here the database failed, and may be back soon.
            let refusal = RoostError(.unavailable, "The server could not read this. Try again.", retryAfterMilliseconds: 1000)
            for job in batch.dropFirst(answered) {
                metrics.refused(job.operation, refusal)
                answer(job, .failure(refusal))
            }
        }
    }

    private func answer(_ job: Job, _ result: Result<[UInt8], RoostError>) {
        switch job.destination {
        case .socket(let address, let call):
            let payload = result.payload(call: call)
            // Counted here until the socket has it: readers are faster than the loops.
            memory?.add(payload.count)
            hub.reply(to: address, payload, isLeaving: memory)
        case .welcome(_, let refused):
            if case .failure(let error) = result { refused(error) }
        case .waiting(let resume): resume(result)
        }
    }
}

extension Result where Success == [UInt8], Failure == RoostError {
    fileprivate func payload(call: Int64) -> [UInt8] {
        switch self {
        case .success(let payload): payload
        case .failure(let refusal): ReplyFrame.refusal(refusal, call: call)
        }
    }
}

extension RoostError {
    /// What a client is told of a failure that isn't its own: no detail of it.
    static let internalFailure = RoostError(.internalError, "The server failed at this. Its log says why.")
}

extension Timestamp {
    /// The system clock.
    static var now: Timestamp { Timestamp(milliseconds: Int64((Date().timeIntervalSince1970 * 1000).rounded(.down))) }
}
