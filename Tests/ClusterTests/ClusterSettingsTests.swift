#if Cluster
import Foundation
import Logging
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

@testable import RoostServer

extension RealClusterTests {
    /// Things that must be alike on all nodes: keys, settings and the time.
    @Suite struct ClusterSettingsTests {
        private static let ring = "token-keys.json"

        /// A data directory with another one's secret.
        private static func directory(besides other: URL) throws -> URL {
            let directory = TemporaryDirectory.make()
            try FileManager.default.createDirectory(
                at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            try FileManager.default.copyItem(
                at: other.appending(path: "token-secret"), to: directory.appending(path: "token-secret"))
            return directory
        }

        /// Copies the key ring of one directory to another, as an operator does: entirely or not at all.
        private static func copyRing(from one: URL, to other: URL) throws {
            let part = other.appending(path: "part")
            try FileManager.default.copyItem(at: one.appending(path: ring), to: part)
            guard rename(part.path, other.appending(path: ring).path) == 0 else { throw Missed("a file that can be moved") }
        }

        private static func wait(_ server: TestServer, for statuses: [Int], of tokens: [String]) async throws {
            try await eventually("the tokens are \(statuses)") { try await Self.statuses(server, tokens) == statuses }
        }

        private static func statuses(_ server: TestServer, _ tokens: [String]) async throws -> [Int] {
            var statuses: [Int] = []
            for token in tokens { statuses.append(try await server.request("GET", "/v1/me", token: token).status) }
            return statuses
        }

        private static func token(of directory: URL) async throws -> String {
            let files = TokenKeyFiles(
                secret: try SecretFile(directory: directory).read(), directory: directory, file: nil)
            let claims = TokenKeys.Claims(user: "ann", role: .user, expiresAt: Date(timeIntervalSinceNow: 600))
            return try await files.read().keys.sign(claims)
        }

        @Test(
            "the secret is rotated over two nodes: at each step both accept the clients' tokens, on sockets that stay open"
        )
        func rotation() async throws {
            try await TestCluster.run(1) { cluster in
                let one = cluster.servers[0]
                let second = try Self.directory(besides: one.directory)
                defer { try? FileManager.default.removeItem(at: second) }
                let two = try await TestCluster.node(second, cluster.database, cluster.nats)
                let old = try await Self.token(of: one.directory)
                let sockets = [
                    try await RawSocket.connect(port: one.port, token: old), try await .connect(port: two.port, token: old),
                ]

                let rings = [TokenKeyRing(directory: one.directory), TokenKeyRing(directory: second)]
                let kid = try await rings[0].add(named: nil)
                // Neither signs with it yet: until both have it, both accept existing tokens.
                #expect(try await Self.token(of: one.directory).split(separator: ".")[0] == old.split(separator: ".")[0])
                try Self.copyRing(from: one.directory, to: second)
                for ring in rings { try await ring.use(kid) }
                let new = try await Self.token(of: second)
                for server in [one, two] { try await Self.wait(server, for: [200, 200], of: [old, new]) }
                #expect(try await Self.token(of: one.directory).split(separator: ".")[0] == new.split(separator: ".")[0])

                for ring in rings { try await ring.remove(TokenKeyRing.tokenSecretName) }
                for server in [one, two] { try await Self.wait(server, for: [401, 200], of: [old, new]) }
                for socket in sockets {
                    try await socket.call(GetMe())
                    await socket.close()
                }
                try await two.stop()
                // The second node can restart with its own files.
                let again = try await TestCluster.node(second, cluster.database, cluster.nats)
                #expect(try await Self.statuses(again, [old, new]) == [401, 200])
                try await again.stop()
            }
        }

        @Test(
            "a node with a different key under a known name doesn't start; a running one keeps its keys, also if they vanish"
        )
        func conflicts() async throws {
            try await TestCluster.run(1) { cluster in
                let one = cluster.servers[0]
                let second = try Self.directory(besides: one.directory)
                defer { try? FileManager.default.removeItem(at: second) }
                let log = LogLines()
                let two = try await TestServer(directory: second, logger: Logger(label: "test") { _ in log.handler }) {
                    $0.database = cluster.database
                }
                let ring = TokenKeyRing(directory: one.directory)
                _ = try await ring.add(named: "k")
                try await ring.use("k")
                let good = try await Self.token(of: one.directory)
                try await Self.wait(one, for: [200], of: [good])

                _ = try await TokenKeyRing(directory: second).add(named: "k")
                try await TokenKeyRing(directory: second).use("k")
                let foreign = try await Self.token(of: second)
                try await log.line(containing: "a different key named k")
                #expect(try await Self.statuses(two, [foreign, good]) == [401, 401])
                try await two.stop()
                let refusal = await #expect(throws: RoostError.self) {
                    _ = try await TestCluster.node(second, cluster.database, cluster.nats)
                }
                #expect(refusal?.message.contains("a different key named k") == true)
                try FileManager.default.removeItem(at: second.appending(path: Self.ring))
                try Self.copyRing(from: one.directory, to: second)
                let mended = try await TestServer(directory: second, logger: Logger(label: "test") { _ in log.handler }) {
                    $0.database = cluster.database
                }
                #expect(try await Self.statuses(mended, [foreign, good]) == [401, 200])

                // A retired secret doesn't become valid again because the file that says so is gone.
                let old = try await TokenKeys(secret: SecretFile(directory: second).read()).sign(
                    .init(user: "ann", role: .user, expiresAt: Date(timeIntervalSinceNow: 600)))
                try await TokenKeyRing(directory: second).remove(TokenKeyRing.tokenSecretName)
                try await Self.wait(mended, for: [401, 200], of: [old, good])
                try FileManager.default.removeItem(at: second.appending(path: Self.ring))
                try await log.line(containing: "no longer exists")
                #expect(try await Self.statuses(mended, [old, good]) == [401, 200])
                // Nor because another file, made without it, has taken its place.
                _ = try await TokenKeyRing(directory: second).add(named: "other")
                try await log.line(containing: "doesn't say so")
                #expect(try await Self.statuses(mended, [old, good]) == [401, 200])
                try await mended.stop()
            }
        }

        @Test(
            "I3 a node with other settings than the previous one says which differ, and one with the same says nothing"
        )
        func settings() async throws {
            let url = try PostgreSQLServer.shared.makeDatabase()
            defer { try? PostgreSQLServer.shared.giveBack(url) }
            let database = try PostgreSQLDatabase(url: url)
            let keys = await TokenKeys(secret: Data(repeating: 1, count: 32))
            var set = TokenKeySet()
            set.isTokenSecretRetired = true
            let others = TokenKeys(secret: Data(repeating: 1, count: 32), own: set, others: TokenKeySet())
            var configuration = RoostServer.Configuration(dataDirectory: TemporaryDirectory.make())
            configuration.database = url
            func lines(_ change: (inout RoostServer.Configuration) -> Void, _ keys: TokenKeys) throws -> [String] {
                let log = LogLines()
                var configuration = configuration
                change(&configuration)
                try StartChecks(configuration, database, Logger(label: "test") { _ in log.handler }).run(tokenKeys: keys)
                return log.all
            }
            #expect(try lines({ _ in }, keys) == [])
            #expect(try lines({ _ in }, keys) == [])
            let changes: [(String, (inout RoostServer.Configuration) -> Void)] = [
                ("channels-per-user is 7 here", { $0.options.channelsPerUser = 7 }),
                ("history-for-new-members is false here", { $0.options.showsHistoryToNewMembers = false }),
                ("token-lifetime-max is 60 here", { $0.options.tokenLifetimeSecondsMax = 60 }),
                ("confusable-names is refused here", { $0.options.confusableNames = .refused }),
                ("mention-all is false here", { $0.options.isMentionAllEnabled = false }),
                ("mentions-per-message is 7 here", { $0.options.mentionsPerMessage = 7 }),
                ("mention-notify-cap is 7 here", { $0.options.mentionNotifyCap = 7 }),
                ("undeletion is 60 here", { $0.options.undeletionSeconds = 60 }),
                ("message-versions is 60 here", { $0.options.versionSeconds = 60 }),
                ("push-level is mentionsOnly here", { $0.options.pushLevel = .mentionsOnly }),
                ("token-issuer is us here", { $0.tokenIssuer = "us" }),
                ("token-audience is app here", { $0.tokenAudience = "app" }),
                ("bus-prefix is other here", { $0.busPrefix = "other" }),
                ("bus is there is one here", { $0.bus = "nats://127.0.0.1" }),
            ]
            for (words, change) in changes {
                let found = try lines(change, keys)
                #expect(found.count == 1 && found.allSatisfy { $0.contains(words) }, "\(words): \(found)")
                // Changing back is a change too.
                #expect(try lines({ _ in }, keys).count == 1)
            }
            let found = try lines({ _ in }, others)
            #expect(found.count == 1 && found.allSatisfy { $0.contains("has token-secret.") && $0.contains("copy the files") })
        }

        @Test("I3 a node with an impossible clock doesn't start, and one whose clock differs from PostgreSQL's says by how much")
        func clocks() async throws {
            let url = try PostgreSQLServer.shared.makeDatabase()
            defer { try? PostgreSQLServer.shared.giveBack(url) }
            let database = try PostgreSQLDatabase(url: url)
            let keys = await TokenKeys(secret: Data(repeating: 1, count: 32))
            var configuration = RoostServer.Configuration(dataDirectory: TemporaryDirectory.make())
            configuration.database = url
            func lines(at machine: Timestamp, _ database: any Database = database) throws -> [String] {
                let log = LogLines()
                try StartChecks(configuration, database, Logger(label: "test") { _ in log.handler }, machineNow: machine).run(
                    tokenKeys: keys)
                return log.all
            }
            try database.readClock()
            let now = database.now()
            #expect(try lines(at: now) == [])
            #expect(try lines(at: now.after(seconds: 20)) == [])
            #expect(try lines(at: now.after(seconds: 7200)).count { $0.contains("s too early") } == 1)
            #expect(try lines(at: Timestamp(milliseconds: now.milliseconds - 7_200_000)).count { $0.contains("s too late") } == 1)
            for milliseconds in [0, IDGenerator.times.lowerBound.milliseconds - 1, IDGenerator.times.upperBound.milliseconds + 1] {
                let time = Timestamp(milliseconds: milliseconds)
                #expect(throws: RoostServer.Unsupported.self) { try lines(at: time) }
                // PostgreSQL's clock, which gives messages their times.
                #expect(throws: RoostServer.Unsupported.self) { try lines(at: now, OtherClock(database: database, time: time)) }
            }
        }

        @Test("a node says once when its clock and PostgreSQL's move apart while it runs, and once when they agree again")
        func clocksWhileRunning() {
            let log = LogLines()
            let logger = Logger(label: "test") { _ in log.handler }
            var comparison = ClockComparison()
            func compare(apartBy seconds: Int...) {
                let start = Timestamp(milliseconds: 1_800_000_000_000)
                for seconds in seconds {
                    comparison.compare(
                        machine: start.after(seconds: 10_000), database: start.after(seconds: 10_000 - seconds), logger)
                }
            }
            compare(apartBy: 0, 1, 20, 0)
            #expect(log.all == [])
            compare(apartBy: 3600, 3601, 3590)
            #expect(log.all.count == 1 && log.all.allSatisfy { $0.contains("3600 s too early") })
            compare(apartBy: -300, -301)
            #expect(log.all.count == 2 && log.all.last?.contains("300 s too late") == true)
            compare(apartBy: 0, -1)
            #expect(log.all.count == 3 && log.all.last?.contains("agree again") == true)
        }

        /// A database whose clock a test sets.
        private struct OtherClock: Database {
            let database: PostgreSQLDatabase
            let time: Timestamp
            var laneCount: Int { database.laneCount }
            var readerCount: Int { database.readerCount }
            func write<T>(lane: Int, _ body: (any WriteTransaction) throws -> T) throws -> T {
                try database.write(lane: lane, body)
            }
            func read<T>(_ body: (any Transaction) throws -> T) throws -> T { try database.read(body) }
            func now() -> Timestamp { time }
        }
    }
}
#endif
