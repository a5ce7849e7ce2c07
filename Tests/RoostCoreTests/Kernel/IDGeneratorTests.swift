import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

@Suite("IDGenerator")
struct IDGeneratorTests {
    private let noon = Timestamp(milliseconds: 1_772_368_205_250)

    private func time(_ milliseconds: Int64) -> Timestamp { Timestamp(milliseconds: noon.milliseconds + milliseconds) }

    @Test("ids grow while the clock stands still, advances and goes back", arguments: Seeds.first(5))
    func grows(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var ids = IDGenerator(IDGenerator.Number(7))
        var clock: Int64 = 0
        var last = MessageID(rawValue: 0)
        for step in 0..<20_000 {
            clock += Int64(random.number(-1000...1001))
            let id = ids.next(at: time(random.once(in: 2) ? clock : 0))
            guard id > last else {
                Issue.record("seed \(seed), step \(step): \(id) after \(last)")
                return
            }
            last = id
        }
    }

    @Test("ids stay unique and growing when a millisecond runs out of them")
    func overflows() {
        var ids = IDGenerator()
        let made = (0..<10_000).map { _ in ids.next(at: noon) }
        #expect(made == Set(made).sorted())
    }

    @Test("ids of two nodes never collide, and are positive to the end of their range")
    func nodes() {
        var one = IDGenerator(IDGenerator.Number(1))
        var two = IDGenerator(IDGenerator.Number(2))
        let times = [Timestamp(milliseconds: 0), noon, Timestamp(milliseconds: .max / 2), noon]
        let made = times.flatMap { time in [one.next(at: time), two.next(at: time)] }
        #expect(Set(made).count == made.count)
        #expect(made.allSatisfy { $0.rawValue > 0 })
    }

    @Test("beyond the end of their range, and with any number of ids, none is negative, repeated or smaller than an earlier one")
    func endOfTime() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        let before = try world.send("before", to: "general", as: "ann")
        let wrong = Timestamp(milliseconds: 4_102_444_800_000)
        let made = (0..<20_000).map { _ in world.ids.next(at: wrong) }
        #expect(made == Set(made).sorted())
        #expect(made.allSatisfy { $0 > before.messageId })
        // With the clock right again, new messages can be changed like any other.
        let after = try world.send("after", to: "general", as: "ann")
        try world.restart()
        let later = try world.send("later", to: "general", as: "ann")
        #expect(made.count == 20_000 && later.messageId > after.messageId && after.messageId > made[19_999])
        let edited = try world.perform(EditMessage(channel: "general", message: later.messageId, text: "edited"), as: "ann")
        #expect(edited.text == "edited")
    }

    @Test("a database whose ids had become negative continues with unused ids")
    func negativeIDs() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        try world.database.write(lane: 0) { transaction in
            _ = try transaction.replaceSetting("ids", with: "9007199254750000")
        }
        try world.restart()
        let sent = try (0..<3).map { try world.send("\($0)", to: "general", as: "ann").messageId }
        #expect(sent == Set(sent).sorted())
        #expect(sent.allSatisfy { $0.rawValue > 0 })
    }

    @Test("an id says when it was made")
    func carriesTime() {
        var ids = IDGenerator(IDGenerator.Number(1023))
        let milliseconds = (ids.next(at: noon).rawValue >> 22) + 1_704_067_200_000
        #expect(milliseconds == noon.milliseconds)
    }

    @Test("I20 no id is made twice if the clock is set back between two runs")
    func survivesRestart() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        let before = try world.send("before", to: "general", as: "ann")
        world.advance(milliseconds: -3_600_000)
        try world.restart()
        let after = try world.send("after", to: "general", as: "ann")
        #expect(after.messageId > before.messageId)
    }

    @Test("I20 no id is made twice if ids ran ahead of the clock before a restart")
    func survivesRestartAheadOfTheClock() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        // As after the clock was set back by an hour: ids continue from the last one, message by message.
        for _ in 0..<10_000 { _ = world.ids.next(at: world.now) }
        let before = try world.send("before", to: "general", as: "ann")
        try world.restart()
        let after = try world.send("after", to: "general", as: "ann")
        #expect(after.messageId > before.messageId)
    }

    @Test("I20 a restart skips the ids stored ahead of the clock, which are stored once a second")
    func reserves() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        let stored = { try world.database.read { try $0.first("SELECT value FROM settings WHERE name = 'ids'") { $0.string() } } }
        var last = try world.send("first", to: "general", as: "ann").messageId
        let first = try stored()
        for _ in 0..<9 {
            world.advance(milliseconds: 100)
            last = try world.send("hello", to: "general", as: "ann").messageId
        }
        #expect(try stored() == first)
        world.advance(milliseconds: 200)
        last = try world.send("hello", to: "general", as: "ann").messageId
        #expect(try stored() != first)

        // Without time in between, as after a crash: ids continue after those that may have been made, a second ahead and no further.
        for _ in 0..<20 {
            try world.restart()
            let next = try world.send("again", to: "general", as: "ann").messageId
            #expect(next > last)
            last = next
        }
        let ahead = (last.rawValue >> 22) + 1_704_067_200_000 - world.now.milliseconds
        #expect(ahead == 1000)
        #expect(
            try world.database.read { try IDGenerator.newestTime(in: $0) } == Timestamp(milliseconds: world.now.milliseconds + 1000)
        )
    }

    @Test("AM-13 a channel id that the server makes is valid and unique")
    func channelIDs() throws {
        var ids = IDGenerator()
        let made = (0..<5000).map { _ in ids.nextChannelID(at: noon) }
        #expect(Set(made).count == made.count)
        try made[0].validateNew(field: "channel")
    }

    @Test(
        "AM-13 a channel id that the server makes ends in 60 unpredictable bits",
        arguments: [0, 31, 1 << 59, .max] as [UInt64])
    func channelIDsEndInRandomBits(bits: UInt64) {
        var (ids, known) = (IDGenerator(IDGenerator.Number(7), randomBits: { bits }), IDGenerator(IDGenerator.Number(7)))
        let (made, guess) = (ids.nextChannelID(at: noon).rawValue, known.nextChannelID(at: noon).rawValue)
        #expect(made.dropLast(12) == guess.dropLast(12))
        let ends: [UInt64: String] = [0: "000000000000", 31: "z00000000000", 1 << 59: "00000000000g", .max: "zzzzzzzzzzzz"]
        #expect(String(made.suffix(12)) == ends[bits])
    }
}
