#if Cluster
import Foundation
import RoostAPI
import RoostCore
import RoostServer
import RoostTestSupport
import Testing

@testable import RoostDatabase

extension RealClusterTests {
    /// A node that starts with a file of channel types during another node's transaction.
    @Suite struct DefinitionsLockTests {
        /// Runs the body during another node's transaction, with a function that ends it.
        private func whileAnotherWrites(
            _ body: (_ database: String, _ types: URL, _ end: @Sendable () -> Void) async throws -> Void
        )
            async throws
        {
            let postgres = try PostgreSQLServer.shared
            let url = try postgres.makeDatabase()
            let directory = TemporaryDirectory.make()
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            let file = directory.appending(path: "types.json")
            try Data(#"{"types":[{"type":"own"}]}"#.utf8).write(to: file)
            let other = try PostgreSQLDatabase(url: url, laneCount: 1, readerCount: 1)
            let (begun, ended) = (MonotonicSemaphore(), MonotonicSemaphore())
            async let isWritten = onThread {
                let write: Void? = try? other.write(lane: 0) { transaction in
                    // It stays idle for as long as the body takes.
                    try transaction.perform("SET LOCAL idle_in_transaction_session_timeout = '2min'")
                    for statement in transaction.dialect.accessLock?.shared ?? [] { try transaction.perform(statement) }
                    _ = try transaction.execute("INSERT INTO settings (name, value) VALUES ('other', '')")
                    begun.signal()
                    guard ended.wait(atMost: .seconds(90)) else { throw Missed("the end of the transaction") }
                }
                return write != nil
            }
            #expect(await onThread { begun.wait(atMost: .seconds(20)) })
            do {
                try await body(url, file) { ended.signal() }
            } catch {
                ended.signal()
                throw error
            }
            #expect(await isWritten)
            other.close()
            postgres.giveBack(url)
        }

        /// A node's start blocks its thread, which must not be one of the few that tests share.
        private func onThread(_ body: @escaping @Sendable () -> Bool) async -> Bool {
            await withCheckedContinuation { continuation in
                Thread.detachNewThread { continuation.resume(returning: body()) }
            }
        }

        @Test(
            "R03 I9 R23 the file waits for another node's transaction, for longer than one attempt, and then the node starts")
        func waits() async throws {
            let postgres = try PostgreSQLServer.shared
            try await whileAnotherWrites { database, types, end in
                let starting = Task {
                    try await TestServer {
                        $0.database = database
                        $0.channelTypes = types
                        $0.lockTimeout = .seconds(60)
                    }
                }
                var attempts: Set<String> = []
                try await eventually("a second attempt") {
                    attempts.formUnion(
                        try postgres.run(
                            sql: [
                                """
                                SELECT virtualtransaction FROM pg_locks
                                WHERE locktype = 'advisory' AND objid = \(AdvisoryLock.access) AND mode = 'ExclusiveLock' AND NOT granted
                                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                                """
                            ], in: database))
                    return attempts.count > 1
                }
                #expect(try postgres.run(sql: ["SELECT type FROM channel_types WHERE type = 'own'"], in: database) == [])
                end()
                let server = try await starting.value
                let ann = try await server.socket("ann")
                #expect(try await ann.call(ListChannelTypes()).contains { $0.type == "own" })
                await ann.close()
                try await server.stop()
            }
        }

        @Test(
            "R03 a node whose file can't be stored within --lock-timeout doesn't start, and names the file and the setting")
        func givesUp() async throws {
            try await whileAnotherWrites { database, types, end in
                let failure = await #expect(throws: DatabaseFailure.self) {
                    _ = try await TestServer {
                        $0.database = database
                        $0.channelTypes = types
                        $0.lockTimeout = .seconds(1)
                    }
                }
                end()
                #expect(failure?.kind == .locked)
                #expect(failure?.message.hasPrefix("The channel types of \(types.path) couldn't be stored") == true)
                #expect(failure?.message.contains("--lock-timeout") == true)
            }
        }
    }
}
#endif
