#if Cluster
import Foundation
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

@testable import RoostDatabase

extension RealClusterTests {
    /// Another open transaction holds a row or a lock that Roost needs: an administrator's, or that of a stalled node.
    @Suite struct ClusterLockTests {
        private static let held: ChannelID = "held"
        private static let free: ChannelID = "free"

        /// Holds a lock until it is released, or until long after a test has failed.
        private static let hold = "pg_sleep(60)"

        /// Ends the transaction that holds a lock. It is a fault if that has already ended.
        private static func letGo(_ database: String) throws {
            let ended = try PostgreSQLServer.shared.run(
                sql: [
                    """
                    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE query LIKE '%\(hold)' AND state = 'active' AND pid <> pg_backend_pid() AND datname = current_database()
                    """
                ], in: database)
            #expect(ended == ["t"])
        }

        /// One lane, which both channels share. The body releases the lock.
        ///
        /// - Parameter row: The locked row.
        private func withLock(
            patience: Duration, on row: String = "channel_heads WHERE channel_id = 'held'",
            _ body: (RawSocket, _ letGo: () throws -> Void) async throws -> Void
        ) async throws {
            let postgres = try PostgreSQLServer.shared
            let database = try postgres.makeDatabase()
            let server = try await TestServer {
                $0.database = database
                $0.laneCount = 1
                $0.lockTimeout = patience
            }
            let ann = try await server.socket("ann")
            for channel in [Self.held, Self.free] { try await ann.call(CreateChannel(channel: channel, type: .messaging)) }
            let lock = Task.detached {
                // It fails, for it is ended by others.
                _ = try? postgres.run(
                    sql: ["BEGIN", "SELECT 1 FROM \(row) FOR UPDATE", "SELECT \(Self.hold)"], in: database)
            }
            try await eventually("the row is held") {
                try postgres.run(sql: ["SELECT 1 FROM \(row) FOR UPDATE SKIP LOCKED"], in: database).isEmpty
            }
            try await body(ann) { try Self.letGo(database) }
            await lock.value
            await ann.close()
            try await server.stop()
            postgres.giveBack(database)
        }

        @Test(
            "I23 a change of access that waits for another transaction holds up no channel, and is made once that has ended"
        )
        func accessWaits() async throws {
            let postgres = try PostgreSQLServer.shared
            let database = try postgres.makeDatabase()
            let server = try await TestServer {
                $0.database = database
                $0.laneCount = 1
                $0.lockTimeout = .seconds(30)
            }
            let ann = try await server.socket("ann")
            // On one socket each, so they wait at the same time.
            let (root, other) = (try await server.socket("root", role: .admin), try await server.socket("other", role: .admin))
            for user: UserID in ["bob", "cat"] { try await root.call(UpsertUser(user: user)) }
            let channels = (0..<24).map { ChannelID("c\($0)") }
            for channel in channels { try await ann.call(CreateChannel(channel: channel, type: .messaging)) }
            // Like a transaction of another, stalled node.
            let lock = Task.detached {
                // It fails, for it is ended by others.
                _ = try? postgres.run(
                    sql: [
                        "BEGIN",
                        "SELECT pg_advisory_xact_lock_shared(\(AdvisoryLock.kind), \(AdvisoryLock.access)), \(Self.hold)",
                    ], in: database)
            }
            try await eventually("the lock is held") {
                try !postgres.run(
                    sql: [
                        """
                        SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = \(AdvisoryLock.access) AND mode = 'ShareLock'
                        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                        """
                    ], in: database
                ).isEmpty
            }
            async let deactivated = root.call(DeactivateUser(user: "bob"))
            async let revoked = other.call(RevokeUserTokens(user: "cat"))
            var slowest = Duration.zero
            for number in 0..<3 {
                let round = ContinuousClock.now
                var sends: Set<Int64> = []
                for channel in channels {
                    sends.insert(try await ann.post(SendMessage(channel: channel, clientId: ClientID("\(number)"), text: "hi")))
                }
                #expect(try await ann.answers(to: sends).replies.compactMap(\.error) == [])
                // Like the changes of access, it moves no stream.
                try await ann.call(QueryAndWatchChannels(query: QueryChannels(limit: 10)))
                slowest = max(slowest, ContinuousClock.now - round)
            }
            // A change gives up after a second. Formerly each channel in turn was taken for the locked one, for half a second each.
            #expect(slowest < .seconds(6))
            try Self.letGo(database)
            #expect(try await deactivated.deactivatedAt != nil)
            #expect(try await revoked.userId == "cat")
            await lock.value
            for socket in [ann, root, other] { await socket.close() }
            try await server.stop()
            postgres.giveBack(database)
        }

        /// Starts a node in its own process, without a terminal, while another one seems to bring the tables up to date. The body gets the node once
        /// it waits, and releases the lock.
        private func whileAnotherMigrates(_ body: (RunningCommand, _ letGo: () throws -> Void) async throws -> Void) async throws {
            let postgres = try PostgreSQLServer.shared
            let database = try postgres.makeDatabase()
            let lock = Task.detached {
                // It fails, for it is ended by others.
                _ = try? postgres.run(
                    sql: [
                        "BEGIN", "SELECT pg_advisory_xact_lock(\(AdvisoryLock.kind), \(AdvisoryLock.migration)), \(Self.hold)",
                    ], in: database)
            }
            func isThere(granted: Bool) throws -> Bool {
                try !postgres.run(
                    sql: [
                        """
                        SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = \(AdvisoryLock.migration) AND granted = \(granted)
                        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                        """
                    ], in: database
                ).isEmpty
            }
            try await eventually("the lock is held") { try isThere(granted: true) }
            let directory = TemporaryDirectory.make()
            let node = try RunningCommand(
                "serve --port 0 --drain-window 0.2 --data \(directory.path) --database \(database)")
            try await eventually("the node waits for the lock") { try isThere(granted: false) }
            try await body(node) { try Self.letGo(database) }
            await lock.value
        }

        @Test("a node that waits for another one's migration says that SIGHUP has no effect, and starts once that has ended")
        func hangUp() async throws {
            try await whileAnotherMigrates { node, letGo in
                node.signal(SIGHUP)
                try await node.wait(forError: "SIGHUP has no effect")
                try letGo()
                try await node.wait(forOutput: "Next, in another terminal")
                node.signal(SIGTERM)
                #expect(try await node.end().status == 0)
            }
        }

        @Test("a node that waits for another one's migration handles SIGTERM itself, as process 1 of a container has to, and ends")
        func endBeforeStart() async throws {
            try await whileAnotherMigrates { node, letGo in
                node.signal(SIGTERM)
                let run = try await node.end()
                // The status of a process that the signal had killed would be SIGTERM.
                #expect(run.status == 0, "\(run.errors)")
                #expect(run.errors.contains("before the server had started"), "\(run.errors)")
                try letGo()
            }
        }

        enum RuleChange: CaseIterable { case putType, deleteType, putRole, deleteRole }

        @Test(
            "I9 R23 a change of types or roles waits for another node's transactions, which may have used the old ones",
            arguments: RuleChange.allCases)
        func rulesWait(change: RuleChange) async throws {
            let postgres = try PostgreSQLServer.shared
            let database = try postgres.makeDatabase()
            let server = try await TestServer { $0.database = database }
            let root = try await server.socket("root", role: .admin)
            try await root.call(PutChannelType(type: "old"))
            try await root.call(PutRole(role: "old", rank: 1, permissions: [.historyRead]))
            // It commits once the change waits for it.
            let writing = Task.detached {
                try postgres.run(
                    sql: [
                        "BEGIN", "SELECT pg_advisory_xact_lock_shared(\(AdvisoryLock.kind), \(AdvisoryLock.access))",
                        RealClusterTests.waitForWaiter, "COMMIT",
                    ], in: database)
            }
            func isWriting() throws -> Bool {
                try !postgres.run(
                    sql: [
                        """
                        SELECT 1 FROM pg_stat_activity WHERE query LIKE 'DO %pg_sleep%' AND state = 'active' AND pid <> pg_backend_pid()
                        AND datname = current_database()
                        """
                    ], in: database
                ).isEmpty
            }
            try await eventually("the other node writes") { try isWriting() }
            switch change {
            case .putType: try await root.call(PutChannelType(type: "new"))
            case .deleteType: try await root.call(DeleteChannelType(type: "old"))
            case .putRole: try await root.call(PutRole(role: "new", rank: 1, permissions: []))
            case .deleteRole: try await root.call(DeleteRole(role: "old"))
            }
            #expect(try !isWriting())
            _ = try await writing.value
            await root.close()
            try await server.stop()
            postgres.giveBack(database)
        }

        @Test(
            "I23 a lock on one channel's row holds up only that channel, others for a second at most, and its order is kept")
        func holdsOneChannel() async throws {
            try await withLock(patience: .seconds(30)) { ann, letGo in
                var waiting: [Int64] = []
                var times: [Duration] = []
                for number in 0..<12 {
                    waiting.append(
                        try await ann.post(SendMessage(channel: Self.held, clientId: ClientID("\(number)"), text: "hi")))
                    let started = ContinuousClock.now
                    let send = try await ann.post(SendMessage(channel: Self.free, clientId: ClientID("\(number)"), text: "hi"))
                    let answers = try await ann.answers(to: [send])
                    #expect(answers.replies.map(\.call) == [send])
                    times.append(ContinuousClock.now - started)
                }
                // All of that while the row was locked. A lane waits for it for half a second: some didn't wait at all, and none much longer.
                try letGo()
                times.sort()
                #expect(times[2] < .milliseconds(500) && times[11] < .seconds(5), "\(times)")
                #expect(try await ann.answers(to: Set(waiting)).faults(of: "ann", waiting) == [])
                let stored = try await ann.call(ListMessages(channel: Self.held, after: 0, limit: 100)).messages
                #expect(stored.map(\.clientId.rawValue) == (0..<12).map { "\($0)" })
            }
        }

        @Test("I23 a lock on the row of one member holds up only their channel, however many channels they write to at once")
        func holdsOneMember() async throws {
            try await withLock(patience: .seconds(30), on: "members WHERE channel_id = 'held' AND user_id = 'ann'") { ann, letGo in
                let channels = (0..<40).map { ChannelID("c\($0)") }
                for channel in channels { try await ann.call(CreateChannel(channel: channel, type: .messaging)) }
                let started = ContinuousClock.now
                var sends: Set<Int64> = []
                var waiting: Int64?
                for (index, channel) in channels.enumerated() {
                    sends.insert(try await ann.post(SendMessage(channel: channel, clientId: "1", text: "hi")))
                    // After some that are in progress, so many share a transaction with it.
                    if index == 3 { waiting = try await ann.post(SendMessage(channel: Self.held, clientId: "1", text: "hi")) }
                }
                #expect(try await ann.answers(to: sends).replies.compactMap(\.error) == [])
                // All of that while the row was locked. Formerly each later call in turn was taken for the one that needs it, for half a second each.
                #expect(ContinuousClock.now - started < .seconds(5))
                try letGo()
                let last = try #require(waiting)
                #expect(try await ann.answers(to: [last]).replies.compactMap(\.error) == [])
                let stored = try await ann.call(ListMessages(channel: Self.held, after: 0, limit: 100)).messages
                #expect(stored.map(\.clientId) == ["1"])
            }
        }

        @Test(
            "I23 a call that waits for a lock longer than --lock-timeout is refused, and later ones in its order are refused too or stored"
        )
        func givesUp() async throws {
            try await withLock(patience: .seconds(1)) { ann, letGo in
                let send = try await ann.post(SendMessage(channel: Self.held, clientId: "1", text: "hi"))
                let refused = try await ann.answers(to: [send]).replies
                #expect(refused.map(\.error?.code) == [.unavailable])
                try await ann.send(Self.free, "2")
                // All of that while the row was locked.
                try letGo()
            }
        }
    }
}
#endif
