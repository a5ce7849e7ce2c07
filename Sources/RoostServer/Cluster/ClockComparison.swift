import Logging
import RoostAPI

/// Compares a machine's clock with PostgreSQL's while a node runs: a standby that takes over may have another clock, and either may be set.
struct ClockComparison {
    /// The distance that was reported last, in milliseconds. Nil before the first comparison, which isn't reported: the start has compared them too.
    private var reported: Int64?

    /// How much the distance has to change to be reported.
    private static let changeMilliseconds: Int64 = 30_000

    /// Compares the clocks, and reports the distance once for each large change of it.
    mutating func compare(machine: Timestamp, database: Timestamp, _ logger: Logger) {
        let distance = machine.milliseconds - database.milliseconds
        guard let known = reported else {
            reported = distance
            return
        }
        guard abs(distance - known) > Self.changeMilliseconds else { return }
        reported = distance
        let areApart = StartChecks.warn(ofMachineAt: machine, whileDatabaseIsAt: database, logger)
        if !areApart, abs(known) > Self.changeMilliseconds {
            logger.notice("This machine's clock and PostgreSQL's agree again.")
        }
    }
}
