import Dispatch
import Metrics
import RoostAPI
import RoostCore
import RoostDatabase
import Synchronization

/// The counters of the engine, the sockets and HTTP. Counts per event and receiver are elsewhere: the hub's shards keep them without a lock.
final class ServerMetrics: Sendable {
    private let writes = Counter(label: "roost_write_operations_total")
    private let batches = Counter(label: "roost_write_batches_total")
    private let losses = Counter(label: "roost_write_operations_lost_total")
    private let batchTime = Metrics.Timer(label: "roost_write_batch_seconds")
    private let batchSize = Recorder(label: "roost_write_batch_size")
    private let damages = Counter(label: "roost_database_damage_total")
    private let checkpoints = Counter(label: "roost_checkpoints_total")
    private let incompleteCheckpoints = Counter(label: "roost_checkpoints_incomplete_total")
    private let checkpointTime = Metrics.Timer(label: "roost_checkpoint_seconds")
    private let reads = Counter(label: "roost_read_operations_total")
    private let readTime = Metrics.Timer(label: "roost_read_batch_seconds")
    private let writeWait = Metrics.Timer(label: "roost_queue_wait_seconds", dimensions: [("queue", "write")])
    private let readWait = Metrics.Timer(label: "roost_queue_wait_seconds", dimensions: [("queue", "read")])
    private let events = Counter(label: "roost_events_total")
    private let accepted = Counter(label: "roost_connections_accepted_total")
    private let openHTTP = Atomic<Int>(0)

    private let operations: [String: Counter]

    init() {
        let names = Operations.all.map { $0.name } + OperationName.others
        operations = Dictionary(
            uniqueKeysWithValues: names.map { ($0, Counter(label: "roost_operations_total", dimensions: [("operation", $0)])) })
    }

    // MARK: Operations

    /// Counts a run of a rule, refused or not.
    func ran(_ operation: String, refusal: RoostError? = nil) {
        operations[operation]?.increment()
        if let refusal { refused(operation, refusal) }
    }

    /// Counts an operation that was refused, by its rule or before it could run.
    func refused(_ operation: String, _ refusal: RoostError) { refused(operation, refusal.code) }

    func refused(_ operation: String, _ code: RoostError.Code) {
        Counter(label: "roost_refusals_total", dimensions: [("operation", operation), ("code", code.rawValue)]).increment()
    }

    /// Counts a batch taken off a queue.
    func began(_ batch: [Job], isReading: Bool) {
        // Users take turns, so the first isn't always the oldest.
        guard let oldest = batch.lazy.map(\.queuedAt).min() else { return }
        let wait = DispatchTime.now().uptimeNanoseconds &- oldest
        (isReading ? readWait : writeWait).recordNanoseconds(Int64(clamping: wait))
    }

    func committed(_ count: Int, since start: DispatchTime) {
        writes.increment(by: Int64(count))
        batches.increment()
        batchTime.recordInterval(since: start)
        batchSize.record(Int64(count))
    }

    /// Counts operations refused because the database failed.
    func lost(_ count: Int) { losses.increment(by: Int64(count)) }

    /// Counts an operation, a backup or a read of effects that needed a damaged page.
    func damaged() { damages.increment() }

    func checkpointed(_ done: Maintenance) {
        checkpoints.increment()
        if !done.isComplete { incompleteCheckpoints.increment() }
        checkpointTime.recordNanoseconds(Int64(clamping: done.nanoseconds))
    }

    func read(_ count: Int, since start: DispatchTime) {
        reads.increment(by: Int64(count))
        readTime.recordInterval(since: start)
    }

    func made(events count: Int) { if count > 0 { events.increment(by: Int64(count)) } }

    /// The result of an effect.
    enum EffectResult: String, CaseIterable {
        case done, failed, dead
    }

    func effect(_ kind: EffectKind.Name, _ result: EffectResult) {
        Counter(label: "roost_effects_total", dimensions: [("kind", kind.rawValue), ("result", result.rawValue)]).increment()
    }

    // MARK: Connections

    /// Connections that are HTTP, temporarily or permanently.
    var openHTTPCount: Int { openHTTP.load(ordering: .relaxed) }

    func connectionOpened() {
        accepted.increment()
        openHTTP.wrappingAdd(1, ordering: .relaxed)
    }

    /// Counts an HTTP connection that became a socket or ended.
    func connectionLeftHTTP() { openHTTP.wrappingSubtract(1, ordering: .relaxed) }

    /// - Parameter refusal: Nil for an accepted token.
    func authenticated(over transport: Transport, refusal: RoostError? = nil) {
        let result = refusal?.code.rawValue ?? "ok"
        Counter(label: "roost_authentications_total", dimensions: [("transport", transport.rawValue), ("result", result)])
            .increment()
    }

    /// Counts a connection on which only health checks are answered.
    func connectionRefused(_ reason: ConnectionCounts.Refusal) {
        Counter(label: "roost_connections_refused_total", dimensions: [("reason", reason.rawValue)]).increment()
    }

    func acceptFailed() { Counter(label: "roost_accept_failures_total").increment() }

    /// Counts a refusal because a memory budget is used up.
    func overloaded(_ budget: Budget) {
        Counter(label: "roost_overloaded_total", dimensions: [("budget", budget.rawValue)]).increment()
    }

    enum Budget: String {
        case socket, user, server, queue
    }

    enum Transport: String {
        case http, socket
    }

    /// - Parameter code: Nil if the connection ended without one. Clients choose among thousands, so only the codes of the label are distinguished.
    func socketClosed(_ code: UInt16?) {
        let value = code.map { String($0) } ?? "none"
        let label = MetricDescription.Label.closeCode.values.contains(value) ? value : MetricDescription.Label.otherValue
        Counter(label: "roost_socket_closes_total", dimensions: [("code", label)]).increment()
    }
}
