import Foundation
import Logging
import NIOCore
import NIOPosix
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Synchronization
import Testing

@testable import RoostServer

/// How operators learn that what no client asks for can't be read. The tests share the counts of the process.
@Suite(.serialized) struct UnreadableDatabaseTests {
    /// A database with a damaged page, while a test wants it so.
    private final class Breakable: RoostDatabase.Database {
        private let own: any RoostDatabase.Database
        private let isBroken = Atomic<Bool>(false)

        init(_ own: any RoostDatabase.Database) { self.own = own }

        func setBroken(_ isBroken: Bool) { self.isBroken.store(isBroken, ordering: .relaxed) }

        var laneCount: Int { own.laneCount }
        var readerCount: Int { own.readerCount }
        func write<T>(lane: Int, _ body: (any WriteTransaction) throws -> T) throws -> T { try own.write(lane: lane, body) }
        func read<T>(_ body: (any Transaction) throws -> T) throws -> T {
            if isBroken.load(ordering: .relaxed) { throw DatabaseFailure(message: "Page 7 is damaged.", kind: .damage) }
            return try own.read(body)
        }
    }

    private static func damageCount() throws -> Double { try ProcessCounts.page().value("roost_database_damage_total") ?? 0 }

    @Test("effects that can't be read are late, from the start on too, until they can be; a damaged page among them is counted")
    func effects() async throws {
        ProcessCounts.begin()
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let files = try TestDatabase()
        let database = try files.open()
        let breakable = Breakable(database)
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let metrics = ServerMetrics()
        let engine = try Engine(
            database: database, hub: try await Hub(group: group),
            configuration: Engine.Configuration(RoostServer.Configuration(dataDirectory: TemporaryDirectory.make())),
            metrics: metrics, logger: logger)
        var settings = EffectSettings()
        settings.pollInterval = .milliseconds(20)
        settings.retryAfter = .milliseconds(20)
        let start = ContinuousClock.now
        let passedSeconds = Atomic<Int>(0)
        let runner = EffectRunner(
            engine: engine, database: breakable, alarm: EffectAlarm(), settings: settings, metrics: metrics, logger: logger
        ) {
            start + .seconds(passedSeconds.load(ordering: .relaxed))
        }
        let before = try Self.damageCount()
        breakable.setBroken(true)
        runner.start()
        for isFirst in [true, false] {
            breakable.setBroken(true)
            // One that began before may still succeed.
            try await eventually("effects are late") {
                passedSeconds.add(2, ordering: .relaxed)
                return runner.lateMilliseconds ?? 0 >= 60_000
            }
            #expect((runner.state == nil) == isFirst)
            breakable.setBroken(false)
            try await eventually("effects are read again") { runner.lateMilliseconds == 0 && runner.state?.deadCount == 0 }
        }
        #expect(try Self.damageCount() > before)
        runner.stop()
        engine.stop()
        try await group.shutdownGracefully()
    }

    @Test("I24 a backup that meets a damaged page is counted like an operation that does")
    func backup() async throws {
        ProcessCounts.begin()
        let directory = TemporaryDirectory.make()
        let first = try await TestServer(directory: directory)
        let value = String(repeating: "x", count: 1_000_000)
        try await first.perform { context in
            try context.transaction.execute("INSERT INTO settings (name, value) VALUES ('cold', \(value))")
        }
        try await first.stop()
        let file = directory.appending(path: "roost.sqlite")
        var bytes = try Data(contentsOf: file)
        // A page that has a part of the value only, so no start needs it.
        let found = (0..<bytes.count / 4096).first { page in
            [100, 2000, 4000].allSatisfy { bytes[page * 4096 + $0] == UInt8(ascii: "x") }
        }
        let page = try #require(found)
        bytes[page * 4096 + 2000] ^= 1
        try bytes.write(to: file)

        let second = try await TestServer(directory: directory)
        let before = try Self.damageCount()
        let answer = try await ControlSocket.ask(
            .init(backup: TemporaryDirectory.make().path, withSecret: false), in: directory)
        #expect(answer.backup == nil && answer.error != nil)
        #expect(try Self.damageCount() > before)
        try await second.stop()
    }
}
