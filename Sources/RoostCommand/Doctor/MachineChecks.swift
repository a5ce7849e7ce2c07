import Foundation
import GRDBSQLite
import RoostAPI
import RoostServer

/// Checks of the machine: SQLite, open files, the clock.
enum MachineChecks {
    static func findings(connectionsMax: Int) -> [Finding] {
        [Finding("roost", .ok, RoostVersion.current), sqlite(), openFiles(connectionsMax), clock()]
    }

    /// SQLite up to 3.51.2 can damage a WAL that is reset while another connection checkpoints it. Roost checkpoints on one connection of
    /// one process only, which avoids that; a newer SQLite is still better.
    private static func sqlite() -> Finding {
        let version = String(cString: sqlite3_libversion())
        let number = Int(sqlite3_libversion_number())
        let isFixed = number >= 3_051_003 || (3_050_007..<3_051_000).contains(number) || (3_044_006..<3_045_000).contains(number)
        guard !isFixed else { return Finding("SQLite", .ok, version) }
        return Finding(
            "SQLite", .warn, "\(version) has the WAL-reset bug, fixed in 3.51.3",
            advice:
                "Roost avoids it: one process opens the database, and one connection checkpoints it. Don't open the database with other programs while it runs"
        )
    }

    private static func openFiles(_ connectionsMax: Int) -> Finding {
        let needed = connectionsMax + OpenFileLimit.reserve
        let (soft, hard) = OpenFileLimit.current
        guard hard >= needed else {
            return Finding(
                "open files", .warn, "at most \(hard), and connections-max is \(connectionsMax)",
                advice: "Raise the limit (ulimit -n, or LimitNOFILE in a systemd unit), or lower connections-max")
        }
        return Finding("open files", .ok, soft >= needed ? "\(soft)" : "\(soft), which the server raises to \(hard)")
    }

    /// Tokens expire by the clock, and message ids begin with it. A machine without a battery may think that it is 1970.
    static func clock(at now: Date = .now) -> Finding {
        let text = now.ISO8601Format()
        return RoostServer.times.contains(Timestamp(now))
            ? Finding("clock", .ok, text)
            : Finding(
                "clock", .fail, text, advice: "Set it, and keep it right with a time service: tokens and message ids depend on it")
    }
}
