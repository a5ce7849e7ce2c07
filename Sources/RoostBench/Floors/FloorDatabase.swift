import Foundation
import GRDBSQLite
import RoostCore
import RoostDatabase

/// SQLite with the server's tables and pragmas, and no code of ours in between.
final class FloorDatabase {
    private var connection: OpaquePointer?
    /// As on a connection of the server.
    private let texts = BoundTexts()

    /// Those of the server's writer: its cache, and the size at which it writes its log into the database under load. `FloorTests` compares them.
    static let pragmas = [
        "journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", "temp_store = MEMORY", "wal_autocheckpoint = 16000",
        "cache_size = -\(SQLiteDatabase.writerCacheBytes(of: SQLiteDatabase.standardPageCacheBytes) / 1024)",
    ]

    /// - Parameter isEmpty: Whether the tables have to be made; false for a copy of a server's file.
    init(path: String, isEmpty: Bool = true) throws {
        guard sqlite3_open(path, &connection) == SQLITE_OK else { throw BenchFailure("can't open \(path)") }
        for pragma in Self.pragmas { try execute("PRAGMA \(pragma)") }
        guard isEmpty else { return }
        for step in Migrations.steps {
            for statement in step.statements(Dialect(text: "TEXT", clusteredTable: "WITHOUT ROWID", rowLock: nil)) {
                try execute(statement.text)
            }
        }
    }

    // Statements that still exist keep it open until they are released.
    deinit { sqlite3_close_v2(connection) }

    func execute(_ sql: String) throws {
        guard sqlite3_exec(connection, sql, nil, nil, nil) == SQLITE_OK else { throw failure() }
    }

    func prepare(_ sql: String) throws -> Statement {
        var statement: OpaquePointer?
        guard sqlite3_prepare_v2(connection, sql, -1, &statement, nil) == SQLITE_OK else { throw failure() }
        return Statement(pointer: statement, texts: texts)
    }

    /// Writes rows for some seconds, on this thread.
    func measure(batchSize: Int, seconds: Double, _ write: (_ row: Int) throws -> Void) throws -> FloorResult {
        var row = 0
        let start = Clock.now()
        let startCPU = Clock.threadCPU()
        let startBytes = ProcessUsage(of: getpid()).writtenBytes
        let end = start + UInt64(seconds * 1e9)
        while Clock.now() < end {
            try execute("BEGIN IMMEDIATE")
            for _ in 0..<max(1, batchSize) {
                try write(row)
                row += 1
            }
            try execute("COMMIT")
        }
        let elapsed = Double(Clock.now() - start) / 1e9
        let cpu = Double(Clock.threadCPU() - startCPU) / 1000
        let bytes = ProcessUsage(of: getpid()).writtenBytes - startBytes
        return FloorResult(
            rowsPerSecond: Double(row) / elapsed, cpuMicrosecondsPerRow: cpu / Double(row), bytesWrittenPerRow: bytes / Double(row))
    }

    private func failure() -> BenchFailure { BenchFailure("SQLite: \(String(cString: sqlite3_errmsg(connection)))") }

    enum Value {
        case integer(Int64)
        case text(String)
    }

    final class Statement {
        private let pointer: OpaquePointer?
        private let texts: BoundTexts

        fileprivate init(pointer: OpaquePointer?, texts: BoundTexts) {
            self.pointer = pointer
            self.texts = texts
        }

        deinit { sqlite3_finalize(pointer) }

        func run(_ values: [Value]) throws {
            // The next run binds all of them again.
            defer { texts.removeAll(from: 0) }
            for (index, value) in zip(Int32(1)..., values) {
                switch value {
                case .integer(let integer): sqlite3_bind_int64(pointer, index, integer)
                case .text(let text): _ = texts.bind(text, to: pointer, at: index)
                }
            }
            guard sqlite3_step(pointer) == SQLITE_DONE else {
                throw BenchFailure("SQLite: \(String(cString: sqlite3_errmsg(sqlite3_db_handle(pointer))))")
            }
            sqlite3_reset(pointer)
        }
    }
}
