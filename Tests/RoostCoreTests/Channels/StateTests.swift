import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

/// Freezing, silencing and rate-limiting a channel.
@Suite("States of channels") struct StateTests {
    private func world() throws -> CoreWorld {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob", "cid"])
        try world.perform(SetMemberRole(channel: "general", users: ["cid"], role: .operator), as: "ann")
        return world
    }

    private func send(_ user: UserID, in world: CoreWorld, role: AppRole = .user) throws -> RoostError? {
        try world.refusal(
            SendMessage(channel: "general", clientId: ClientID("\(world.notices.count)-\(user)"), text: "x"), as: user, role: role)
    }

    @Test("SB-21 R28 in a frozen channel members don't send or edit, operators and admins do, until it is unfrozen")
    func freezes() throws {
        let world = try world()
        let own = try world.send("mine", to: "general", as: "bob").messageId
        #expect(try world.code(FreezeChannel(channel: "general"), as: "bob") == .notPermitted)
        #expect(try world.perform(FreezeChannel(channel: "general"), as: "cid").isFrozen)
        #expect(
            try send("bob", in: world)
                == RoostError(.frozen, "The channel is frozen.", rule: "message.send: not while frozen"))
        #expect(try world.code(EditMessage(channel: "general", message: own, text: "y"), as: "bob") == .frozen)
        #expect(try world.code(DeleteMessage(channel: "general", message: own), as: "bob") == nil)
        #expect(try [send("ann", in: world), send("cid", in: world), send("root", in: world, role: .admin)] == [nil, nil, nil])
        #expect(try !world.perform(UnfreezeChannel(channel: "general"), as: "cid").isFrozen)
        #expect(try send("bob", in: world) == nil)
    }

    @Test("SB-21 freezing a frozen channel and unfreezing one that isn't change nothing and send nothing")
    func repeats() throws {
        let world = try world()
        try world.perform(FreezeChannel(channel: "general"), as: "ann")
        let notices = try world.notices { try world.perform(FreezeChannel(channel: "general"), as: "cid") }
        try world.perform(UnfreezeChannel(channel: "general"), as: "ann")
        let again = try world.notices { try world.perform(UnfreezeChannel(channel: "general"), as: "ann") }
        #expect(notices == [] && again == [])
    }

    @Test("AM-07 D-29 a silence keeps ordinary members from sending until it ends by itself")
    func silences() throws {
        let world = try world()
        let channel = try world.perform(SilenceChannel(channel: "general", seconds: 60), as: "ann")
        let end = world.now.after(seconds: 60)
        #expect(channel.isMuted && channel.mutedUntil == end)
        #expect(
            try send("bob", in: world)
                == RoostError(
                    .channelMuted, "The channel is silenced.", rule: "message.send: not while silenced", until: end,
                    retryAfterMilliseconds: 60_000))
        #expect(try [send("ann", in: world), send("cid", in: world)] == [nil, nil])
        world.advance(milliseconds: 59_999)
        let last = try send("bob", in: world)
        #expect(last?.code == .channelMuted && last?.retryAfterMilliseconds == 1)
        world.advance(milliseconds: 1)
        #expect(try send("bob", in: world) == nil)
        let ended = try world.perform(GetChannel(channel: "general"), as: "bob").channel
        #expect(!ended.isMuted && ended.mutedUntil == end)
        // Its end stays in the channel's row until it is cleared, like that of a rate limit.
        let notices = try world.notices { try world.perform(UnsilenceChannel(channel: "general"), as: "ann") }
        let again = try world.notices { try world.perform(UnsilenceChannel(channel: "general"), as: "ann") }
        #expect(notices.count == 1 && again == [])
        #expect(try world.perform(GetChannel(channel: "general"), as: "bob").channel.mutedUntil == nil)
    }

    @Test("AM-07 D-07 a silence without an end lasts until it is ended", arguments: [nil, -1] as [Int?])
    func silencesForEver(seconds: Int?) throws {
        let world = try world()
        try world.perform(SilenceChannel(channel: "general", seconds: seconds), as: "ann")
        world.advance(milliseconds: 1_000_000_000_000)
        #expect(try send("bob", in: world)?.code == .channelMuted)
        #expect(try world.perform(UnsilenceChannel(channel: "general"), as: "ann").mutedUntil == nil)
        #expect(try send("bob", in: world) == nil)
    }

    @Test("AM-07 D-07 a duration is more than 0, or -1", arguments: [0, -2, Int.min, Int.max])
    func durations(seconds: Int) throws {
        let world = try world()
        let refusal = try world.refusal(SilenceChannel(channel: "general", seconds: seconds), as: "ann")
        #expect(refusal?.field == "seconds" && [.invalidArgument, .limitExceeded].contains(refusal?.code))
    }

    @Test("AM-08 D-15 R28 the rate limit is set by operators, seen by everyone, and expires")
    func rateLimits() throws {
        let world = try world()
        #expect(try world.code(SetRateLimit(channel: "general", messages: 5, windowSeconds: 10), as: "bob") == .notPermitted)
        let limited = try world.perform(SetRateLimit(channel: "general", messages: 5, windowSeconds: 10, seconds: 30), as: "cid")
        let seen = try world.perform(GetChannel(channel: "general"), as: "bob").channel
        #expect(seen == limited)
        #expect(
            [seen.isRateLimited, seen.rateLimit == 5, seen.rateLimitWindowSeconds == 10] == [true, true, true]
                && seen.rateLimitedUntil == world.now.after(seconds: 30))
        world.advance(milliseconds: 30_000)
        #expect(try !world.perform(GetChannel(channel: "general"), as: "bob").channel.isRateLimited)
        let removed = try world.perform(RemoveRateLimit(channel: "general"), as: "ann")
        #expect([removed.rateLimit, removed.rateLimitWindowSeconds] == [nil, nil] && removed.rateLimitedUntil == nil)
        for (messages, window) in [(0, 1), (1001, 1), (1, 0), (1, 3601)] {
            let operation = SetRateLimit(channel: "general", messages: messages, windowSeconds: window)
            #expect(try [.invalidArgument, .limitExceeded].contains(world.code(operation, as: "ann")))
        }
    }

    @Test("AM-48 R33 a freeze says what members may do by their role, in agreement with each member's own permissions")
    func capabilities() throws {
        let world = try world()
        let notices = try world.notices { try world.perform(FreezeChannel(channel: "general"), as: "ann") }
        guard case .event(let event, .channel("general", _)) = notices.first, notices.count == 1 else {
            Issue.record("\(notices)")
            return
        }
        for user in ["ann", "bob", "cid"] as [UserID] {
            let view = try world.perform(GetChannel(channel: "general"), as: user)
            #expect(event.rows.capabilities?[view.membership?.role.rawValue ?? ""] == view.ownCapabilities)
        }
        #expect(event.rows.capabilities?["member"]?.contains(.messageSend) == false)
        #expect(event.rows.capabilities?["operator"]?.contains(.messageSend) == true)
    }
}
