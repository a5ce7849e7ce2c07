import Dispatch
import Foundation
import Logging
import Metrics
import RoostAPI
import RoostCore
import RoostDatabase
import Synchronization

/// Runs every operation: those that write on one thread, in batches, each batch in one durable transaction; those that only read beside it.
///
/// The way of a batch:
/// 1. What waits is taken off the queue, at most ``Configuration/batchSizeMax`` operations.
/// 2. One transaction begins; each operation runs in its place, and one that is refused leaves nothing behind.
/// 3. The transaction commits, which includes the fsync.
/// 4. Only then the hub gets what each operation tells, in their order: its events, then its reply.
///
/// While a commit waits for the disk the queue fills, so that a batch is as large as the disk is slow. A queue that is full is a refusal
/// (`overloaded`), never a wait without end.
final class Engine: Sendable {
    struct Configuration: Sendable {
        /// Operations that may wait; one more is refused.
        var queueSizeMax = 20_000
        /// Operations in one transaction.
        var batchSizeMax = 512
    }

    private let database: any Database
    private let hub: Hub
    private let logger: Logger
    private let writes: WorkQueue
    private let reads: WorkQueue
    private let stopped = DispatchGroup()
    private let metrics = EngineMetrics()

    /// Starts the threads.
    init(database: any Database, hub: Hub, readerCount: Int, configuration: Configuration = .init(), logger: Logger) throws {
        self.database = database
        self.hub = hub
        self.logger = logger
        writes = WorkQueue(sizeMax: configuration.queueSizeMax, batchSizeMax: configuration.batchSizeMax)
        reads = WorkQueue(sizeMax: configuration.queueSizeMax, batchSizeMax: 16)
        let restored = try database.read { try IDGenerator(continuing: $0) }
        start("roost-writer") { engine in
            var ids = restored
            while let batch = engine.writes.next() { engine.write(batch, &ids) }
        }
        for number in 1...max(1, readerCount) {
            start("roost-reader-\(number)") { engine in
                while let batch = engine.reads.next() { engine.read(batch) }
            }
        }
    }

    /// Queues an operation that may write. Throws `overloaded` when the queue is full, `unavailable` when the engine stops.
    func submit(write job: Job) throws(RoostError) { try writes.append(job) }

    /// Queues an operation that only reads.
    func submit(read job: Job) throws(RoostError) { try reads.append(job) }

    /// Finishes what waits, then ends the threads. Blocks.
    func stop() {
        writes.close()
        reads.close()
        stopped.wait()
    }

    private func start(_ name: String, _ body: @escaping @Sendable (Engine) -> Void) {
        stopped.enter()
        let thread = Thread { [self] in
            body(self)
            stopped.leave()
        }
        thread.name = name
        // The default of secondary threads is small for deep calls of a debug build.
        thread.stackSize = 4 << 20
        thread.start()
    }

    // MARK: Writing

    private func write(_ batch: [Job], _ ids: inout IDGenerator) {
        let started = DispatchTime.now()
        do {
            let outcomes = try database.write { transaction in
                let outcomes = try batch.map { job in
                    try outcome(of: job, ids: &ids, now: .now) { rule in try transaction.attempt { try rule(transaction) } }
                }
                try ids.save(in: transaction)
                return outcomes
            }
            metrics.committed(batch.count, since: started)
            publish(zip(batch, outcomes))
        } catch {
            logger.critical("A batch of \(batch.count) operations was lost.", metadata: ["error": "\(error)"])
            if (error as? DatabaseFailure)?.kind == .fatal {
                // Nobody knows what is on disk after a failed fsync. Nothing of this batch was acknowledged; a new process reads what is there.
                logger.critical("The disk failed. The server ends now, so that nothing is acknowledged that isn't stored.")
                exit(74)
            }
            let refusal = RoostError(
                .unavailable, "The server could not store this. Try again.", retryAfterMilliseconds: 1000)
            publish(zip(batch, batch.map { _ in Outcome(result: .failure(refusal), notices: []) }))
        }
    }

    private struct Outcome {
        let result: Result<[UInt8], RoostError>
        let notices: [Notice]
    }

    /// Runs one rule. Refusals become its answer; a failure of the engine is thrown on, since it concerns the whole batch.
    private func outcome(
        of job: Job, ids: inout IDGenerator, now: Timestamp,
        _ attempt: (_ rule: (any Transaction) throws -> [UInt8]) throws -> [UInt8]
    ) throws -> Outcome {
        var notices: [Notice] = []
        do {
            let payload = try attempt { transaction in
                var context = Context(transaction: transaction, caller: job.caller, now: now, ids: ids, presence: hub.presence)
                defer { ids = context.ids }
                let payload = try job.run(&context)
                notices = context.notices
                return payload
            }
            return Outcome(result: .success(payload), notices: notices)
        } catch let refusal as RoostError {
            return Outcome(result: .failure(refusal), notices: [])
        } catch let failure as DatabaseFailure where failure.kind != .statement {
            throw failure
        } catch {
            logger.error("An operation failed.", metadata: ["error": "\(error)"])
            return Outcome(result: .failure(.internalFailure), notices: [])
        }
    }

    private func publish(_ answered: some Sequence<(Job, Outcome)>) {
        var output: [Hub.Output] = []
        var waiting: [(@Sendable (Result<[UInt8], RoostError>) -> Void, Result<[UInt8], RoostError>)] = []
        for (job, outcome) in answered {
            output += outcome.notices.map(Hub.Output.notice)
            switch job.destination {
            case .socket(let address, let call): output.append(.reply(address, outcome.result.payload(call: call)))
            case .waiting(let resume): waiting.append((resume, outcome.result))
            }
        }
        hub.publish(output)
        for (resume, result) in waiting { resume(result) }
    }

    // MARK: Reading

    /// Reads what waits on one snapshot, and answers each as it is read.
    private func read(_ batch: [Job]) {
        var answered = 0
        do {
            try database.read { transaction in
                var ids = IDGenerator()
                for job in batch {
                    let outcome = try outcome(of: job, ids: &ids, now: .now) { rule in try rule(transaction) }
                    answered += 1
                    answer(job, outcome.result)
                }
            }
        } catch {
            logger.error("A read failed.", metadata: ["error": "\(error)"])
            for job in batch.dropFirst(answered) { answer(job, .failure(.internalFailure)) }
        }
    }

    private func answer(_ job: Job, _ result: Result<[UInt8], RoostError>) {
        switch job.destination {
        case .socket(let address, let call): hub.reply(to: address, result.payload(call: call))
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

/// What waits for one kind of thread: bounded, taken off in batches.
private final class WorkQueue: Sendable {
    private struct State {
        var jobs: [Job] = []
        var isClosed = false
    }
    private let state = Mutex(State())
    private let available = DispatchSemaphore(value: 0)
    private let sizeMax: Int
    private let batchSizeMax: Int

    init(sizeMax: Int, batchSizeMax: Int) {
        self.sizeMax = sizeMax
        self.batchSizeMax = batchSizeMax
    }

    func append(_ job: Job) throws(RoostError) {
        let refusal: RoostError? = state.withLock { state in
            if state.isClosed { return RoostError(.unavailable, "The server stops.", retryAfterMilliseconds: 1000) }
            if state.jobs.count >= sizeMax {
                return RoostError(.overloaded, "The server has as much to do as it can hold.", retryAfterMilliseconds: 500)
            }
            // Whoever takes a batch leaves word when there is more, so only the first needs to wake somebody.
            if state.jobs.isEmpty { available.signal() }
            state.jobs.append(job)
            return nil
        }
        if let refusal { throw refusal }
    }

    /// Waits for work. Nil when the queue is closed and empty.
    func next() -> [Job]? {
        while true {
            available.wait()
            let batch: [Job]? = state.withLock { state in
                if state.jobs.isEmpty { return state.isClosed ? nil : [] }
                let batch = Array(state.jobs.prefix(batchSizeMax))
                state.jobs.removeFirst(batch.count)
                if !state.jobs.isEmpty { available.signal() }
                return batch
            }
            guard let batch else { return nil }
            if !batch.isEmpty { return batch }
        }
    }

    func close() {
        state.withLock { $0.isClosed = true }
        // One for every thread that may wait.
        for _ in 0..<64 { available.signal() }
    }
}

private struct EngineMetrics: Sendable {
    private let operations = Counter(label: "roost_write_operations_total")
    private let batches = Counter(label: "roost_write_batches_total")
    private let duration = Metrics.Timer(label: "roost_write_batch_seconds")

    func committed(_ count: Int, since start: DispatchTime) {
        operations.increment(by: Int64(count))
        batches.increment()
        duration.recordInterval(since: start)
    }
}
