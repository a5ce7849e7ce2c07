import Dispatch
import Foundation
import Logging
import RoostAPI
import RoostCore
import RoostDatabase
import Synchronization

/// Runs every operation. Writing operations run in lanes, in batches, each batch in one durable transaction; read-only operations run concurrently.
///
/// SQLite has one lane, PostgreSQL several. A lane is a thread. Operations of one channel go to one lane, so a hot channel is committed in batches
/// too; an operation on several channels goes to the lane of `Scope.orderingChannel`. A batch takes these steps:
/// 1. The lane takes queued operations, at most ``Configuration/batchSizeMax``.
/// 2. One transaction begins. If there are other writers, it locks the streams that the operations may move.
/// 3. Each operation runs in order. A refused one leaves nothing behind.
/// 4. The transaction commits, which includes the fsync.
/// 5. Only then each operation's events and reply are delivered, in the order of the operations.
///
/// The queue fills while a commit waits for the disk: the slower the disk, the larger the batches. A full queue refuses operations (`overloaded`)
/// instead of letting them wait indefinitely.
final class Engine: Sendable {
    struct Configuration: Sendable {
        /// The most queued operations; further ones are refused.
        var queueSizeMax = 20_000
        /// The most operations in one transaction.
        var batchSizeMax = 512
        /// How long an operation waits for another transaction's lock before it is refused.
        var lockPatience = Duration.seconds(10)
        /// When lanes hold back operations that tolerate a delay.
        var hold = Hold.Configuration()
        /// Whether there is a receiver of pushes.
        var handsOffPushes = false

        init(_ server: RoostServer.Configuration) {
            lockPatience = server.lockTimeout
            handsOffPushes = server.pushSender != nil
        }
    }

    let database: any Database
    private let hub: Hub
    let delivery: any Delivery
    let settings: BatchSettings
    private let logger: Logger
    let lanes: [WorkQueue]
    let reads: WorkQueue
    /// The operations that send transient signals: run one after another, which keeps their order.
    let signalQueue: WorkQueue
    private let alarm: EffectAlarm?
    /// The transient signals, which aren't stored.
    let signals: SignalScheduler
    /// When users were online.
    private let activity: ActivityScheduler
    private let stopping = MonotonicSemaphore()
    private let threads = Threads()
    let metrics: ServerMetrics
    let security: SecurityLog
    private let losses = LogThrottle()
    let presenceTurns = Mutex(PresenceTurns())

    /// Starts the threads.
    ///
    /// - Parameters:
    ///   - delivery: Delivers the commits; the hub itself if this server is the only node.
    ///   - options: The app's options, for every rule.
    init(
        database: any Database, hub: Hub, delivery: (any Delivery)? = nil, options: AppOptions = .init(),
        configuration: Configuration, metrics: ServerMetrics = .init(), security: SecurityLog? = nil,
        memory: ByteLedger? = nil, alarm: EffectAlarm? = nil, logger: Logger
    ) throws {
        self.database = database
        self.hub = hub
        let delivering = delivery ?? hub
        self.delivery = delivering
        settings = BatchSettings(
            access: try AccessGate(database), presence: delivering.presence, options: options,
            handsOffPushes: configuration.handsOffPushes, memory: memory)
        self.metrics = metrics
        self.security = security ?? SecurityLog(logger: logger)
        self.alarm = alarm
        self.logger = logger
        let lanes = (0..<max(1, database.laneCount)).map { _ in
            WorkQueue(
                sizeMax: configuration.queueSizeMax / max(1, database.laneCount), batchSizeMax: configuration.batchSizeMax,
                hold: configuration.hold)
        }
        self.lanes = lanes
        reads = WorkQueue(sizeMax: configuration.queueSizeMax, batchSizeMax: 16)
        let signalQueue = WorkQueue(sizeMax: configuration.queueSizeMax, batchSizeMax: 16)
        self.signalQueue = signalQueue
        let signals = SignalScheduler(presence: delivering.presence, on: hub.anyLoop) {
            Self.send($0, through: signalQueue, failed: $1)
        } findViewers: {
            Self.findViewers(of: $0, through: signalQueue, done: $1)
        }
        self.signals = signals
        delivering.onWatching { signals.watchingChanged(of: $0, in: $1) }
        delivering.onOnline { signals.onlineChanged(of: $0, in: $1) }
        delivering.onRemoteNotices { notices in
            for case .rulesChanged in notices { Self.checkReaders(on: hub, through: lanes) }
            signals.take(notices)
            let immediate = signals.takeCrowded(notices).now.compactMap {
                if case .signal(let signal, _) = $0 { signal } else { nil }
            }
            if !immediate.isEmpty { Self.send(immediate, through: signalQueue) }
        }
        let activity = ActivityScheduler(on: hub.anyLoop) { Self.store($0, through: lanes[0], failed: $1) }
        self.activity = activity
        delivering.onConnection { activity.connectionsChanged(of: $0, isConnected: $1) }
        for (number, queue) in lanes.enumerated() {
            threads.start("roost-lane-\(number + 1)") { [self] in
                let deferredJobsMax = configuration.queueSizeMax / max(1, database.laneCount)
                let lane = Lane(
                    number: number, patience: configuration.lockPatience, deferredJobsMax: deferredJobsMax,
                    batchSizeMax: configuration.batchSizeMax)
                run(lane, queue)
            }
        }
        for number in 1...max(1, database.readerCount) {
            threads.start("roost-reader-\(number)") { [self] in
                while let batch = reads.next() { read(batch) }
            }
        }
        threads.start("roost-signals") { [self] in
            while let batch = signalQueue.next() { read(batch) }
        }
        if database.laneCount > 1 || delivery != nil { threads.start("roost-access") { [self] in watchAccess() } }
    }

    /// The numbers of queued operations: writing ones, over all lanes, and read-only ones.
    var queueLengths: (writes: Int, reads: Int) { (lanes.reduce(0) { $0 + $1.length }, reads.length) }

    /// Whether a lane holds operations back at the moment.
    var isHolding: Bool { lanes.contains { $0.isHolding } }

    /// Every transaction learns whose access other nodes have ended. An idle server checks for that regularly.
    private func watchAccess() {
        while !stopping.wait(atMost: Self.accessPause) {
            _ = try? submit(read: Job(.init(isReadOnly: true), caller: .server, run: { _ in [] }, destination: .waiting { _ in }))
        }
    }

    /// How long a socket may stay open after losing its access, on a server without operations.
    private static let accessPause = Duration.milliseconds(300)

    /// Finishes the queued operations, then ends the threads. Blocks.
    ///
    /// - Parameter atMost: The time limit. Operations that the database delays beyond it weren't acknowledged.
    /// - Returns: Whether everything was finished.
    @discardableResult
    func stop(atMost: Duration = .seconds(60)) -> Bool {
        stopping.signal()
        activity.end()
        for lane in lanes { lane.close() }
        reads.close()
        signalQueue.close()
        return threads.wait(atMost: atMost)
    }

    // MARK: Writing

    /// Runs a lane until its queue is closed and empty.
    private func run(_ lane: Lane, _ queue: WorkQueue) {
        var lane = lane
        let number = lane.number
        var started = DispatchTime.now()
        // After a pause the lane does, once, the work that would otherwise delay a batch.
        var pause: Duration? = Self.pauseBeforeIdleWork
        while let batch = queue.next(within: lane.isWaiting ? .milliseconds(lane.isBehind ? 0 : 50) : pause) {
            if batch.isEmpty, !lane.isWaiting {
                maintain(lane: number, isIdle: true)
                pause = database.isMaintaining(lane: number) ? .milliseconds(20) : nil
            } else {
                lane.run(batch, in: database, settings) { perform($0, lane: number, &started) }
                pause = Self.pauseBeforeIdleWork
            }
        }
        lane.end { perform($0, lane: number, &started) }
    }

    private func perform(_ action: BatchAction, lane: Int, _ started: inout DispatchTime) {
        switch action {
        case .began(let batch):
            metrics.began(batch, isReading: false)
            started = .now()
        case .committed(let operations):
            metrics.committed(operations.count, since: started)
            for (job, outcome) in operations {
                metrics.ran(job.operation, refusal: outcome.refusal)
                if outcome.refusal == nil { security.done(job.operation, by: job.caller) }
            }
            publish(operations)
            delivery.waitForLoops(atMost: .seconds(1))
        case .refused(let jobs, let refusal): refuse(jobs, refusal)
        case .lost(let jobs, let error, let refusal):
            metrics.lost(jobs.count)
            note(error, "Operations were refused because they couldn't be stored.")
            refuse(jobs, refusal)
        case .maintain: maintain(lane: lane, isIdle: false)
        case .end(let error): end(error)
        case .answered, .accessChanged, .exceededMemory, .failed: perform(action)
        }
    }

    /// Performs an action of a batch, for writing and reading alike.
    private func perform(_ action: BatchAction) {
        switch action {
        // Other nodes have ended a user's access.
        case .accessChanged(let changes): hub.deliver([.change(.accessChanged(changes))])
        case .exceededMemory(let job, let isUsers):
            metrics.overloaded(isUsers ? .user : .server)
            security.reached(isUsers ? .memoryOfUser : .memory, user: job.caller.user)
        case .failed(let job, let error):
            logger.error("An operation failed.", metadata: ["operation": "\(job.operation)", "error": "\(error)"])
        case .began, .committed, .answered, .refused, .lost, .maintain, .end: break
        }
    }

    private func refuse(_ jobs: [Job], _ refusal: RoostError) {
        for job in jobs { metrics.refused(job.operation, refusal) }
        publish(jobs.map { ($0, JobOutcome(result: .failure(refusal))) })
    }

    /// Maintains the database between two batches, after the commits are answered.
    private func maintain(lane: Int, isIdle: Bool) {
        do {
            guard let done = try database.maintain(lane: lane, isIdle: isIdle) else { return }
            metrics.checkpointed(done)
            if !done.isComplete, done.logFrames > Self.logFramesMax, losses.shouldLog() {
                logger.warning(
                    done.obstacle == .fullDisk
                        ? "The write-ahead log is growing because the disk is full."
                        : "The write-ahead log is growing because it is constantly being read.",
                    metadata: ["pages": "\(done.logFrames)"])
            }
        } catch {
            end(error)
        }
    }

    /// Pages of the log above which its growth is logged: 128 MB.
    private static let logFramesMax = 32_000
    /// How long a lane must be idle before it does work that can wait.
    private static let pauseBeforeIdleWork = Duration.seconds(1)

    /// Ends the process. After a failed fsync the state of the disk is unknown; files that were replaced or removed aren't those that a restart
    /// reads; and positions of an old epoch are no longer valid. Nothing that isn't on disk was acknowledged; a new process reads what is on disk.
    private func end(_ error: any Error) -> Never {
        logger.critical(
            error is AccessGate.EpochRenewed
                ? "The server is stopping. Start it again: it will use the new epoch."
                : "The database failed. The server is stopping, so that nothing is acknowledged without being stored.",
            metadata: ["error": "\(error)"])
        exit(74)
    }

    /// Logs a failure of the database, at a limited rate.
    private func note(_ error: any Error, _ what: Logger.Message) {
        let isDamage = (error as? DatabaseFailure)?.kind == .damage
        if isDamage { metrics.damaged() }
        guard losses.shouldLog() else { return }
        logger.error(
            isDamage ? "A page of the database is damaged. Restore a backup." : what, metadata: ["error": "\(error)"])
    }

    func publish(_ answered: [(job: Job, outcome: JobOutcome)]) {
        var eventCount = 0
        var stoppedTyping: [Notice] = []
        defer { metrics.made(events: eventCount) }
        for (job, outcome) in answered {
            if let due = outcome.effectDueAt { alarm?.ring(at: due) }
            for case .accessChanged(let changes) in outcome.notices { settings.access.learn(changes) }
            for case .rulesChanged in outcome.notices { Self.checkReaders(on: hub, through: lanes) }
            stoppedTyping += signals.take(outcome.notices, isElsewhere: !job.isOfSocket)
        }
        delivery.publish(stoppedTyping)
        delivery.deliver(
            answered.map { job, outcome in
                for case .event in outcome.notices { eventCount += 1 }
                return Committed(outcome, of: job)
            })
    }

    // MARK: Reading

    private func read(_ batch: [Job]) {
        let started = DispatchTime.now()
        defer { metrics.read(batch.count, since: started) }
        ReadBatch.run(batch, in: database, settings) { action in
            switch action {
            case .began(let batch): metrics.began(batch, isReading: true)
            case .answered(let job, let outcome): answer(job, outcome)
            case .lost(let jobs, let error, let refusal):
                note(error, "A read failed.")
                for job in jobs {
                    metrics.refused(job.operation, refusal)
                    answer(job, .failure(refusal))
                }
            case .end(let error): end(error)
            default: perform(action)
            }
        }
    }

    /// Runs a brief operation on an event loop, unless others are queued for the reader threads or it would have to wait.
    func readWithoutBlocking(_ job: Job) -> ReadDispatch {
        guard reads.length == 0 else { return .queued }
        let started = DispatchTime.now()
        var hasBegun = false
        guard let outcome = ReadBatch.runWithoutBlocking(job, in: database, settings, began: &hasBegun, { perform($0) }) else {
            return hasBegun ? .gaveUp : .queued
        }
        answer(job, outcome)
        metrics.read(1, since: started)
        return .ranInline
    }

    private func answer(_ job: Job, _ outcome: JobOutcome) {
        metrics.ran(job.operation, refusal: outcome.refusal)
        if !outcome.notices.isEmpty { sendNotices(outcome.notices, of: job) }
        answer(job, outcome.result)
    }

    /// Sends the notices of an operation that stored nothing. Notices of the server's own work stay on this node: every node makes them for its own
    /// sockets.
    private func sendNotices(_ notices: [Notice], of job: Job) {
        signals.take(notices)
        guard job.isForAllNodes || job.operation != OperationName.none else { return hub.send(notices) }
        let (now, taken) = signals.takeCrowded(notices)
        delivery.send(now)
        delivery.publish(taken)
    }

    func answer(_ job: Job, _ result: Result<[UInt8], RoostError>) {
        switch job.destination {
        case .socket(let socket, let call):
            let payload = result.payload(call: call)
            // Counted here until the socket has it: readers are faster than the loops.
            settings.memory?.add(payload.count)
            job.callerMemory?.add(payload.count)
            hub.reply(to: socket, payload, countedIn: settings.memory, job.callerMemory)
        case .welcome(_, let refused):
            if case .failure(let error) = result { refused(error) }
        case .waiting(let resume): resume(result)
        case .request(let resume):
            resume(result.map { HeldAnswer(bytes: $0, held: job.hold($0.count, in: settings.memory)) })
        }
    }
}
