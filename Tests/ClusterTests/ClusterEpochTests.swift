#if Cluster
import Foundation
import Logging
import Roost
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

extension RealClusterTests {
    /// A PostgreSQL database that lost commits, as after a restore, and the clients that have them.
    @Suite struct ClusterEpochTests {
        @MainActor private func wait(_ what: String, until isSo: @MainActor () -> Bool) async throws {
            let end = ContinuousClock.now + .seconds(30)
            while !isSo() {
                guard ContinuousClock.now < end else { throw Missed(what) }
                try await Task.sleep(for: .milliseconds(5))
            }
        }

        @Test("I20 after lost commits a new epoch makes clients drop what the database lacks; while a node runs it is refused")
        @MainActor func renewed() async throws {
            let postgres = try PostgreSQLServer.shared
            let database = try postgres.makeDatabase()
            let name = try #require(database.split(separator: "/").last)
            let copy = database.dropLast(name.count) + "\(name)_restored"
            let directory = TemporaryDirectory.make()
            let port = try LoopbackPort.free()
            var server = try await TestServer(directory: directory) { [database] in ($0.database, $0.port) = (database, port) }
            func renew(_ url: String) async throws -> CommandRun {
                try await CommandRun.roost(arguments: ["epoch", "renew", "--database", url])
            }

            var configuration = Chat.Configuration(storage: .directory(TemporaryDirectory.make()))
            configuration.backoff = .milliseconds(10)...(.milliseconds(100))
            let token = try await server.token("ann")
            let ann = Chat(url: server.url, user: "ann", configuration: configuration) { token }
            try await ann.connect()
            let general = try await ann.createChannel("general")
            for number in 1...5 { try await general.sendConfirmed(MessageDraft(text: "kept \(number)")) }

            let refused = try await renew(database)
            #expect(refused.status == 1)
            #expect(refused.errors.contains("Stop all nodes first"))
            try await server.stop()
            // The state that a backup of this moment would hold.
            try postgres.run(sql: ["CREATE DATABASE \(name)_restored TEMPLATE \(name)"])

            server = try await TestServer(directory: directory) { [database] in ($0.database, $0.port) = (database, port) }
            for number in 1...20 { try await general.sendConfirmed(MessageDraft(text: "gone \(number)")) }
            let list = general.messages()
            try await wait("25 messages") { list.items.count == 25 }
            try await server.stop()

            let done = try await renew(String(copy))
            #expect(done.status == 0)
            #expect(done.output.hasSuffix("Start the nodes.\n"))
            server = try await TestServer(directory: directory) { [copy] in ($0.database, $0.port) = (String(copy), port) }
            let kept = (1...5).map { "kept \($0)" }
            try await wait("the 5 that are left") { list.items.map(\.text) == kept }
            try await general.sendConfirmed(MessageDraft(text: "after"))
            try await wait("6 messages") { list.items.map(\.text) == kept + ["after"] }
            await ann.disconnect()
            try await server.stop()
            try postgres.run(sql: ["DROP DATABASE \(name)_restored"])
            postgres.giveBack(database)
        }

        @Test(
            "I20 a node warns, when it has reconnected and at its start, if the database's timeline has changed, until the epoch is renewed"
        )
        func timeline() async throws {
            let postgres = try PostgreSQLServer.shared
            let database = try postgres.makeDatabase()
            func stored() throws -> [String] {
                try postgres.run(sql: ["SELECT value FROM settings WHERE name = 'timeline'"], in: database)
            }
            let warning = "and was another/1: a standby has taken over"
            let directory = TemporaryDirectory.make()
            let way = try await NodeWays(database, postgres, nil)
            let log = LogLines()
            let first = try await TestServer(directory: directory, logger: Logger(label: "test") { _ in log.handler }) {
                $0.database = way.database
            }
            let current = try stored()
            #expect(current.count == 1 && current.allSatisfy { $0.contains(#/^[0-9]+\/1$/#) }, "\(current)")
            #expect(!log.all.contains { $0.contains("timeline") })

            // As if another server had taken over while the node had no connection.
            way.databaseProxy.setMode(.refuse)
            way.databaseProxy.cutAll()
            try await log.line(containing: "The database can't be reached.")
            try postgres.run(sql: ["UPDATE settings SET value = 'another/1' WHERE name = 'timeline'"], in: database)
            way.databaseProxy.setMode(.pass)
            try await log.line(containing: warning)
            try await first.stop()
            await way.stop()

            let again = LogLines()
            let second = try await TestServer(directory: directory, logger: Logger(label: "test") { _ in again.handler }) {
                $0.database = database
            }
            #expect(again.all.contains { $0.contains(warning) && $0.contains("roost epoch renew") })
            try await second.stop()
            #expect(try stored() == ["another/1"])
            let renewed = try await CommandRun.roost(arguments: ["epoch", "renew", "--database", database])
            #expect(renewed.status == 0, "\(renewed.errors)")
            #expect(try stored() == current)
            postgres.giveBack(database)
        }

        @Test("I20 a database on which no server has started gets no epoch, and isn't changed")
        func refused() async throws {
            let postgres = try PostgreSQLServer.shared
            let empty = try postgres.makeEmptyDatabase()
            let run = try await CommandRun.roost(arguments: ["epoch", "renew", "--database", empty])
            #expect(run.status == 1 && run.errors.contains("no server has started on it"))
            #expect(try postgres.run(sql: ["SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"], in: empty) == ["0"])
        }

        @Test("I20 a start with accepted data loss says that this is for SQLite, and what renews the epoch of PostgreSQL")
        func accepting() async throws {
            let postgres = try PostgreSQLServer.shared
            let database = try postgres.makeDatabase()
            let log = LogLines()
            let server = try await TestServer(logger: Logger(label: "test") { _ in log.handler }) {
                ($0.database, $0.acceptsDataLoss) = (database, true)
            }
            try await log.line(containing: "--accept-data-loss is for SQLite")
            try await server.stop()
            postgres.giveBack(database)
        }

        @Test("I20 a node not noticed by the change of the epoch ends with status 74 within seconds, without a call")
        func missed() async throws {
            let postgres = try PostgreSQLServer.shared
            let database = try postgres.makeDatabase()
            let node = try await ServerProcess.start(
                directory: TemporaryDirectory.make(), arguments: ["--database", database, "--drain-window", "0"])
            // As if its connections had been gone when the command checked for them.
            try postgres.run(sql: ["UPDATE settings SET value = 'another' WHERE name = 'epoch'"], in: database)
            #expect(await node.end(within: .seconds(30)) == 74)
            try await node.killNow()
            postgres.giveBack(database)
        }
    }
}
#endif
