import Foundation
import GRDB
import Logging

/// Takes over outboxes that were set aside because a newer version had written them, once a version knows them again: their content was reported as kept.
extension Outbox {
    /// Inserts the rows of such files before those of this one, which are later, and removes the files. The rows keep their ids, by which the server knows what
    /// it has carried out. A file that can't be read stays, and blocks nothing. Must be called while no other chat of this process opens the file.
    static func takeOver(_ file: DatabaseFile, into queue: DatabaseQueue) {
        // Most recent first: the others are inserted before it.
        for newer in file.newerFiles() {
            do {
                guard let former = try file.openNewer(newer) else { continue }
                let saved = try former.read { (try Row.fetchAll($0, sql: selection), try String.fetchOne($0, sql: servers)) }
                try former.close()
                try queue.write { try insert(saved.0, of: saved.1, into: $0) }
                // If the process ends before this, the next start inserts the rows again, with the same ids.
                try DatabaseFile.remove(newer)
                file.logger.notice(
                    "An outbox that was set aside is taken over.",
                    metadata: ["file": "\(newer.path)", "operations": "\(saved.0.count)"])
            } catch {
                file.logger.error(
                    "An outbox that was set aside can't be taken over.",
                    metadata: ["file": "\(newer.path)", "error": "\(error)"])
            }
        }
    }

    /// The number of operations that the next log-out would delete, including those set aside for a newer version.
    ///
    /// - Parameter removed: Operations that are done but still in the file. They don't count.
    func unsentCount(except removed: Set<Int64>) async throws -> Int {
        let file = file
        let setAside = try await Blocking.perform { file.newerFiles().reduce(0) { $0 + Self.count($1, of: file) } }
        let ids = "[" + removed.map { String($0) }.joined(separator: ",") + "]"
        let sql = "SELECT COUNT(*) FROM operations WHERE id NOT IN (SELECT value FROM json_each(?))"
        return try await read { try Int.fetchOne($0, sql: sql, arguments: [ids]) ?? 0 } + setAside
    }

    private static func count(_ newer: URL, of file: DatabaseFile) -> Int {
        do {
            let former = try file.openForReading(newer)
            let count = try former.read { try Int.fetchOne($0, sql: "SELECT COUNT(*) FROM operations") ?? 0 }
            try former.close()
            return count
        } catch let error as DatabaseError where DatabaseFile.meansDamage(error) {
            // No version can send its content.
            return 0
        } catch {
            // The version that wrote it may find something, wherever it stores that.
            return 1
        }
    }

    private static let servers = "SELECT server FROM outbox_state"
    private static let selection = "SELECT \(columns) FROM operations ORDER BY number, id"

    private static func insert(_ rows: [Row], of server: String?, into database: Database) throws {
        let last: Int64 = rows.last?["number"] ?? 0
        // Both files count from the beginning.
        try database.execute(sql: "UPDATE operations SET number = number + ?", arguments: [max(0, last)])
        let statement = try database.makeStatement(
            sql: """
                INSERT OR IGNORE INTO operations (\(columns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """)
        for row in rows { try statement.execute(arguments: StatementArguments(row.databaseValues)) }
        try database.execute(sql: "UPDATE outbox_state SET server = COALESCE(server, ?)", arguments: [server])
    }
}
