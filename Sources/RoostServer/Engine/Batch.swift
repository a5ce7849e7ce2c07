import RoostAPI
import RoostCore
import RoostDatabase

/// The outcome of an operation: its answer, and its notices.
struct JobOutcome: Sendable {
    let result: Result<[UInt8], RoostError>
    var notices: [Notice] = []
    var callerSeq: Seq = 0
    var effectDueAt: Timestamp?
    /// The count of its answer, if that is counted already. The request takes it over when it is answered.
    var count: AnswerCount?

    var refusal: RoostError? { if case .failure(let refusal) = result { refusal } else { nil } }
}

/// The environment of every operation of an engine, besides its transaction.
struct BatchSettings: Sendable {
    let access: AccessGate
    let presence: any Presence & Sendable
    var options = AppOptions()
    var handsOffPushes = false
    /// The bytes held for all clients: above the limit, operations that would add to them are refused. Nil if nothing is counted.
    var memory: ByteLedger?
    /// The machine's clock.
    var machineNow: @Sendable () -> Timestamp = { .now }
    /// The monotonic clock that patience is measured by.
    var clock: @Sendable () -> ContinuousClock.Instant = { .now }
}

/// An action for the driver of a batch.
enum BatchAction {
    /// A transaction begins for these jobs.
    case began([Job])
    /// Other nodes have changed a user's access: sockets that are shut out are closed.
    case accessChanged([AccessChange])
    /// These jobs are stored, in this order, and are now delivered and answered.
    case committed([(job: Job, outcome: JobOutcome)])
    /// A read-only operation has its answer.
    case answered(Job, JobOutcome)
    /// These jobs were refused without running.
    case refused([Job], RoostError)
    /// The database failed, and these jobs are refused.
    case lost([Job], any Error, RoostError)
    /// An operation was refused because the budget of the server or of its user has no room for its answer.
    case exceededMemory(Job, isUsers: Bool)
    /// A rule failed in a way that isn't a refusal.
    case failed(Job, any Error)
    /// The lane has answered everything it could: time for the database's maintenance.
    case maintain
    /// The state of the disk is unknown, or the database has another epoch. The process ends.
    case end(any Error)
}

extension Job {
    /// Runs the rule. Refusals become its outcome; a failure of the database is thrown on, since it affects the whole batch.
    ///
    /// - Parameter attempt: Runs the rule in a transaction, and rolls it back if it throws.
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
                context.connectedElsewhere = found.connectedElsewhere
                context.watchersElsewhere = found.watchersElsewhere
                context.foundChannels = found.channels
                context.handsOffPushes = settings.handsOffPushes
                // A database that several nodes share has its own clock.
                if transaction.dialect.accessLock != nil { context.machineNow = settings.machineNow() }
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

    /// Refuses an operation for lack of room, without running it.
    fileprivate func refusedForMemory(isUsers: Bool = false, _ perform: (BatchAction) -> Void) -> JobOutcome {
        perform(.exceededMemory(self, isUsers: isUsers))
        return JobOutcome(result: .failure(isUsers ? .overloadedMemoryOfUser : .overloadedMemory))
    }
}

/// The answers of a writing batch, held until it is committed.
private struct BatchAnswers {
    /// The total size of those that aren't counted yet.
    private(set) var sizeBytes = 0
    /// How much of the large answers isn't counted yet, by the ledger of their caller.
    private var large: [ObjectIdentifier: Int] = [:]
    /// The weight assumed for a write's answer before it exists. A stored message in the answer can be five hundred times as large.
    private static let smallBytes = 2 << 10

    /// Whether a job's caller may have one more. A caller with large answers in the batch gets no more of them than its budget holds: otherwise one
    /// user's answers would leave no room for the others' operations. A request may not even have the first if other answers use up the budget:
    /// each lane, and each batch, would have room for another.
    func haveRoom(for job: Job) -> Bool {
        guard let memory = job.callerMemory else { return true }
        let pending = large.isEmpty ? nil : large[ObjectIdentifier(memory)]
        guard job.isOfRequest || pending != nil else { return true }
        return !job.isCallersMemoryFull(with: pending ?? 0)
    }

    /// Notes an answer. One to a request counts at once, so other lanes see it before the commit.
    ///
    /// - Parameter memory: The ledger that counts it, in addition to the caller's.
    /// - Returns: Its count, for as long as it is held; nil if it isn't counted yet.
    mutating func add(_ sizeBytes: Int, of job: Job, in memory: ByteLedger?) -> HeldBytes? {
        let held = job.hold(sizeBytes, in: memory)
        let pending = held == nil ? sizeBytes : 0
        self.sizeBytes += pending
        if sizeBytes > Self.smallBytes, let ledger = job.callerMemory { large[ObjectIdentifier(ledger), default: 0] += pending }
        return held
    }
}

/// Operations that write, one after another in one transaction. A function without state.
enum WriteBatch {
    /// Operations blocked by another transaction's lock.
    enum Obstacle {
        /// All of them, by the lock for changes of access.
        case access
        /// Operations of one channel or user, which need a locked row.
        case row(Job.Order)
    }

    /// - Parameter ids: The lane's generator; nil if it has to be continued from the database, as after every failure.
    /// - Returns: Another transaction's lock, and the operations that it stopped; nil if all are answered.
    static func run(
        _ batch: [Job], in database: any Database, lane: Int, _ ids: inout IDGenerator?, _ settings: BatchSettings,
        _ perform: (BatchAction) -> Void
    ) -> (obstacle: Obstacle, stopped: [Job])? {
        perform(.began(batch))
        var running: Job?
        var hasBegun = false
        var scope = Scope()
        for job in batch { scope.formUnion(job.scope) }
        do {
            let held = ids
            // The body can run more than once, and begins with the same generator each time.
            let (outcomes, generator, noted) = try database.write(lane: lane) { transaction in
                // With another connection the lane may have another number, and another server may have the former one.
                let number = transaction.idGenerator
                let current = held.flatMap { $0.isOf(number) ? $0 : nil }
                var ids = try current ?? IDGenerator(number, continuing: transaction) { UInt64.random(in: .min ... .max) }
                hasBegun = false
                let changes = try settings.access.begin(transaction, writing: scope)
                if !changes.isEmpty { perform(.accessChanged(changes)) }
                hasBegun = true
                try scope.lock(in: transaction)
                let now = try transaction.now()
                try transaction.readAhead(callers(of: batch), sending: messages(of: batch))
                var answers = BatchAnswers()
                // Only the run that is stored is counted and logged, so each action is counted once.
                var noted: [BatchAction] = []
                let outcomes = try batch.map { job in
                    running = job
                    let otherBytes = answers.sizeBytes - job.found.requestSizeBytes
                    guard settings.memory?.hasRoom(forWriteAfter: otherBytes) != false else {
                        return job.refusedForMemory { noted.append($0) }
                    }
                    guard answers.haveRoom(for: job) else { return job.refusedForMemory(isUsers: true) { noted.append($0) } }
                    var outcome = try job.outcome(ids: &ids, now: now, settings, { noted.append($0) }) { rule in
                        try transaction.attempt { try rule(transaction) }
                    }
                    if case .success(let payload) = outcome.result {
                        outcome.count = answers.add(payload.count, of: job, in: settings.memory).map(AnswerCount.init)
                    }
                    // Later operations of the batch are checked too. A change that is rolled back costs them a look-up.
                    for case .accessChanged(let changes) in outcome.notices { settings.access.learn(changes) }
                    return outcome
                }
                try ids.save(in: transaction, at: now)
                return (outcomes, ids, noted)
            }
            ids = generator
            for action in noted { perform(action) }
            perform(.committed(zip(batch, outcomes).map { (job: $0, outcome: $1) }))
        } catch let failure as DatabaseFailure where failure.isOfOneOperation && batch.count > 1 {
            ids = nil
            var cancelled: [any Error] = []
            return runAlone(batch, in: database, lane: lane, &ids, after: &cancelled, settings, perform)
        } catch {
            ids = nil
            if (error as? DatabaseFailure)?.kind == .locked {
                guard hasBegun else { return (.access, batch) }
                guard let blocked = running ?? batch.first else { return nil }
                return (.row(blocked.order), batch)
            }
            refuse(batch, after: error, perform)
        }
        return nil
    }

    /// Runs each operation of a batch in a separate transaction, since one of them needs a damaged page, takes too long or meets a locked row. The
    /// others may be unaffected.
    ///
    /// - Parameter cancelled: The failures of operations that took too long, both among these and before them.
    /// - Returns: The lock that stopped one of them, and that operation with all that follow it.
    static func runAlone(
        _ batch: [Job], in database: any Database, lane: Int, _ ids: inout IDGenerator?, after cancelled: inout [any Error],
        _ settings: BatchSettings, _ perform: (BatchAction) -> Void
    ) -> (obstacle: Obstacle, stopped: [Job])? {
        for (index, job) in batch.enumerated() {
            // If a second one takes too long, the operations aren't the cause. The lane doesn't wait as long for each of the rest.
            if cancelled.count > 1, let failure = cancelled.last {
                refuse(Array(batch[index...]), after: failure, perform)
                return nil
            }
            var gone: (any Error)?
            let stop = run([job], in: database, lane: lane, &ids, settings) { action in
                if case .lost(_, let error, _) = action {
                    let failure = error as? DatabaseFailure
                    if failure?.kind == .cancelled {
                        cancelled.append(error)
                    } else if failure?.isOfOneOperation != true {
                        gone = error
                    }
                }
                perform(action)
            }
            // A lock stops the following ones too, until its lane knows which of them need it.
            if let stop { return (stop.obstacle, Array(batch[index...])) }
            // Without a database each of the rest would wait just as long for it.
            if let gone {
                let rest = Array(batch[(index + 1)...])
                if !rest.isEmpty { refuse(rest, after: gone, perform) }
                return nil
            }
        }
        return nil
    }

    /// The callers of a batch in channels: nearly every operation begins with their memberships. The meaning of a channel's `type:id` isn't known
    /// yet.
    private static func callers(of batch: [Job]) -> Set<ChannelCaller> {
        var callers: Set<ChannelCaller> = []
        for job in batch where job.scope.channels.count == 1 {
            if let channel = job.scope.channels.first { callers.insert(ChannelCaller(user: job.caller.user, channel: channel)) }
        }
        return callers
    }

    /// The client ids of the messages that a batch sends, by their senders.
    private static func messages(of batch: [Job]) -> [ChannelCaller: Set<ClientID>] {
        var messages: [ChannelCaller: Set<ClientID>] = [:]
        for job in batch where job.scope.channels.count == 1 {
            guard let clientId = job.traits.sentClientId, let channel = job.scope.channels.first else { continue }
            messages[ChannelCaller(user: job.caller.user, channel: channel), default: []].insert(clientId)
        }
        return messages
    }

    /// Refuses operations that the database couldn't store, unless its failure ends the server.
    static func refuse(_ batch: [Job], after error: any Error, _ perform: (BatchAction) -> Void) {
        if error is AccessGate.EpochRenewed { return perform(.end(error)) }
        switch (error as? DatabaseFailure)?.kind {
        case .fatal: perform(.end(error))
        case .damage: perform(.lost(batch, error, .damaged))
        default: perform(.lost(batch, error, .notStored))
        }
    }
}

/// Read-only operations on one snapshot, each answered as it is read. A function without state.
enum ReadBatch {
    /// - Parameter cancelledCount: How many reads before these took too long.
    static func run(
        _ batch: [Job], in database: any Database, _ settings: BatchSettings, after cancelledCount: Int = 0,
        _ perform: (BatchAction) -> Void
    ) {
        perform(.began(batch))
        var answered = 0
        do {
            try database.read { transaction in
                var ids = IDGenerator()
                let changes = try settings.access.begin(transaction, writing: nil)
                if !changes.isEmpty { perform(.accessChanged(changes)) }
                for job in batch {
                    let outcome: JobOutcome
                    if job.isServersMemoryFull(settings.memory) {
                        outcome = job.refusedForMemory(perform)
                    } else if job.isCallersMemoryFull() {
                        // Several calls of one user may be under way that began while there was room.
                        outcome = job.refusedForMemory(isUsers: true, perform)
                    } else {
                        outcome = try job.outcome(ids: &ids, now: database.now(), settings, perform) { try $0(transaction) }
                    }
                    answered += 1
                    perform(.answered(job, outcome))
                }
            }
        } catch let failure as DatabaseFailure where failure.isOfOneOperation && cancelledCount < 2 && answered < batch.count {
            // The failure ended the snapshot. The operations after the failed one get another snapshot, unless several reads in a row take too
            // long.
            let isCancelled = failure.kind == .cancelled
            perform(.lost([batch[answered]], failure, isCancelled ? .notRead : .damaged))
            let rest = Array(batch.dropFirst(answered + 1))
            if !rest.isEmpty { run(rest, in: database, settings, after: cancelledCount + (isCancelled ? 1 : 0), perform) }
        } catch let renewed as AccessGate.EpochRenewed {
            perform(.end(renewed))
        } catch {
            // Errors of a rule are answered above: here the database failed, and may be available again soon.
            perform(.lost(Array(batch.dropFirst(answered)), error, .notRead))
        }
    }
}

/// How a read is run.
enum ReadDispatch {
    /// On a reader thread.
    case queued
    /// On a reader thread after all: the calling thread began it, but would have had to wait.
    case gaveUp
    /// On the calling thread.
    case ranInline
}

extension ReadBatch {
    /// Runs one operation if that involves no waiting.
    ///
    /// - Parameter hasBegun: Set if it has begun.
    /// - Returns: Nil if it would have to wait, or the database failed: a reader thread then runs it, and reports the error.
    static func runWithoutBlocking(
        _ job: Job, in database: any Database, _ settings: BatchSettings, began hasBegun: inout Bool,
        _ perform: (BatchAction) -> Void
    ) -> JobOutcome? {
        guard !job.isServersMemoryFull(settings.memory), !job.isCallersMemoryFull() else { return nil }
        let outcome = try? database.readWithoutBlocking { transaction in
            hasBegun = true
            var ids = IDGenerator()
            return try job.outcome(ids: &ids, now: database.now(), settings, perform) { try $0(transaction) }
        }
        return outcome
    }
}

extension Committed {
    /// Combines an operation's notices with the destination of its answer, which takes over the answer's count.
    init(_ outcome: JobOutcome, of job: Job) {
        var notices = outcome.notices
        let answer: Answer
        switch (job.destination, outcome.result) {
        case (.socket(let socket, let call), let result):
            answer = .socket(socket, result.payload(call: call))
        case (.welcome(let socket, _), .success(let welcome)):
            answer = .socket(socket, welcome)
        case (.welcome(_, let refused), .failure(let error)):
            notices = []
            answer = .waiting { refused(error) }
        case (.waiting(let resume), let result):
            answer = .waiting { resume(result) }
        case (.request(let resume), let result):
            // The batch is kept until the event loops have taken it, which must not keep the count of an answer that was read meanwhile.
            let held = outcome.count?.take()
            let counted = result.map { HeldAnswer(bytes: $0, held: held) }
            answer = .waiting { resume(counted) }
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
    /// The answer to a failure that isn't the client's fault, without details.
    static let internalFailure = RoostError(.internalError, "The server failed to handle this. See its log.")
    fileprivate static let damaged = RoostError(
        .internalError, "Data that this needs is damaged on the server's disk. Its log says where.")
    fileprivate static let notStored = RoostError(
        .unavailable, "The server could not store this. Try again.", retryAfterMilliseconds: 1000)
    fileprivate static let notRead = RoostError(
        .unavailable, "The server could not read this. Try again.", retryAfterMilliseconds: 1000)
}

extension DatabaseFailure {
    /// Whether it may be the failure of one operation, without which the others of its batch succeed.
    fileprivate var isOfOneOperation: Bool { kind == .damage || kind == .cancelled }

    /// The refusal of an operation that waited for a lock until its lane's patience ran out.
    static let lockedTooLong = DatabaseFailure(message: "Another transaction held a lock for too long.", kind: .locked)
}
