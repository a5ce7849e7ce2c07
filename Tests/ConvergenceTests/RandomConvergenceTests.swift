import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Convergence of random histories")
struct RandomConvergenceTests {
    @Test("I5 I7 clients that miss nothing have the state of a fetch after every step", arguments: Seeds.first(6))
    func live(seed: UInt64) throws {
        let world = try CoreWorld()
        var history = try RandomHistory(seed: seed, in: world)
        let room = Room(world)
        let seats = history.users.map { room.seat($0) }
        for seat in seats { try room.reconnect(seat, by: .resume) }
        var steps: [String] = []
        for _ in 0..<80 {
            steps.append(try history.step(in: world))
            try room.deliver()
            let found = try room.differences(of: seats)
            guard found.isEmpty else {
                Issue.record("seed \(seed): \(found) after \(steps.suffix(8))")
                return
            }
        }
    }

    @Test(
        "I5 clients that connect and disconnect at random have the state of a fetch once they have caught up",
        arguments: Seeds.first(8), [Room.CatchUp.resume, .pages(1), .pages(2), .pages(7), .missedEvents(1), .missedEvents(3)])
    func cuts(seed: UInt64, way: Room.CatchUp) throws {
        let world = try CoreWorld()
        var history = try RandomHistory(seed: seed, in: world)
        let room = Room(world)
        let seats = (history.users + history.users).map { room.seat($0, withDevice: way == .resume) }
        var random = SeededGenerator(seed: seed + 1000)
        var steps: [String] = []
        for _ in 0..<120 {
            steps.append(try history.step(in: world))
            try room.deliver()
            let seat = random.pick(seats)
            if random.once(in: 6) {
                if room.seats[seat].isConnected {
                    try room.disconnect(seat)
                    steps.append("seat \(seat) goes")
                } else {
                    try room.reconnect(seat, by: way)
                    steps.append("seat \(seat) comes")
                    let found = try room.differences(of: [seat])
                    guard found.isEmpty else {
                        Issue.record("seed \(seed), \(way.testDescription): \(found) after \(steps.suffix(30))")
                        return
                    }
                }
            }
        }
        for seat in seats where !room.seats[seat].isConnected { try room.reconnect(seat, by: way) }
        let wrong = try room.differences(of: seats)
        #expect(wrong == [], "seed \(seed)")
    }

    @Test(
        "I5 changes while a client catches up are neither missed nor counted twice", arguments: Seeds.first(8),
        [Room.CatchUp.resume, .pages(3)])
    func meanwhile(seed: UInt64, way: Room.CatchUp) throws {
        let world = try CoreWorld()
        var history = try RandomHistory(seed: seed, in: world)
        let room = Room(world)
        let seats = history.users.map { room.seat($0) }
        var random = SeededGenerator(seed: seed + 2000)
        for round in 0..<25 {
            let seat = random.pick(seats)
            try room.disconnect(seat)
            for _ in 0..<random.number(0...6) { try history.step(in: world) }
            try room.connect(seat)
            for _ in 0..<random.number(0...4) { try history.step(in: world) }
            try room.deliver()
            try room.catchUp(seat, by: way) {
                if random.once(in: 2) { try history.step(in: world) }
            }
            for _ in 0..<random.number(0...4) { try history.step(in: world) }
            try room.deliver()
            try room.goOn(seat)
            let found = try room.differences(of: [seat])
            guard found.isEmpty else {
                Issue.record("seed \(seed), \(way.testDescription), round \(round): \(found)")
                return
            }
        }
    }

    @Test(
        "I5 two streams have no common order: events of one may be late", arguments: Seeds.first(8), Room.Late.allCases)
    func late(seed: UInt64, late: Room.Late) throws {
        let world = try CoreWorld()
        var history = try RandomHistory(seed: seed, in: world)
        let room = Room(world)
        let seats = history.users.map { room.seat($0) }
        for seat in seats {
            try room.reconnect(seat, by: .resume)
            room.seats[seat].late = late
        }
        var random = SeededGenerator(seed: seed + 4000)
        var steps: [String] = []
        for _ in 0..<120 {
            steps.append(try history.step(in: world))
            try room.deliver()
            guard random.once(in: 4) else { continue }
            let seat = random.pick(seats)
            try room.arrive(seat)
            let found = try room.differences(of: [seat])
            guard found.isEmpty else {
                Issue.record("seed \(seed), \(late): \(found) after \(steps.suffix(20))")
                return
            }
        }
    }

    @Test("I5 a lost event is noticed by the next one, and missed changes are fetched", arguments: Seeds.first(4))
    func lost(seed: UInt64) throws {
        let world = try CoreWorld()
        var history = try RandomHistory(seed: seed, in: world)
        let room = Room(world)
        let seats = history.users.map { room.seat($0) }
        for seat in seats { try room.reconnect(seat, by: .resume) }
        var random = SeededGenerator(seed: seed + 3000)
        for _ in 0..<80 {
            let deaf = random.once(in: 5) ? random.pick(seats) : nil
            if let deaf { room.seats[deaf].isConnected = false }
            try history.step(in: world)
            try room.deliver()
            // A socket doesn't drop single events, so this one is cut and reconnects without noticing.
            if let deaf { try room.connect(deaf); try room.goOn(deaf) }
        }
        // One more change of each stream shows every gap.
        for seat in seats {
            let user = room.seats[seat].client.user
            try world.perform(UpdateMe(displayName: "last \(user)"), as: user)
        }
        for channel in history.channels {
            // No admin writes in a conversation, and not everyone in a frozen channel.
            _ = try world.code(SendMessage(channel: channel, clientId: "last", text: "x"), as: "root", role: .admin)
            for user in history.users { _ = try world.code(SendMessage(channel: channel, clientId: "last", text: "x"), as: user) }
        }
        try room.deliver()
        // Only the end of a channel isn't followed by anything that shows that it was missed.
        let deleted = try world.rows("SELECT channel_id FROM channels WHERE deleted_at IS NOT NULL") {
            $0.identifier(ChannelID.self)
        }
        for seat in seats where deleted.contains(where: { room.seats[seat].client.channels[$0] != nil }) {
            try room.catchUp(seat, by: .resume)
        }
        let wrong = try room.differences(of: seats)
        #expect(wrong == [], "seed \(seed)")
    }

    @Test("I5 changes that exceed one answer come in several, while more arrive")
    func severalAnswers() throws {
        let world = try CoreWorld()
        for user in ["ann", "bob"] as [UserID] { try world.user(user) }
        let channels = (0..<7).map { ChannelID("c\($0)") }
        for channel in channels { try world.channel(channel, owner: "ann", members: ["bob"]) }
        let room = Room(world)
        let seats = [room.seat("ann"), room.seat("bob")]
        for seat in seats { try room.reconnect(seat, by: .resume) }
        for seat in seats { try room.disconnect(seat) }
        for number in 0..<400 {
            for channel in channels { try world.send("\(number)", to: channel, as: number.isMultiple(of: 3) ? "bob" : "ann") }
        }
        var answers = 0
        for seat in seats {
            try room.connect(seat)
            try room.catchUp(seat, by: .resume) {
                answers += 1
                for channel in channels {
                    let sent = try world.send("meanwhile", to: channel, as: "bob")
                    try world.perform(MarkRead(channel: channel, seq: sent.seq - 3), as: "bob")
                    try world.perform(EditMessage(channel: channel, message: sent.messageId, text: "edited"), as: "bob")
                }
                try room.deliver()
            }
            try room.goOn(seat)
        }
        #expect(answers >= 2)
        let wrong = try room.differences(of: seats)
        #expect(wrong == [])
    }

    @Test("I5 a client that missed more than 500 messages of a channel starts it over")
    func fresh() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob", "cid"])
        try world.send("old", to: "general", as: "ann")
        let room = Room(world)
        let seat = room.seat("bob")
        try room.reconnect(seat, by: .resume)
        try room.disconnect(seat)
        for number in 0..<501 { try world.send("\(number)", to: "general", as: "ann") }
        try world.perform(LeaveChannel(channel: "general"), as: "cid")
        try room.reconnect(seat, by: .resume)
        #expect(room.seats[seat].client.channels["general"]?.messages.count == Limits.freshMessages)
        let wrong = try room.differences(of: [seat])
        #expect(wrong == [])
    }
}
