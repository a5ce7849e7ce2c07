#if Cluster
import Foundation
import RoostCore
import RoostDatabase
import RoostTestSupport
import Synchronization
import Testing

/// Broken connections and a killed server: everything acknowledged is there, and all recovers by itself.
@Suite("PostgreSQLDatabase: outages")
struct PostgreSQLOutageTests {
    @Test("I1 a connection that breaks within a transaction is reported, and the next transaction has a new one")
    func brokenConnection() throws {
        let server = try PostgreSQLServer.shared
        let url = try server.makeDatabase()
        let database = try PostgreSQLDatabase(url: url)
        var runs = 0
        let failure = #expect(throws: DatabaseFailure.self) {
            try database.write(lane: 0) { transaction in
                runs += 1
                try add("lost", in: transaction)
                let backend = try transaction.first("SELECT pg_backend_pid()") { $0.int() } ?? 0
                try server.run(sql: ["SELECT pg_terminate_backend(\(backend), 10000)"])
                // Ignoring this failure changes nothing: the transaction can't be committed.
                _ = try? add("lost too", in: transaction)
            }
        }
        #expect(failure?.kind == .transaction)
        #expect(runs == 1)
        try database.write(lane: 0) { try add("stored", in: $0) }
        #expect(try names(in: database) == ["stored"])
    }

    @Test("I1 connections that end while idle are re-established unnoticed")
    func idleConnections() throws {
        let server = try PostgreSQLServer.shared
        let url = try server.makeDatabase()
        let database = try PostgreSQLDatabase(url: url, readerCount: 1)
        for name in ["a", "b"] {
            try database.write(lane: 0) { try add(name, in: $0) }
            _ = try names(in: database)
            try server.run(
                sql: [
                    """
                    SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
                    WHERE datname = current_database() AND pid <> pg_backend_pid()
                    """
                ], in: url)
        }
        #expect(try names(in: database) == ["a", "b"])
        try database.ping()
    }

    @Test(
        "I3 a node that stalls within a transaction loses it, and its locks are free for the others, even if it has sent a part of a batch",
        arguments: [0, 200])
    func stillNode(sentCount: Int) throws {
        let server = try PostgreSQLServer.shared
        let url = try server.makeDatabase()
        let database = try PostgreSQLDatabase(url: url)
        let other = try PostgreSQLDatabase(url: url)
        try other.write(lane: 0) { try add("row", in: $0) }
        let failure = #expect(throws: DatabaseFailure.self) {
            try database.write(lane: 0) { transaction in
                // Sooner than after the session's 15 seconds, and in no other transaction: a busy machine makes any of them wait.
                try transaction.perform("SET LOCAL idle_in_transaction_session_timeout = '50ms'")
                let backend = try transaction.first("SELECT pg_backend_pid() FROM settings FOR UPDATE") { $0.int() } ?? 0
                // Their answers aren't awaited.
                for number in 0..<sentCount {
                    let value = String(repeating: "x", count: 100)
                    try transaction.perform("INSERT INTO settings (name, value) VALUES (\("\(number)"), \(value))")
                }
                try waitUntil { try server.run(sql: ["SELECT pid FROM pg_stat_activity WHERE pid = \(backend)"]).isEmpty }
                _ = try other.write(lane: 0) { try $0.execute("UPDATE settings SET value = 'changed'") }
                try add("lost", in: transaction)
            }
        }
        #expect(failure?.kind == .transaction)
        #expect(try names(in: other) == ["row"])
        try database.write(lane: 0) { try add("stored", in: $0) }
    }

    @Test("I1 a server killed during writes has everything acknowledged; calls fail without it, and succeed once it is back")
    func killedServer() async throws {
        let server = try PostgreSQLServer()
        let database = try PostgreSQLDatabase(url: try server.makeDatabase())
        let acknowledged = Mutex<Set<String>>([])
        for round in 0..<3 {
            let enough = DispatchSemaphore(value: 0)
            @Sendable func write(_ lane: Int) -> DatabaseFailure? {
                // A lane that fails too early isn't awaited: the comparison below shows it.
                var hasSignalled = false
                defer { if !hasSignalled { enough.signal() } }
                for number in 0... {
                    let batch = (0..<8).map { "\(round)-\(lane)-\(number)-\($0)" }
                    do {
                        try database.write(lane: lane) { transaction in
                            for name in batch { try transaction.attempt { try add(name, in: transaction) } }
                        }
                        acknowledged.withLock { $0.formUnion(batch) }
                        if number == 20 {
                            enough.signal()
                            hasSignalled = true
                        }
                    } catch { return error as? DatabaseFailure }
                }
                return nil
            }
            async let failures = onThreads(database.laneCount) { write($0) }
            for _ in 0..<database.laneCount { await onThread { enough.wait() } }
            try server.killNow()
            // The lanes end only with the failure.
            #expect(await failures.map { $0?.kind } == Array(repeating: .transaction, count: database.laneCount))
            #expect(throws: DatabaseFailure.self) { try database.ping() }
            #expect(throws: DatabaseFailure.self) { try database.write(lane: 0) { try add("refused", in: $0) } }
            try server.startAgain()
            try database.ping()
            let stored = Set(try names(in: database))
            #expect(acknowledged.withLock { $0.subtracting(stored) } == [])
            #expect(!stored.contains("refused"))
        }
        try server.stop()
    }

    @Test("I1 a stopped server is noticed, and used again once it is back")
    func restartedServer() throws {
        let server = try PostgreSQLServer()
        let database = try PostgreSQLDatabase(url: try server.makeDatabase())
        try database.write(lane: 0) { try add("before", in: $0) }
        try server.stop()
        let failure = #expect(throws: DatabaseFailure.self) { try database.write(lane: 0) { try add("between", in: $0) } }
        #expect(failure?.kind == .transaction)
        try server.startAgain()
        try database.write(lane: 0) { try add("after", in: $0) }
        #expect(try names(in: database) == ["after", "before"])
        try server.stop()
    }

    @Test("I1 a commit whose wait for a synchronous standby is cancelled isn't acknowledged, although it is stored here")
    func cancelledWait() async throws {
        let server = try PostgreSQLServer()
        let database = try PostgreSQLDatabase(url: try server.makeDatabase())
        try server.run(sql: ["ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()"])
        let tried = Mutex<Set<String>>([])
        let isWaiting = Mutex(false)
        @Sendable func write() -> DatabaseFailure? {
            // The server applies the setting a moment later. Until then commits don't wait.
            for number in 0... {
                let name = "row \(number)"
                tried.withLock { _ = $0.insert(name) }
                do {
                    try database.write(lane: 0) { try add(name, in: $0) }
                } catch { return error as? DatabaseFailure }
                if isWaiting.withLock({ $0 }) { return nil }
            }
            return nil
        }
        async let failure = onThread { write() }
        let waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        try waitUntil { try !server.run(sql: ["SELECT pid \(waiting)"]).isEmpty }
        isWaiting.withLock { $0 = true }
        #expect(try server.run(sql: ["SELECT pg_cancel_backend(pid) \(waiting)"]) == ["t"])
        #expect(await failure?.kind == .transaction)
        #expect(try Set(names(in: database)) == tried.withLock { $0 })
        // The connection is as good as before.
        try server.run(sql: ["ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()"])
        try database.write(lane: 0) { try add("stored", in: $0) }
        #expect(try names(in: database).contains("stored"))
        try server.stop()
    }

    private func add(_ name: String, in transaction: any Transaction) throws {
        try transaction.execute("INSERT INTO settings (name, value) VALUES (\(name), '')")
    }

    private func names(in database: PostgreSQLDatabase) throws -> [String] {
        try database.read { try $0.rows("SELECT name FROM settings ORDER BY name") { $0.string() } }
    }
}

extension PostgreSQLDatabase {
    /// Asks the server for an answer, and throws if there is none.
    fileprivate func ping() throws { try read { _ = try $0.execute("SELECT 1") } }
}
#endif
