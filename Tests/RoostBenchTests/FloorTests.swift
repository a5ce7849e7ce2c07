import Foundation
import RoostAPI
import RoostTestSupport
import Testing

@testable import RoostBench
@testable import RoostCore
@testable import RoostDatabase

/// The floors compare like with like: they run the server's own statements, with its pragmas.
@Suite struct FloorTests {
    @Test("SQLite alone has the pragmas of the server's writer, and writes its log into the database at the same size")
    func pragmas() throws {
        let source = try source("RoostDatabase/SQLiteStart.swift")
        let servers = source.matches(of: #/PRAGMA ([a-z_]+ = [A-Za-z]+)"/#).map { String($0.1) }
        #expect(servers.count >= 4)
        let cacheKibibytes = SQLiteDatabase.writerCacheBytes(of: SQLiteDatabase.standardPageCacheBytes) / 1024
        let others = ["wal_autocheckpoint = \(Checkpoints.logFrames)", "cache_size = -\(cacheKibibytes)"]
        #expect(Set(FloorDatabase.pragmas) == Set(servers + others))
    }

    @Test("SQLite alone writes the same for a send as the server, and reads the same for a page")
    func floors() throws {
        let writes = try StatementRecorder.ofSend(dialect: nil).filter { !$0.hasPrefix("SELECT") }
        #expect(FloorInserts.sql.map(StatementRecorder.withoutValues) == writes)
        #expect(FloorPages.columns.split(separator: ", ") == Message.columns.text.split(whereSeparator: { ", \n".contains($0) }))
    }

    @Test("SQLite alone writes the same for an effect as the server")
    func effects() throws {
        #expect(try StatementRecorder.ofEffect() == [StatementRecorder.withoutValues(FloorEffects.sql)])
    }

    @Test("SQLite alone has no statements of its own that write a cache, and no pragmas: it has the SDK's")
    func cache() throws {
        let source = try source("RoostBench/SDK/FloorCache.swift")
        #expect(source.matches(of: #/INSERT |UPDATE |PRAGMA [a-z]/#).map { String($0.output) } == [])
    }

    @Test("SQLite alone binds texts like the server, from the connection's memory, without copies")
    func texts() throws {
        for name in ["FloorDatabase", "FloorInserts", "FloorPages"] {
            #expect(try !source("RoostBench/Floors/\(name).swift").contains("sqlite3_bind_text"), "\(name)")
        }
        let directory = TemporaryPlace.make()
        defer { try? FileManager.default.removeItem(at: directory) }
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let floor = try FloorDatabase(path: directory.appending(path: "floor.sqlite").path)
        let insert = try floor.prepare("INSERT INTO settings (name, value) VALUES (?1, ?2)")
        // Together they exceed the memory of a connection, and one of them does alone.
        let rows = (0..<20).map { ("row \($0)", String(repeating: "\($0 % 10)", count: $0 == 10 ? 20_000 : 2000)) }
        for (name, value) in rows { try insert.run([.text(name), .text(value)]) }
        // A statement that returns a row fails.
        let missing = try floor.prepare("SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM settings WHERE name = ?1 AND value = ?2)")
        for (name, value) in rows { try missing.run([.text(name), .text(value)]) }
        #expect(throws: BenchFailure.self) { try missing.run([.text("row 1"), .text("other")]) }
    }

    private func source(_ path: String) throws -> String {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        return try String(contentsOf: root.appending(path: "Sources/\(path)"), encoding: .utf8)
    }

    #if Cluster
    @Test("pgbench runs the statements of a batch of one send")
    func peer() throws {
        let script = PeerScript(firstChannel: 1, batchSize: 1, channelsPerConnection: 1).text
        let statements = script.split(separator: "\n").filter { !$0.hasPrefix(#"\"#) }
            .map { StatementRecorder.withoutValues(String($0)) }
        #expect(statements.first == "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE" && statements.last == "COMMIT")
        #expect(try Array(statements.dropFirst().dropLast()) == StatementRecorder.ofSend(dialect: .postgreSQL))
    }
    #endif
}

/// A transaction that records its statements.
private final class StatementRecorder: Transaction {
    private let inner: any Transaction
    let dialect: Dialect
    let batchMemory: BatchMemory? = BatchMemory(readsAhead: true)
    private var statements: [String] = []

    private init(_ inner: any Transaction, _ dialect: Dialect) {
        self.inner = inner
        self.dialect = dialect
    }

    func each(_ sql: SQL, _ body: (inout RowReader) throws -> Void) throws {
        note(sql)
        try inner.each(sql, body)
    }

    func execute(_ sql: SQL) throws -> Int {
        note(sql)
        return try inner.execute(sql)
    }

    func perform(_ sql: SQL) throws {
        note(sql)
        // SQLite has no row locks.
        if !sql.text.hasSuffix("FOR UPDATE") { try inner.perform(sql) }
    }

    func perform(_ sql: SQL, _ body: @escaping (inout RowReader) -> Void) throws { try perform(sql) }

    func insert(_ row: NewRow) throws -> Bool {
        // With several writers a key is assumed to be free.
        note(NewRow.inserting([row], failing: dialect.rowLock != nil))
        return try inner.insert(row)
    }

    private func note(_ sql: SQL) { statements.append(Self.withoutValues(sql.text)) }

    /// A lane's statements for a batch of one send.
    ///
    /// - Parameter dialect: Nil for SQLite's.
    static func ofSend(dialect: Dialect?) throws -> [String] {
        let directory = TemporaryPlace.make()
        let (channel, user) = (ChannelID("channel"), UserID("ann"))
        try Seed.fill(directory) { seed in
            try seed.addUsers([user])
            try seed.forEach([channel]) { try $0.perform(CreateChannel(channel: $1), as: user) }
        }
        return try SQLiteDatabase(directory: directory).write(lane: 0) { transaction in
            let recorder = StatementRecorder(transaction, dialect ?? transaction.dialect)
            let caller = Caller(user: user)
            let send = SendMessage(channel: channel, clientId: "1", text: SampleText.message)
            let ids = IDGenerator()
            if let lock = recorder.dialect.accessLock {
                lock.shared.forEach(recorder.note)
                _ = try recorder.accessRevisionAndEpoch()
            }
            try send.scope(for: caller).lock(in: recorder)
            #if Cluster
            if dialect != nil { recorder.note(PostgreSQLClock.query) }
            #endif
            var context = Context(
                transaction: recorder, caller: caller, now: try transaction.now(), ids: ids, scope: send.scope(for: caller))
            _ = try send.handle(in: &context)
            for sql in try recorder.batchMemory?.takePendingWrites(isInside: false) ?? [] { try recorder.perform(sql) }
            return recorder.statements
        }
    }

    /// A lane's statements for an effect beside a send, on SQLite.
    static func ofEffect() throws -> [String] {
        try SQLiteDatabase(directory: TemporaryPlace.make()).write(lane: 0) { transaction in
            let recorder = StatementRecorder(transaction, transaction.dialect)
            let ids = IDGenerator()
            var context = Context(transaction: recorder, caller: Caller(user: "ann"), now: try transaction.now(), ids: ids)
            try context.schedule(EffectWorld.waiting, key: "1", payload: SampleText.effect, at: context.now)
            return recorder.statements
        }
    }

    /// A statement with a question mark for each value or parameter.
    static func withoutValues(_ statement: String) -> String {
        let text = statement.replacing("::", with: "@@")
            .replacing(#/'[^']*'/#, with: "?").replacing(#/:[a-z]\w*/#, with: "?").replacing(#/\?\d*/#, with: "?")
            .replacing(#/\bNULL\b/#, with: "?").replacing(#/\b\d+\b/#, with: "?").replacing(#/\s+/#, with: " ")
            .replacing("@@", with: "::")
        return String(text.trimmingSuffix { $0 == ";" || $0 == " " })
    }
}

extension String {
    fileprivate func trimmingSuffix(while isRemoved: (Character) -> Bool) -> Substring {
        var text = self[...]
        while let last = text.last, isRemoved(last) { text.removeLast() }
        return text
    }
}
