import Foundation
import RoostAPI
import RoostCore
import RoostServer
import RoostTestSupport
import Synchronization
import Testing

/// Effects in a running server: when they are due, after a restart, and when they fail.
@Suite struct EffectRunTests {
    /// The effects of both kinds that have ended.
    private static func ended(_ server: TestServer) async throws -> (inside: Set<String>, outside: Set<String>) {
        let found = Mutex<(Set<String>, Set<String>)>(([], []))
        try await server.perform { context in
            let inside = try EffectProbe.ended(EffectProbe.inside, in: context.transaction)
            let outside = try EffectProbe.ended(EffectProbe.outside, in: context.transaction)
            found.withLock { $0 = (inside, outside) }
        }
        return found.withLock { $0 }
    }

    private static func metric(_ name: String, _ server: TestServer) async throws -> Double? {
        try MetricsText(try await server.request("GET", "/metrics").body).value("roost_effects_\(name)")
    }

    @Test("effects run when they are due, once each, even if more are due than run at one time")
    func due() async throws {
        let probe = EffectProbe()
        let server = try await TestServer { $0.effects = probe.settings }
        let keys = Set((0..<200).map { "\($0)" })
        try await server.perform { context in
            for key in keys {
                let at = Timestamp(milliseconds: context.now.milliseconds + 100)
                try context.schedule(EffectProbe.inside, key: key, at: at)
                try context.schedule(EffectProbe.outside, key: key, at: at)
            }
            try context.schedule(EffectProbe.inside, key: "far", at: Timestamp(milliseconds: context.now.milliseconds + 3_600_000))
        }
        try await Polling.value {
            try await Self.ended(server)
        } until: {
            $0.inside == keys && $0.outside == keys
        }
        #expect(probe.performedCounts.count == 200 && probe.performedCounts.values.allSatisfy { $0 == 1 })
        #expect(try await Self.metric("dead", server) == 0)
        try await server.stop()
    }

    @Test("a kind whose external work hangs leaves room for the others")
    func roomBesideWhatHangs() async throws {
        let probe = EffectProbe()
        let keys = (0..<40).map { "hangs \($0)" }
        for key in keys { probe.hang(key) }
        let server = try await TestServer { $0.effects = probe.settings }
        try await server.perform { context in
            for key in keys { try context.schedule(EffectProbe.outside, key: key, at: context.now) }
        }
        let most = probe.settings.performedMax
        try await Polling.value {
            probe.performedCounts.count
        } until: {
            $0 == most
        }
        try await server.perform { context in
            for number in 0..<100 { try context.schedule(EffectProbe.inside, key: "\(number)", at: context.now) }
        }
        try await Polling.value {
            try await Self.ended(server).inside.count
        } until: {
            $0 == 100
        }
        #expect(probe.performedCounts.count == most && most < probe.settings.inFlightMax)
        try await server.stop()
    }

    @Test("an effect runs before the 1,000 of another kind that became due after it")
    func roomBesideMany() async throws {
        let endedBefore = Mutex<Int?>(nil)
        // After the other kind by its name.
        let last = EffectKind.Name(rawValue: "test.z")
        var settings = EffectProbe().settings
        settings.kinds.append(
            EffectKind(last) { _, _, context in
                let count = try EffectProbe.ended(EffectProbe.inside, in: context.transaction).count
                endedBefore.withLock { $0 = count }
            })
        let server = try await TestServer { [settings] in $0.effects = settings }
        try await server.perform { context in
            for number in 0..<1000 { try context.schedule(EffectProbe.inside, key: "\(number)", at: context.now) }
            try context.schedule(last, key: "", at: Timestamp(milliseconds: context.now.milliseconds - 1000))
        }
        try await Polling.value {
            endedBefore.withLock { $0 }
        } until: {
            $0 != nil
        }
        // The other kind has at most the remaining places.
        #expect(endedBefore.withLock { $0 ?? .max } < settings.inFlightMax)
        try await server.stop()
    }

    @Test("effects requested before a stop run after the start, and those in progress run again")
    func restart() async throws {
        let directory = TemporaryDirectory.make()
        let probe = EffectProbe()
        probe.hang("under way")
        var settings = probe.settings
        settings.performingTime = .seconds(1)
        let first = try await TestServer(directory: directory) { [settings] in $0.effects = settings }
        try await first.perform { context in
            try context.schedule(EffectProbe.outside, key: "under way", at: context.now)
            try context.schedule(EffectProbe.outside, key: "later", at: Timestamp(milliseconds: context.now.milliseconds + 60_000))
        }
        try await Polling.value {
            probe.performedCounts["under way"]
        } until: {
            $0 == 1
        }
        try await first.stop()
        let second = try await TestServer(directory: directory) { [settings] in $0.effects = settings }
        // Simulates that a minute has passed.
        try await second.perform { context in
            try context.transaction.execute("UPDATE effects SET due_at = due_at - 60000 WHERE effect_key = 'later'")
        }
        try await Polling.value {
            try await Self.ended(second)
        } until: {
            $0.outside == ["under way", "later"]
        }
        #expect(probe.performedCounts == ["under way": 2, "later": 1])
        try await second.stop()
        try? FileManager.default.removeItem(at: directory)
    }

    /// The files of a running server as a kill would leave them. The state comes first: it is a lower bound of the others.
    private static func copy(of server: TestServer) throws -> URL {
        let copy = TemporaryDirectory.make()
        try FileManager.default.createDirectory(at: copy, withIntermediateDirectories: true)
        for name in ["roost.state", "roost.sqlite", "roost.sqlite-wal", "token-secret"] {
            try FileManager.default.copyItem(at: server.directory.appending(path: name), to: copy.appending(path: name))
        }
        return copy
    }

    @Test("effects requested before a kill run after the next start, and those in progress run again")
    func kill() async throws {
        let killed = EffectProbe()
        killed.hang("under way")
        var settings = killed.settings
        settings.performingTime = .seconds(20)
        let first = try await TestServer { [settings] in $0.effects = settings }
        try await first.perform { context in
            try context.schedule(EffectProbe.outside, key: "under way", at: context.now)
            try context.schedule(EffectProbe.outside, key: "later", at: Timestamp(milliseconds: context.now.milliseconds + 60_000))
        }
        try await Polling.value {
            killed.performedCounts["under way"]
        } until: {
            $0 == 1
        }
        let directory = try Self.copy(of: first)
        try await first.stop()

        let probe = EffectProbe()
        settings.performers = probe.settings.performers
        let second = try await TestServer(directory: directory) { [settings] in $0.effects = settings }
        // Simulates that a minute has passed, so leases of effects in progress have expired too.
        try await second.perform { context in
            try context.transaction.execute(
                "UPDATE effects SET due_at = due_at - 60000 WHERE kind = \(EffectProbe.outside.rawValue)")
        }
        try await Polling.value {
            try await Self.ended(second)
        } until: {
            $0.outside == ["under way", "later"]
        }
        #expect(probe.performedCounts == ["under way": 1, "later": 1])
        try await second.stop()
        for used in [first.directory, directory] { try? FileManager.default.removeItem(at: used) }
    }

    @Test("an effect that fails is retried, one that fails too often is dead: /metrics shows it, and others continue")
    func failing() async throws {
        let probe = EffectProbe()
        probe.fail("once", times: 1)
        probe.fail("always", times: 100)
        let server = try await TestServer { $0.effects = probe.settings }
        try await server.perform { context in
            try context.schedule(EffectProbe.outside, key: "once", at: context.now)
            try context.schedule(EffectProbe.outside, key: "always", at: context.now)
            // Its row exists already, so it fails in the database.
            try context.transaction.execute(
                "INSERT INTO settings (name, value) VALUES ('done.test.inside.taken', 'before')")
            try context.schedule(EffectProbe.inside, key: "taken", at: context.now)
            // A refusal by its rule is its own failure, even one that would make callers retry.
            try context.schedule(EffectProbe.inside, key: "refused", at: context.now)
            try context.schedule(EffectProbe.inside, key: "good", at: context.now)
            try context.schedule(.init(rawValue: "newer.kind"), key: "kept", at: context.now)
        }
        try await Polling.value {
            try await Self.metric("dead", server)
        } until: {
            $0 == 3
        }
        try await Polling.value {
            try await Self.ended(server)
        } until: {
            $0.outside == ["once"] && $0.inside == ["good", "taken"]
        }
        #expect(probe.performedCounts == ["once": 2, "always": 2])
        #expect(try await Self.metric("unknown_kinds", server) == 1)
        try await Polling.value {
            try await Self.metric("late_seconds", server)
        } until: {
            $0 == 0
        }
        try await server.stop()
    }

    @Test("roost effects lists dead effects, and those it retries run immediately")
    func retrying() async throws {
        let probe = EffectProbe()
        for key in ["one", "two", "three"] { probe.fail(key, times: 2) }
        let server = try await TestServer { $0.effects = probe.settings }
        try await server.perform { context in
            for key in ["one", "two", "three"] {
                try context.schedule(EffectProbe.outside, key: key, payload: "secret", at: context.now)
            }
        }
        try await Polling.value {
            try await Self.metric("dead", server)
        } until: {
            $0 == 3
        }
        let token = try await server.token("root", role: .service)
        func roost(_ words: String) async throws -> CommandRun { try await .roost("effects \(words)", on: server, token: token) }
        let list = try await roost("")
        #expect(
            Set(list.lines.map { $0.split(separator: " ").prefix(4).joined(separator: " ") }) == [
                "kind key attempts failure", "test.outside one 2 unavailable", "test.outside two 2 unavailable",
                "test.outside three 2 unavailable",
            ])
        #expect(!(list.output + (try await roost("--json").output)).contains("secret"))
        #expect(try await roost("retry test.outside one").status == 0)
        try await Polling.value {
            try await Self.ended(server)
        } until: {
            $0.outside == ["one"]
        }
        let gone = try await roost("retry test.outside one")
        #expect(gone.status == 1 && gone.errors.contains("not_found"))
        // An existing effect that isn't dead isn't retried either.
        try await server.perform { context in
            try context.schedule(
                EffectProbe.outside, key: "later", at: Timestamp(milliseconds: context.now.milliseconds + 3_600_000))
        }
        let alive = try await roost("retry test.outside later")
        #expect(alive.status == 1 && alive.errors.contains("There is no dead effect test.outside with the key later."))
        #expect(try await roost("retry").status == 64)
        #expect(try await roost("retry --all").lines == ["Retrying 2 effects."])
        try await Polling.value {
            try await Self.ended(server)
        } until: {
            $0.outside == ["one", "two", "three"]
        }
        try await Polling.value {
            try await Self.metric("dead", server)
        } until: {
            $0 == 0
        }
        #expect(try await roost("").output == "")
        try await server.stop()
    }

    @Test("a performer that takes too long fails, and holds up no others")
    func hanging() async throws {
        let probe = EffectProbe()
        for number in 0..<4 { probe.hang("\(number)") }
        var settings = probe.settings
        // Long enough for those that don't hang, on a busy machine too.
        settings.performingTime = .seconds(3)
        settings.inFlightMax = 4
        let server = try await TestServer { [settings] in $0.effects = settings }
        try await server.perform { context in
            for number in 0..<6 { try context.schedule(EffectProbe.outside, key: "\(number)", at: context.now) }
        }
        try await Polling.value {
            try await Self.ended(server)
        } until: {
            $0.outside.count == 6
        }
        #expect(probe.performedCounts.values.reduce(0, +) == 10)
        try await server.stop()
    }
}
