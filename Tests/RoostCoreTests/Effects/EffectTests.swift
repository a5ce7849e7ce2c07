import RoostAPI
import RoostDatabase
import RoostTestSupport
import Testing

@testable import RoostCore

/// Effects as rows: scheduled with a change, leased, ended once, retried, and given up.
@Suite struct EffectTests {
    private static let name = EffectKind.Name(rawValue: "test.note")

    /// Records the effect's key and outcome in a setting.
    private static let kind = EffectKind(name, attemptsMax: 3) { effect, outcome, context in
        try context.transaction.execute("INSERT INTO settings (name, value) VALUES (\("ran." + effect.key), \(outcome))")
    }

    private func due(_ world: CoreWorld) throws -> [Effect] {
        try world.database.read { try $0.effectsDue(of: [Self.name], at: world.now, limit: 10).due }
    }

    @Test("an effect is stored with the operation that requests it, and one of the same kind and key replaces it")
    func asking() throws {
        let world = try CoreWorld()
        let later = Timestamp(milliseconds: world.now.milliseconds + 5000)
        struct Refused: Error {}
        #expect(throws: Refused.self) {
            try world.inContext { context in
                try context.schedule(Self.name, key: "a", at: context.now)
                throw Refused()
            }
        }
        #expect(try due(world).isEmpty)
        let noted = try world.inContext { context in
            try context.schedule(Self.name, key: "a", payload: "1", at: later)
            try context.schedule(Self.name, key: "b", payload: "2", at: context.now)
            try context.scheduleUnlessQueued(Self.name, key: "b", payload: "3", at: later)
            return context.effectDueAt
        }
        #expect(noted == world.now)
        #expect(try due(world).map(\.payload) == ["2"])
        #expect(try world.database.read { try $0.effectsDue(of: [Self.name], at: world.now, limit: 10).next } == later)
        try world.inContext { try $0.schedule(Self.name, key: "a", payload: "4", at: $0.now) }
        #expect(Set(try due(world).map(\.payload)) == ["2", "4"])
        #expect(throws: RoostError.self) {
            try world.inContext { try $0.schedule(Self.name, key: String(repeating: "k", count: 256), at: $0.now) }
        }
        #expect(throws: RoostError.self) {
            try world.inContext { try $0.schedule(Self.name, key: "c", payload: String(repeating: "p", count: 65_537), at: $0.now) }
        }
        #expect(try due(world).count == 2)
        // At the limits.
        let (key, payload) = (String(repeating: "k", count: 255), String(repeating: "p", count: 65_536))
        try world.inContext { try $0.schedule(Self.name, key: key, payload: payload, at: $0.now) }
        #expect(try due(world).contains { $0.key == key && $0.payload == payload })
    }

    @Test("an effect ends once; a runner that is late, or whose effect was requested again, ends nothing")
    func leasing() throws {
        let world = try CoreWorld()
        try world.inContext { try $0.schedule(Self.name, key: "a", at: $0.now) }
        let effect = try #require(try due(world).first)
        let lease = Timestamp(milliseconds: world.now.milliseconds + 1000)
        let leased = try #require(try world.inContext { try $0.lease(effect, until: lease) })
        #expect(leased.attempts == 1)
        #expect(try world.inContext { try $0.lease(effect, until: lease) } == nil)
        #expect(try due(world).isEmpty)
        // The lease expires, and another runner takes the effect.
        world.now = lease
        let free = try #require(try due(world).first)
        let again = try #require(try world.inContext { try $0.lease(free, until: lease) })
        #expect(again.attempts == 2)
        #expect(try world.inContext { try $0.finish(leased, "late", as: Self.kind) } == false)
        #expect(try world.inContext { try $0.finish(again, "done", as: Self.kind) })
        #expect(try world.inContext { try $0.finish(again, "twice", as: Self.kind) } == false)
        #expect(try world.database.read { try $0.setting("ran.a") } == "done")

        try world.inContext { try $0.schedule(Self.name, key: "b", at: $0.now) }
        let old = try #require(try due(world).first)
        try world.inContext { try $0.schedule(Self.name, key: "b", payload: "new", at: $0.now) }
        #expect(try world.inContext { try $0.finish(old, "old", as: Self.kind) } == false)
        #expect(try due(world).map(\.payload) == ["new"])
    }

    @Test("a failed effect is retried after 1, 2, 4 … seconds, and finally is dead, shown, and can be requested again")
    func failing() throws {
        #expect((1...14).map(EffectKind.pauseSeconds) == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600])
        let world = try CoreWorld()
        try world.inContext { try $0.schedule(Self.name, key: "a", at: $0.now) }
        for attempt in 1...3 {
            let effect = try #require(try due(world).first)
            #expect(effect.attempts == attempt - 1)
            let isDead = try world.inContext { try $0.recordFailure(of: effect, attempts: attempt, reason: "no", as: Self.kind) }
            #expect(isDead == (attempt == 3))
            #expect(try due(world).isEmpty)
            world.now = Timestamp(milliseconds: world.now.milliseconds + Int64(EffectKind.pauseSeconds(after: attempt)) * 1000)
        }
        #expect(try due(world).isEmpty)
        let state = try world.database.read { try $0.effectsState(of: [Self.name], at: world.now) }
        #expect(state.deadCount == 1 && state.lastDead == "test.note a: no" && state.unknownKinds.isEmpty)
        try world.inContext { try $0.schedule(Self.name, key: "a", at: $0.now) }
        #expect(try due(world).map(\.attempts) == [0])
        #expect(try world.database.read { try $0.effectsState(of: [Self.name], at: world.now) }.deadCount == 0)
    }

    @Test("an effect of an unknown kind is kept and shown, and holds up nothing")
    func unknown() throws {
        let world = try CoreWorld()
        try world.inContext { context in
            for number in 0..<20 {
                try context.schedule(.init(rawValue: "newer.kind"), key: "\(number)", at: Timestamp(milliseconds: 1))
            }
            try context.schedule(Self.name, key: "a", at: context.now)
        }
        #expect(try due(world).map(\.key) == ["a"])
        let state = try world.database.read { try $0.effectsState(of: [Self.name], at: world.now) }
        #expect(state.unknownKinds == ["newer.kind"])
        let count = try world.database.read { try $0.first("SELECT COUNT(*) FROM effects") { $0.int() } }
        #expect(count == 21)
    }

    @Test("SB-12 idempotency keys are forgotten once they expire, also earlier ones, and no others")
    func idempotencyKeys() throws {
        let world = try CoreWorld()
        try world.user("ann")
        let day = Int64(Limits.idempotencyKeyHours) * 3_600_000
        func create(_ key: String, _ channel: ChannelID) throws {
            var create = CreateChannel(channel: channel)
            create.idempotencyKey = key
            try world.perform(create, as: "ann")
        }
        func keys() throws -> [String] {
            try world.database.read { try $0.rows("SELECT request_key FROM idempotency_keys ORDER BY request_key") { $0.string() } }
        }
        func runDue() throws -> Int {
            let due = try world.database.read { try $0.effectsDue(of: [.expireIdempotencyKeys], at: world.now, limit: 10).due }
            for effect in due { #expect(try world.inContext { try $0.finish(effect, as: .expireIdempotencyKeys) }) }
            return due.count
        }
        let start = world.now.milliseconds
        try create("1", "one")
        world.now = Timestamp(milliseconds: start + day / 2)
        try create("2", "two")
        world.now = Timestamp(milliseconds: start + day - 1)
        #expect(try runDue() == 0)
        world.now = Timestamp(milliseconds: start + day)
        #expect(try runDue() == 1)
        #expect(try keys() == ["2"])
        #expect(try runDue() == 0)
        world.now = Timestamp(milliseconds: start + day * 3 / 2)
        #expect(try runDue() == 1)
        #expect(try keys() == [])
        // Another node may have been storing one meanwhile, so one effect continues.
        #expect(try runDue() == 0)
        #expect(try world.rows("SELECT due_at FROM effects") { $0.int64() } == [start + day * 5 / 2])
    }
}
