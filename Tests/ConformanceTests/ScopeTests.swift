import Foundation
import Logging
import RoostAPI
import RoostCore
import RoostTestSupport
import Synchronization
import Testing

@testable import RoostServer

/// A running server, and a rule that advances a stream outside its scope.
@Suite struct ScopeTests {
    @Test(
        "a stream outside an operation's scope is an internal failure, logged and counted; the rest of its batch and the server continue"
    )
    func batch() async throws {
        let lines = Mutex<[String]>([])
        let logger = Logger(label: "test", factory: { _ in LogLines { line in lines.withLock { $0.append(line) } } })
        ProcessCounts.begin()
        let server = try await TestServer(logger: logger)
        try await ScopeBatch.run(on: server)
        // An operation outside the table is counted as `other`.
        #expect(try ProcessCounts.page().failures(of: "other") ?? 0 >= 20)
        let logged = lines.withLock { $0 }.filter { $0.contains("operation=\(Misplaced.name)") }
        #expect(logged.count >= 20)
        #expect(logged.filter { !$0.contains("error=The operation moves channel:general, which its scope doesn't name.") } == [])
        try await server.stop()
    }

    @Test(
        "an effect that advances a stream outside its scope fails like any other, eventually for good; one inside it succeeds")
    func effect() async throws {
        let probe = EffectProbe()
        var settings = probe.settings
        let names = ["inside", "outside"].map { EffectKind.Name(rawValue: "test.moves.\($0)") }
        settings.kinds += names.map { name in
            EffectKind(name, attemptsMax: 1, scope: { name == names[0] ? .user(UserID($0.key)) : .user("somebody") }) {
                effect, _, context in
                _ = try context.advanceStream(of: UserID(effect.key))
            }
        }
        let server = try await TestServer { [settings] in $0.effects = settings }
        _ = try await server.request("GET", "/v1/me", token: try await server.token("ann"))
        let before = try await Self.seq(of: "ann", server)
        try await server.perform { context in
            for name in names { try context.schedule(name, key: "ann", at: context.now) }
        }
        try await Polling.value {
            try MetricsText(try await server.request("GET", "/metrics").body).value("roost_effects_dead")
        } until: {
            $0 == 1
        }
        try await Polling.value {
            try await Self.seq(of: "ann", server)
        } until: {
            $0 == before + 1
        }
        try await server.stop()
    }

    private static func seq(of user: UserID, _ server: TestServer) async throws -> Seq {
        let found = Mutex<Seq>(0)
        try await server.perform { context in
            let seq = try context.transaction.heads(of: [.user(user)])[.user(user)] ?? 0
            found.withLock { $0 = seq }
        }
        return found.withLock { $0 }
    }
}
