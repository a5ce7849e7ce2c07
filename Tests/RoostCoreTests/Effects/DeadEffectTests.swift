import RoostAPI
import RoostDatabase
import RoostTestSupport
import Testing

@testable import RoostCore

/// An operator's tools for effects that failed permanently: listing and retrying them.
@Suite struct DeadEffectTests {
    private static let name = EffectKind.Name(rawValue: "test.dead")

    private func due(_ world: CoreWorld) throws -> [Effect] {
        try world.database.read { try $0.effectsDue(of: [Self.name], at: world.now, limit: 10).due }
    }

    @Test("dead effects are listed page by page, newest first, each with its failure's code and without its payload")
    func listing() throws {
        let world = try CoreWorld()
        var expected: [DeadEffect] = []
        for number in 1...5 {
            // Two that died at the same moment have an order, too.
            if number != 3 { world.advance(milliseconds: 1000) }
            let failure = number == 1 ? "DatabaseFailure" : "unavailable: Of secret things."
            try world.deadEffect("test.dead", key: "\(number)", failure: failure)
            expected.insert(
                DeadEffect(
                    kind: "test.dead", key: "\(number)", attempts: 12,
                    failureCode: number == 1 ? "DatabaseFailure" : "unavailable", deadAt: world.now), at: 0)
        }
        try world.inContext { try $0.schedule(Self.name, key: "waits", at: $0.now) }
        for role in [AppRole.admin, .service] {
            var list = ListDeadEffects(limit: 2)
            var found: [[DeadEffect]] = []
            repeat {
                let page = try world.perform(list, as: "root", role: role)
                found.append(page.items)
                list.cursor = page.nextCursor
            } while list.cursor != nil
            #expect(found == [Array(expected[..<2]), Array(expected[2..<4]), Array(expected[4...])])
        }
        let json = String(
            decoding: try JSONWriter.bytes(of: try world.perform(ListDeadEffects(), as: "root", role: .admin)), as: UTF8.self)
        #expect(!json.contains("secret"))
    }

    @Test("a retried dead effect is due immediately with all its attempts left; a waiting one stays as it is")
    func retrying() throws {
        let world = try CoreWorld()
        try world.deadEffect("test.dead", key: "1")
        #expect(try due(world).isEmpty)
        world.advance(milliseconds: 5000)
        try world.perform(RetryEffect(kind: "test.dead", key: "1"), as: "root", role: .admin)
        let effect = try #require(try due(world).first)
        #expect(
            [effect.attempts, Int(effect.dueAt.milliseconds)] == [0, Int(world.now.milliseconds)] && effect.payload == "secret")
        #expect(try world.perform(ListDeadEffects(), as: "root", role: .admin).items == [])
        // A runner that was still running it when it was given up can't end a newer request.
        let old = Effect(kind: Self.name, key: "1", payload: "secret", dueAt: world.now, revision: 1, attempts: 12)
        let kind = EffectKind(Self.name) { _, _, _ in }
        #expect(try !world.inContext { try $0.finish(old, as: kind) })

        try world.inContext { try $0.schedule(Self.name, key: "waits", at: $0.now) }
        try #require(
            try world.inContext { try $0.lease(effect, until: Timestamp(milliseconds: $0.now.milliseconds + 1000)) } != nil)
        let before = try world.dump()
        for key in ["1", "waits"] { try world.perform(RetryEffect(kind: "test.dead", key: key), as: "root", role: .admin) }
        #expect(try world.dump() == before)
    }

    @Test("only admins and services see and retry effects; a missing or invalid one is refused, and nothing changes")
    func refusals() throws {
        let world = try CoreWorld()
        try world.deadEffect("test.dead", key: "1")
        let before = try world.dump()
        for role in [AppRole.guest, .user, .moderator] {
            #expect(try world.code(ListDeadEffects(), as: "bob", role: role) == .notPermitted)
            #expect(try world.code(RetryEffect(kind: "test.dead", key: "1"), as: "bob", role: role) == .notPermitted)
        }
        let long = String(repeating: "k", count: 256)
        for (kind, key) in [
            ("test.dead", "2"), ("test.none", "1"), ("test.dead", ""), (String(long.prefix(64)), String(long.prefix(255))),
        ] {
            let refusal = try world.refusal(RetryEffect(kind: kind, key: key), as: "root", role: .admin)
            #expect(refusal?.code == .notFound && refusal?.field == "key")
        }
        let wrong: [(any Handled, RoostError.Code, String, Int64?)] = [
            (RetryEffect(kind: "", key: "1"), .invalidArgument, "kind", nil),
            (RetryEffect(kind: String(long.prefix(65)), key: "1"), .limitExceeded, "kind", 64),
            (RetryEffect(kind: "test.dead", key: long), .limitExceeded, "key", 255),
            (RetryEffect(kind: "test.dead", key: "a\u{0}"), .invalidArgument, "key", nil),
            (ListDeadEffects(limit: 0), .invalidArgument, "limit", nil),
            (ListDeadEffects(cursor: "x"), .invalidArgument, "cursor", nil),
        ]
        for (operation, code, field, limit) in wrong {
            let refusal = try world.refusal(operation, as: "root", role: .admin)
            #expect([refusal?.code, refusal?.field, refusal?.limit] as [AnyHashable?] == [code, field, limit])
        }
        #expect(try world.dump() == before)
    }
}
