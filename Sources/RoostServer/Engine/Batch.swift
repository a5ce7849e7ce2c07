import RoostAPI
import RoostCore
import RoostDatabase

/// What became of an operation: its answer, and what it tells.
struct JobOutcome: Sendable {
    let result: Result<[UInt8], RoostError>
    var notices: [Notice] = []
    var callerSeq: Seq = 0
    var effectDueAt: Timestamp?

    var refusal: RoostError? { if case .failure(let refusal) = result { refusal } else { nil } }
}

/// What every operation of an engine is run with, beside its transaction.
struct BatchSettings: Sendable {
    let access: AccessGate
    let presence: any Presence & Sendable
    var options = AppOptions()
    /// What is held for all clients: while that is too much, what would add to it is refused. Nil where nothing is counted.
    var memory: ByteLedger?
    /// By which patience is measured: a clock that only goes forward.
    var clock: @Sendable () -> ContinuousClock.Instant = { .now }
}

/// What running a batch has its driver do.
enum BatchAction {
    /// A transaction begins for these.
    case began([Job])
    /// Other nodes have changed somebody's access: the sockets of those who are shut out end.
    case accessChanged([AccessChange])
    /// These are stored, in this order: now they are delivered, and answered.
    case committed([(job: Job, outcome: JobOutcome)])
    /// An operation that only reads has its answer.
    case answered(Job, JobOutcome)
    /// These were refused without having run.
    case refused([Job], RoostError)
    /// The database failed, and these are refused.
    case lost([Job], any Error, RoostError)
    /// An operation was refused because there is no room for its answer.
    case hadNoRoom(Job)
    /// A rule failed in a way that isn't a refusal.
    case failed(Job, any Error)
    /// The lane has answered what it could: time for what it owes the database.
    case maintain
    /// Nobody knows what is on disk any more. The process ends.
    case end(any Error)
}

extension Job {
    /// Runs the rule. Refusals become its outcome; a failure of the database is thrown on, since it concerns the whole batch.
    ///
    /// - Parameter attempt: runs the rule in a transaction, of which nothing is left if it throws.
    func outcome(
        ids: inout IDGenerator, now: Timestamp, _ settings: BatchSettings, _ perform: (BatchAction) -> Void,
        _ attempt: (_ rule: (any Transaction) throws -> [UInt8]) throws -> [UInt8]
    ) throws -> JobOutcome {
        var notices: [Notice] = []
        var callerSeq: Seq = 0
        var effectDueAt: Timestamp?
        do {
            let payload = try attempt { transaction in
                var context = Context(
                    transaction: transaction, caller: caller, now: now, ids: ids, presence: settings.presence,
                    options: settings.options, scope: scope)
                defer { ids = context.ids }
                try settings.access.requireAccess(context)
                let payload = try run(&context)
                (notices, callerSeq, effectDueAt) = (context.notices, context.callerSeq, context.effectDueAt)
                return payload
            }
            return JobOutcome(result: .success(payload), notices: notices, callerSeq: callerSeq, effectDueAt: effectDueAt)
        } catch let refusal as RoostError {
            return JobOutcome(result: .failure(refusal))
        } catch let failure as DatabaseFailure where failure.kind != .statement {
            throw failure
        } catch {
            perform(.failed(self, error))
            return JobOutcome(result: .failure(.internalFailure))
        }
    }

    /// Nothing is run for an operation that there is no room for.
    fileprivate func refusedForRoom(_ perform: (BatchAction) -> Void) -> JobOutcome {
        perform(.hadNoRoom(self))
        return JobOutcome(result: .failure(.overloadedMemory))
    }
}

/// Operations that write, one after another in one transaction. A function without state.
enum WriteBatch {
    /// What somebody else's lock keeps out.
    enum Obstacle {
        /// The beginning, by the lock of those who change somebody's access.
        case access
        /// The operations of a channel, or of a user, which need a row.
        case row(Job.Order)
    }

    /// - Parameter ids: the lane's generator; nil when it has to be continued from the database, as after every failure.
    /// - Returns: where a lock that somebody else holds stopped all of them; nil when they are answered.
    static func run(
        _ batch: [Job], in database: any Database, lane: Int, _ ids: inout IDGenerator?, _ settings: BatchSettings,
        _ perform: (BatchAction) -> Void
    ) -> Obstacle? {
        perform(.began(batch))
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
                let changes = try settings.access.begin(transaction, writing: scope)
                if !changes.isEmpty { perform(.accessChanged(changes)) }
                hasBegun = true
                try scope.lock(in: transaction)
                let now = try transaction.now()
                var answerBytes = 0
                let outcomes = try batch.map { job in
                    running = job
                    // Answers of a batch are held until it is committed.
                    guard settings.memory?.hasRoom(forWriteAfter: answerBytes) != false else { return job.refusedForRoom(perform) }
                    let outcome = try job.outcome(ids: &ids, now: now, settings, perform) { rule in
                        try transaction.attempt { try rule(transaction) }
                    }
                    if case .success(let payload) = outcome.result { answerBytes += payload.count }
                    return outcome
                }
                try ids.save(in: transaction)
                return (outcomes, ids)
            }
            ids = generator
            perform(.committed(Array(zip(batch, outcomes))))
        } catch let failure as DatabaseFailure where failure.kind == .damage && batch.count > 1 {
            // One of them needs a damaged page. The others may not: each gets a transaction of its own.
            ids = nil
            for job in batch {
                let obstacle = run([job], in: database, lane: lane, &ids, settings, perform)
                if obstacle != nil { lose([job], DatabaseFailure.lockedTooLong, perform) }
            }
        } catch {
            ids = nil
            if (error as? DatabaseFailure)?.kind == .locked {
                guard hasBegun else { return .access }
                return (running ?? batch.first).map { .row($0.order) }
            }
            lose(batch, error, perform)
        }
        return nil
    }

    /// Refuses operations that the database couldn't store, unless its failure is the end.
    static func lose(_ batch: [Job], _ error: any Error, _ perform: (BatchAction) -> Void) {
        switch (error as? DatabaseFailure)?.kind {
        case .fatal: perform(.end(error))
        case .damage: perform(.lost(batch, error, .damaged))
        default: perform(.lost(batch, error, .notStored))
        }
    }
}

/// Operations that only read, on one snapshot, each answered as it is read. A function without state.
enum ReadBatch {
    static func run(
        _ batch: [Job], in database: any Database, _ settings: BatchSettings, _ perform: (BatchAction) -> Void
    ) {
        perform(.began(batch))
        var answered = 0
        do {
            try database.read { transaction in
                var ids = IDGenerator()
                let changes = try settings.access.begin(transaction, writing: nil)
                if !changes.isEmpty { perform(.accessChanged(changes)) }
                for job in batch {
                    let outcome =
                        settings.memory?.isFull == true
                        ? job.refusedForRoom(perform)
                        : try job.outcome(ids: &ids, now: database.now(), settings, perform) { rule in try rule(transaction) }
                    answered += 1
                    perform(.answered(job, outcome))
                }
            }
        } catch let failure as DatabaseFailure where failure.kind == .damage && answered < batch.count {
            // The snapshot is gone with the failure. The operations behind the one that met it get another.
            perform(.lost([batch[answered]], failure, .damaged))
            let rest = Array(batch.dropFirst(answered + 1))
            if !rest.isEmpty { run(rest, in: database, settings, perform) }
        } catch {
            // What a rule throws is its own answer above: here the database failed, and may be back soon.
            perform(.lost(Array(batch.dropFirst(answered)), error, .notRead))
        }
    }
}

extension Committed {
    /// What an operation tells, and the way of its answer.
    init(_ outcome: JobOutcome, of job: Job) {
        var notices = outcome.notices
        let answer: Answer
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
        self.init(
            notices: notices, answer: answer, user: job.caller.user, channel: job.scope.orderingChannel,
            callerSeq: outcome.callerSeq)
    }
}

extension Result where Success == [UInt8], Failure == RoostError {
    /// The reply to a call.
    func payload(call: Int64) -> [UInt8] {
        switch self {
        case .success(let payload): payload
        case .failure(let refusal): ReplyFrame.refusal(refusal, call: call)
        }
    }
}

extension RoostError {
    /// What a client is told of a failure that isn't its own: no detail of it.
    static let internalFailure = RoostError(.internalError, "The server failed to handle this. See its log.")
    fileprivate static let damaged = RoostError(
        .internalError, "What this needs is damaged on the server's disk. Its log says where.")
    fileprivate static let notStored = RoostError(
        .unavailable, "The server could not store this. Try again.", retryAfterMilliseconds: 1000)
    fileprivate static let notRead = RoostError(
        .unavailable, "The server could not read this. Try again.", retryAfterMilliseconds: 1000)
}

extension DatabaseFailure {
    /// What an operation is refused for that waited for a lock as long as its lane is patient.
    static let lockedTooLong = DatabaseFailure(message: "Somebody else held a lock for too long.", kind: .locked)
}
