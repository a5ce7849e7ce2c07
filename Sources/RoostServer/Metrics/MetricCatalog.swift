/// Every metric that a server shows at `/metrics`. `docs/operations/monitoring.md` has the same list, and a test compares the two.
///
/// Add a metric here before counting it: that gives it its help text and unit, and puts it on the page from the start.
enum MetricCatalog {
    static let all: [MetricDescription] = process + connections + operations + storage + delivery + cluster

    static let byName: [String: MetricDescription] = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })

    /// From a tenth of a millisecond to ten seconds.
    static let secondsBuckets: [Double] = [
        0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
    ]

    private static let process: [MetricDescription] = [
        .gauge(
            "roost_build_info", "1, with the version of this server as a label.",
            labels: .init(name: "version", values: [RoostVersion.current])),
        .gauge("roost_ready", "1 while /readyz answers 200, else 0."),
        .gauge("process_start_time_seconds", "When the process started, in Unix seconds."),
        .counter("process_cpu_seconds_total", "CPU time, in user and system mode."),
        .gauge("process_resident_memory_bytes", "Memory that the process holds in RAM (RSS)."),
        .gauge("process_open_fds", "Files and connections that the process has open."),
        .gauge("process_max_fds", "Files and connections that the process may have open."),
    ]

    private static let connections: [MetricDescription] = [
        .gauge(
            "roost_connections", "Open connections: HTTP, sockets before their authentication, and authenticated sockets.",
            labels: .values("state", "http", "unauthenticated", "authenticated")),
        .gauge("roost_connections_max", "The setting connections-max: how many connections may be open."),
        .counter("roost_connections_accepted_total", "Connections that were accepted."),
        .counter(
            "roost_connections_refused_total",
            "Connections above a limit, on which only health checks are answered: in total, of one address, of one user, or of memory.",
            labels: .values("reason", "total", "address", "user", "memory")),
        .counter("roost_accept_failures_total", "Connections that couldn't be accepted: too many open files, or out of memory."),
        .gauge("roost_held_bytes", "Bytes held for clients: calls, and answers and events that they haven't read yet."),
        .gauge("roost_memory_budget_bytes", "The setting memory-budget: how much may be held for clients."),
        .gauge("roost_held_bytes_max", "How much may be held for clients now: less than the budget near the setting memory-limit."),
        .counter(
            "roost_overloaded_total", "Refusals because a budget was used up or a queue was full.",
            labels: .values("budget", "socket", "user", "server", "queue")),
        .gauge("roost_sockets", "Open WebSockets, authenticated or not."),
        .counter(
            "roost_socket_closes_total",
            """
            WebSockets that ended, by the code with which the server or the client closed them: one of RFC 6455 or of Roost's own. \
            Any other is `other`; without one it is `none`.
            """,
            labels: .closeCode),
        .counter(
            "roost_authentications_total", "Tokens that were checked: of sockets once, of HTTP with every request.",
            labels: .transport, .result),
    ]

    private static let operations: [MetricDescription] = [
        .counter("roost_operations_total", "Operations that ran, including refused ones.", labels: .operation),
        .counter(
            "roost_refusals_total",
            "Operations that were refused, and requests and frames that named none (`none`), by the code that the client got.",
            labels: .operation, .code),
        .gauge("roost_queue_length", "Operations queued for a thread.", labels: .queue),
        .counter(
            "roost_effects_total",
            "Runs of scheduled effects: done, failed and to be retried, or failed permanently (dead).",
            labels: .effectKind, .values("result", "done", "failed", "dead")),
        .gauge("roost_effects_dead", "Effects that failed permanently. They aren't retried."),
        .gauge(
            "roost_effects_late_seconds",
            "How long the oldest effect that is due has been waiting; if effects can't be read, for how long already."
        ),
        .gauge(
            "roost_effects_unknown_kinds",
            "Kinds of effects in the database that this version doesn't know. They stay queued for a version that does."),
        .histogram(
            "roost_queue_wait_seconds", "How long the oldest operation of a batch waited in its queue.",
            buckets: secondsBuckets, labels: .queue),
    ]

    private static let storage: [MetricDescription] = [
        .counter("roost_write_operations_total", "Operations in committed batches, including refused ones."),
        .counter("roost_write_batches_total", "Committed transactions."),
        .counter("roost_write_operations_lost_total", "Operations that were refused because the database failed."),
        .histogram(
            "roost_write_batch_seconds", "How long a batch took, from the beginning of its transaction until it was on disk.",
            buckets: secondsBuckets),
        .histogram(
            "roost_write_batch_size", "Operations in one committed batch.", buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]),
        .counter("roost_read_operations_total", "Operations that only read, and were answered."),
        .histogram(
            "roost_read_batch_seconds", "How long the reads of one snapshot took.", buckets: secondsBuckets),
        .counter("roost_checkpoints_total", "Checkpoints: the write-ahead log was written into roost.sqlite."),
        .counter(
            "roost_checkpoints_incomplete_total",
            "Checkpoints that couldn't write all of the log, because it was being read or the disk was full."),
        .histogram(
            "roost_checkpoint_seconds", "How long the end of a checkpoint took. Writes wait meanwhile.", buckets: secondsBuckets),
        .counter(
            "roost_database_damage_total",
            "Operations that needed a damaged page, and failed: also backups, and reads of due effects and of missed events. Restore a backup."
        ),
        .gauge("roost_database_bytes", "The size of the file roost.sqlite."),
        .gauge(
            "roost_database_log_bytes",
            "The size of the write-ahead log, roost.sqlite-wal. It grows to 64 MB and by what is written while that is copied; more than 128 MB for minutes means that checkpoints don't complete."
        ),
    ]

    private static let delivery: [MetricDescription] = [
        .counter("roost_events_total", "Events produced by this server's operations."),
        .counter("roost_deliveries_total", "Events passed to sockets: one for each event and receiver."),
        .counter("roost_sent_bytes_total", "Bytes of events and replies passed to sockets."),
        .counter(
            "roost_socket_writes_total",
            "Calls of send(2) and sendmsg(2) that wrote to sockets: output close together in time is sent at once. Output that a slow client leaves queued isn't counted."
        ),
    ]

    private static let cluster: [MetricDescription] = [
        .gauge("roost_cluster_nodes", "Nodes that this one hears from, itself included."),
        .gauge("roost_cluster_bus_connected", "1 while the bus can be reached, and without a bus; else 0."),
        .gauge("roost_cluster_streams", "Channels and users that this node follows for its sockets."),
        .counter("roost_cluster_packets_published_total", "Packets published on the bus: one for each stream and batch."),
        .counter(
            "roost_cluster_events_delivered_total", "Events put into the order of a stream here, from this node and others."),
        .counter("roost_cluster_events_dropped_total", "Duplicate events, dropped because they had been delivered already."),
        .counter("roost_cluster_gaps_fetched_total", "How often missing events were read from the database."),
        .counter("roost_cluster_catch_ups_total", "Receivers that were brought up to date with a stream."),
    ]
}
