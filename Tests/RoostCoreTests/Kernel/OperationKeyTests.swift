import RoostAPI
import RoostDatabase
import RoostTestSupport
import Testing

@testable import RoostCore

/// Keys that make a repeated call a no-op.
@Suite("Idempotency keys") struct OperationKeyTests {
    private func world() throws -> CoreWorld {
        let world = try CoreWorld()
        for user in ["ann", "bob"] as [UserID] { try world.user(user) }
        try world.channel("general", owner: "ann", members: ["bob"])
        return world
    }

    private func key(_ world: CoreWorld, _ random: UInt64 = 1, madeAfter milliseconds: Int64 = 0) -> IdempotencyKey {
        IdempotencyKey(madeAt: Timestamp(milliseconds: world.now.milliseconds + milliseconds), random: random)
    }

    private func code(_ body: () throws -> Void) throws -> RoostError.Code? {
        do { try body() } catch let error as RoostError { return error.code }
        return nil
    }

    /// Runs the due effects that delete keys, and returns how many there were.
    private func runDue(_ world: CoreWorld) throws -> Int {
        let due = try world.database.read { try $0.effectsDue(of: [.expireIdempotencyKeys], at: world.now, limit: 10).due }
        for effect in due { #expect(try world.inContext { try $0.finish(effect, as: .expireIdempotencyKeys) }) }
        return due.count
    }

    private func hidden(_ world: CoreWorld) throws -> HiddenState? {
        try world.perform(GetChannel(channel: "general"), as: "ann").membership?.hiddenState
    }

    @Test("SB-12 a repeated call undoes no later change, and answers only that it was done")
    func repeated() throws {
        let world = try world()
        let (key, hide) = (key(world), HideChannel(channel: "general"))
        #expect(try world.perform(hide, key: key, as: "ann") != nil)
        try world.perform(UnhideChannel(channel: "general"), as: "ann")
        let before = try world.dump()
        #expect(try world.perform(hide, key: key, as: "ann") == nil)
        #expect(try world.dump() == before)
        #expect(try hidden(world) == .unhidden)
        // Another user's key with the same text is a different key.
        #expect(try world.perform(hide, key: key, as: "bob") != nil)
    }

    @Test("SB-12 a call that was done still counts as done when its right has ended")
    func endedRight() throws {
        let world = try world()
        let (key, leave) = (key(world), LeaveChannel(channel: "general"))
        #expect(try world.perform(leave, key: key, as: "bob") == Done())
        try world.perform(FreezeChannel(channel: "general"), as: "ann")
        #expect(try world.perform(leave, key: key, as: "bob") == nil)
    }

    @Test("SB-12 another call's key, an expired key and one from the future are refused and change nothing")
    func refused() throws {
        let world = try world()
        let hide = HideChannel(channel: "general")
        let hours = Int64(3_600_000)
        let known = key(world)
        _ = try world.perform(hide, key: known, as: "ann")
        let before = try world.dump()
        let lifetime = Int64(Limits.idempotencyKeyHours) * hours
        let ahead = Int64(Limits.idempotencyKeyAheadHours) * hours
        #expect(
            try [
                code { _ = try world.perform(HideChannel(channel: "general", allowAutoUnhide: false), key: known, as: "ann") },
                code { _ = try world.perform(UnhideChannel(channel: "general"), key: known, as: "ann") },
                code { _ = try world.perform(hide, key: key(world, 2, madeAfter: -lifetime), as: "ann") },
                code { _ = try world.perform(hide, key: key(world, 2, madeAfter: ahead + 1), as: "ann") },
                code { _ = try world.perform(GetChannel(channel: "general"), key: key(world, 2), as: "ann") },
                code {
                    _ = try world.perform(SendMessage(channel: "general", clientId: "1", text: "x"), key: key(world, 2), as: "ann")
                },
            ] == [.keyReused, .keyReused, .keyExpired, .invalidArgument, .invalidArgument, .invalidArgument])
        #expect(try world.dump() == before)
    }

    @Test("SB-12 SB-37 a repeated call is recognised whatever the order of its lists of texts in memory")
    func dictionaries() throws {
        let world = try world()
        let sent = try world.send("hi", to: "general", as: "ann")
        let names = (0..<10).map { "list \($0)" }
        func update(_ order: some Collection<String>, capacity: Int) -> UpdateMetaArrays {
            var lists = Dictionary<String, [String]>(minimumCapacity: capacity)
            for name in order { lists[name] = ["b", "a"] }
            return UpdateMetaArrays(
                channel: "general", message: sent.messageId, create: names, add: lists, removeValues: lists)
        }
        let key = key(world)
        #expect(try world.perform(update(names, capacity: 10), key: key, as: "ann") != nil)
        for capacity in [10, 100, 1000, 10_000] {
            #expect(try world.perform(update(names.reversed(), capacity: capacity), key: key, as: "ann") == nil)
        }
    }

    @Test("SB-12 a refused call keeps no key: the same one may succeed later")
    func refusedCall() throws {
        let world = try world()
        let (key, edit) = (key(world), HideChannel(channel: "general"))
        try world.perform(RemoveMembers(channel: "general", users: ["bob"]), as: "ann")
        #expect(try code { _ = try world.perform(edit, key: key, as: "bob") } == .notMember)
        try world.perform(AddMembers(channel: "general", users: ["bob"]), as: "ann")
        #expect(try world.perform(edit, key: key, as: "bob") != nil)
    }

    @Test("SB-12 keys are forgotten once they have expired, and are then refused")
    func expiry() throws {
        let world = try world()
        let key = key(world)
        _ = try world.perform(HideChannel(channel: "general"), key: key, as: "ann")
        world.advance(milliseconds: Int64(Limits.idempotencyKeyHours) * 3_600_000)
        let due = try world.database.read { try $0.effectsDue(of: [.expireIdempotencyKeys], at: world.now, limit: 10).due }
        #expect(due.count == 1)
        // It covers all keys, and so is retried without limit.
        #expect(EffectKind.expireIdempotencyKeys.attemptsMax == .max)
        for effect in due { #expect(try world.inContext { try $0.finish(effect, as: .expireIdempotencyKeys) }) }
        #expect(try world.rows("SELECT COUNT(*) FROM operation_keys") { $0.int() } == [0])
        #expect(try code { _ = try world.perform(HideChannel(channel: "general"), key: key, as: "ann") } == .keyExpired)
    }

    @Test("SB-12 a key stored by another node while the last one is forgotten is forgotten in time too")
    func keptMeanwhile() throws {
        let world = try world()
        let lifetime = Int64(Limits.idempotencyKeyHours) * 3_600_000
        _ = try world.perform(HideChannel(channel: "general"), key: key(world), as: "ann")
        world.advance(milliseconds: lifetime)
        #expect(try runDue(world) == 1)
        // Its transaction found the effect pending, and commits after the run, which didn't see the key.
        try world.execute(
            """
            INSERT INTO operation_keys (user_id, operation_key, request, made_at) VALUES ('ann', 'meanwhile', '', \(world.now))
            """)
        world.advance(milliseconds: lifetime)
        #expect(try runDue(world) == 1)
        #expect(try world.rows("SELECT COUNT(*) FROM operation_keys") { $0.int() } == [0])
    }

    @Test("SB-12 keys are forgotten in time after the clock was fast for a while")
    func clockThatWasAhead() throws {
        let world = try world()
        let lifetime = Int64(Limits.idempotencyKeyHours) * 3_600_000
        let start = world.now
        _ = try world.perform(HideChannel(channel: "general"), key: key(world), as: "ann")
        world.advance(milliseconds: 10 * lifetime)
        #expect(try runDue(world) == 1)
        world.now = start
        _ = try world.perform(UnhideChannel(channel: "general"), key: key(world, 2), as: "ann")
        world.advance(milliseconds: lifetime)
        #expect(try runDue(world) == 1)
        #expect(try world.rows("SELECT COUNT(*) FROM operation_keys") { $0.int() } == [0])
    }

    @Test("SB-12 a key made long ago is forgotten within a minute", .enabled(if: TestDatabase.Engine.chosen == .sqlite))
    func oldKey() throws {
        let world = try world()
        let lifetime = Int64(Limits.idempotencyKeyHours) * 3_600_000
        _ = try world.perform(UnhideChannel(channel: "general"), key: key(world), as: "ann")
        // Keys with hardly any time left don't cause a run after each call.
        _ = try world.perform(HideChannel(channel: "general"), key: key(world, 3, madeAfter: 1 - lifetime), as: "ann")
        world.advance(milliseconds: 1)
        #expect(try runDue(world) == 0)
        world.advance(milliseconds: 60_000)
        #expect(try runDue(world) == 1)
        #expect(try world.rows("SELECT COUNT(*) FROM operation_keys") { $0.int() } == [1])
    }

    @Test("a user's keys are limited at a time; the app's backend's aren't")
    func count() throws {
        let world = try world()
        let count = Limits.idempotencyKeysPerUser
        try world.execute(
            """
            INSERT INTO operation_keys (user_id, operation_key, request, made_at)
            WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < \(Int64(count)))
            SELECT u.user_id, 'k' || numbers.n, '', \(world.now) FROM numbers, users u
            """)
        let hide = HideChannel(channel: "general")
        #expect(try code { _ = try world.perform(hide, key: key(world), as: "ann") } == .limitExceeded)
        let update = UpdateChannel(channel: "general", displayName: "G")
        #expect(try world.perform(update, key: key(world), as: "ann", role: .admin) != nil)
        // Expired keys no longer count, even before they are deleted.
        world.advance(milliseconds: Int64(Limits.idempotencyKeyHours) * 3_600_000)
        #expect(try world.perform(hide, key: key(world), as: "ann") != nil)
    }

    @Test("a key is a UUID of version 7, in letters of either case, and the same wherever a request has it")
    func format() throws {
        let key = try IdempotencyKey("0192F3A0-5C1E-7D3B-9A4F-6E2B8C0D1E2F")
        #expect(key.rawValue == "0192f3a0-5c1e-7d3b-9a4f-6e2b8c0d1e2f" && key.madeAt.milliseconds == 0x0192_f3a0_5c1e)
        let made = IdempotencyKey(madeAt: Timestamp(milliseconds: 1_772_368_205_250), random: .max)
        #expect(try IdempotencyKey(made.rawValue) == made && IdempotencyKey(made.rawValue, field: "Idempotency-Key") == made)
        for text in [
            "", "1", "0192f3a0-5c1e-4d3b-9a4f-6e2b8c0d1e2f", "0192f3a0-5c1e-7d3b-ca4f-6e2b8c0d1e2f",
            "0192f3a05c1e7d3b9a4f6e2b8c0d1e2f", "0192f3a0-5c1e-7d3b-9a4f-6e2b8c0d1e2g", "0192f3a0-5c1e-7d3b-9a4f-6e2b8c0d1e2f0",
        ] {
            #expect(throws: RoostError.self, "\(text)") { try IdempotencyKey(text) }
        }
    }
}
