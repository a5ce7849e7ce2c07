import Foundation
import GRDBSQLite

/// Compares two databases that no server has open, row by row: with SQLite alone, without the rules that wrote them.
final class DatabaseComparison {
    private var connection: OpaquePointer?

    /// - Parameters: The data directories of the original and of the restored server.
    init(_ original: URL, _ restored: URL) throws {
        let path = original.appending(path: "roost.sqlite").path
        guard sqlite3_open_v2(path, &connection, SQLITE_OPEN_READONLY, nil) == SQLITE_OK else { throw failure() }
        _ = try numbers("ATTACH ? AS restored", [restored.appending(path: "roost.sqlite").path])
    }

    deinit { sqlite3_close(connection) }

    /// Counts every row of every table, looked up on both sides.
    func differences() throws -> (rows: Int, different: Int) {
        var (rows, different) = (0, 0)
        for table in Set(try tables(of: "main")).union(try tables(of: "restored")).sorted() {
            let name = Self.quoted(table)
            // A restored database belongs to another server: it has its own epoch.
            let kept = table == "settings" ? "WHERE name <> 'epoch'" : ""
            rows += try number("SELECT COUNT(*) FROM main.\(name)")
            for (left, right) in [("main", "restored"), ("restored", "main")] {
                different += try number(
                    "SELECT COUNT(*) FROM (SELECT * FROM \(left).\(name) \(kept) EXCEPT SELECT * FROM \(right).\(name) \(kept))")
            }
        }
        return (rows, different)
    }

    /// Compares the messages of a copy made during sends: each must be as in the original, none missing below a channel's newest, and at least
    /// `least` of them there.
    func missingMessages(least: Int) throws -> Int {
        let different = try number("SELECT COUNT(*) FROM (SELECT * FROM restored.messages EXCEPT SELECT * FROM main.messages)")
        let count = try number("SELECT COUNT(*) FROM restored.messages")
        let expected = try number(
            """
            SELECT COUNT(*) FROM main.messages JOIN
            (SELECT channel_id AS channel, MAX(seq) AS newest FROM restored.messages GROUP BY channel_id)
            ON channel_id = channel AND seq <= newest
            """)
        return different + max(0, expected - count) + max(0, least - count)
    }

    private func tables(of schema: String) throws -> [String] {
        try texts("SELECT name FROM \(schema).sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    }

    /// A table's name can't be bound.
    private static func quoted(_ name: String) -> String { "\"\(name.replacing("\"", with: "\"\""))\"" }

    private func number(_ sql: String) throws -> Int {
        guard let number = try numbers(sql).first else { throw failure() }
        return number
    }

    private func numbers(_ sql: String, _ values: [String] = []) throws -> [Int] {
        var found: [Int] = []
        try each(sql, values) { found.append(Int(sqlite3_column_int64($0, 0))) }
        return found
    }

    private func texts(_ sql: String) throws -> [String] {
        var found: [String] = []
        try each(sql, []) { statement in
            if let text = sqlite3_column_text(statement, 0) { found.append(String(cString: text)) }
        }
        return found
    }

    private func each(_ sql: String, _ values: [String], _ body: (OpaquePointer?) -> Void) throws {
        var statement: OpaquePointer?
        guard sqlite3_prepare_v2(connection, sql, -1, &statement, nil) == SQLITE_OK else { throw failure() }
        defer { sqlite3_finalize(statement) }
        for (index, value) in values.enumerated() {
            // SQLite makes its own copy (SQLITE_TRANSIENT).
            sqlite3_bind_text(statement, Int32(index + 1), value, -1, unsafeBitCast(-1, to: sqlite3_destructor_type.self))
        }
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW: body(statement)
            case SQLITE_DONE: return
            default: throw failure()
            }
        }
    }

    private func failure() -> BenchFailure { BenchFailure("SQLite: \(String(cString: sqlite3_errmsg(connection)))") }
}
