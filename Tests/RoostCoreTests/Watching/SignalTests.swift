import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Typing and signals")
struct SignalTests {
    private func typed(_ world: CoreWorld, _ operation: some Handled, as user: UserID) throws -> [Notice] {
        try world.notices { _ = try world.perform(operation, as: user) }
    }

    /// The users who get a message of the channel.
    private func readers(of channel: ChannelID, in world: CoreWorld) throws -> Readers {
        let notices = try world.notices { try world.send("hi", to: channel, as: "ann") }
        guard case .event(_, .channel(channel, let readers))? = notices.first else { throw Missed("an event: \(notices)") }
        return readers
    }

    @Test(
        "SB-02 R26 users may signal typing in every channel where they may send",
        arguments: [ChannelType.community, .conversation, .group, .messaging])
    func typing(in type: ChannelType) throws {
        let world = try CoreWorld()
        try world.channel("general", type: type, owner: "ann", members: ["bob"])
        let longID = ChannelID("\(type):general")
        #expect(try typed(world, StartTyping(channel: "general"), as: "bob") == [.typing("bob", "general")])
        #expect(try typed(world, StartTyping(channel: longID), as: "bob") == [.typing("bob", "general")])
        #expect(try typed(world, StopTyping(channel: longID), as: "bob") == [.stoppedTyping("bob", "general")])
        // Stopping needs no right: a user who was muted meanwhile, or has left, may do it. In a missing channel nobody types.
        #expect(try typed(world, StopTyping(channel: "general"), as: "zoe") == [.stoppedTyping("zoe", "general")])
        #expect(try typed(world, StopTyping(channel: "nowhere"), as: "bob") == [])
    }

    @Test("X-33 a user who stops sharing it isn't shown typing from then on, even if they had begun before")
    func stopsSharing() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob", "cid"])
        func sent() throws -> [[UserID]?] {
            let typing = Signal(
                kind: .typingChanged, channel: "general", typing: TypingUsers(users: ["bob", "cid"], hasMore: false))
            return try world.inContext { context in
                try context.notify(typing)
                return context.notices.map { if case .signal(let signal, _) = $0 { signal.typing?.users } else { nil } }
            }
        }
        #expect(try sent() == [["bob", "cid"]])
        try world.perform(UpdatePreferences(sharesTyping: false), as: "bob")
        #expect(try sent() == [["cid"]])
        try world.perform(UpdatePreferences(sharesTyping: false), as: "cid")
        #expect(try sent() == [[]])
    }

    @Test("X-33 R26 AM-41 queued positions aren't sent for users who no longer share them, have left or may not read")
    func waitingPositions() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob", "cid", "dan", "eve"])
        let positions = (["ann", "bob", "cid", "dan", "eve"] as [UserID]).map {
            ReadPosition(userId: $0, readSeq: 1, deliveredSeq: 2, lastDeliveredAt: world.now)
        }
        /// What is sent of these positions, and whether anything is.
        func sent(_ positions: [ReadPosition], isWhole: Bool = true) throws -> [[String]] {
            let read = Signal(kind: .readUpdated, channel: "general", read: ReadUpdate(readers: positions, isWhole: isWhole))
            return try world.inContext { context in
                try context.notify(read)
                return context.notices.compactMap { notice in
                    guard case .signal(let signal, _) = notice else { return nil }
                    return (signal.read?.readers ?? []).map { "\($0.userId) \($0.readSeq) \($0.deliveredSeq ?? 0)" }
                }
            }
        }
        #expect(try sent(positions) == [["ann 1 2", "bob 1 2", "cid 1 2", "dan 1 2", "eve 1 2"]])
        try world.perform(UpdatePreferences(sharesReading: false), as: "bob")
        try world.perform(UpdatePreferences(sharesDelivery: false), as: "cid")
        try world.perform(LeaveChannel(channel: "general"), as: "dan")
        #expect(try sent(positions) == [["ann 1 2", "cid 1 0", "eve 1 2"]])
        try world.perform(UpdateChannel(channel: "general", policy: PolicyChanges(read: .operators)), as: "ann")
        #expect(try sent(positions) == [["ann 1 2"]])
        // Nothing is left to send, unless others have been left out before.
        #expect(try sent([positions[1]]) == [] && sent([positions[1]], isWhole: false) == [[]])
    }

    @Test("SB-02 R26 queued signals of typing and reading aren't sent if the channel's rules no longer allow them")
    func rulesChanged() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        let typing = Signal(kind: .typingChanged, channel: "general", typing: TypingUsers(users: ["bob"], hasMore: false))
        let positions = [ReadPosition(userId: "bob", readSeq: 1)]
        let read = Signal(kind: .readUpdated, channel: "general", read: ReadUpdate(readers: positions, isWhole: true))
        func sent() throws -> [Signal.Kind] {
            try world.inContext { context in
                try context.notify(typing)
                try context.notify(read)
                return context.notices.compactMap { if case .signal(let signal, _) = $0 { signal.kind } else { nil } }
            }
        }
        #expect(try sent() == [.typingChanged, .readUpdated])
        let policy = PolicyChanges(typingEvents: false, readEvents: false)
        try world.perform(UpdateChannel(channel: "general", policy: policy), as: "ann")
        #expect(try sent() == [])
    }

    @Test("§8.9 users who may not send can't type or signal: strangers, muted members, and all in a frozen or silenced channel")
    func refusals() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        try world.user("zoe")
        func codes(_ user: UserID) throws -> [RoostError.Code?] {
            [
                try world.code(StartTyping(channel: "general"), as: user),
                try world.code(SendSignal(channel: "general", type: "wave"), as: user),
            ]
        }
        #expect(try codes("bob") == [nil, nil])
        #expect(try codes("zoe") == [.notMember, .notMember])
        try world.perform(FreezeChannel(channel: "general"), as: "ann")
        #expect(try codes("bob") == [.frozen, .frozen])
        try world.perform(UnfreezeChannel(channel: "general"), as: "ann")
        try world.perform(SilenceChannel(channel: "general", seconds: 60), as: "ann")
        #expect(try codes("bob") == [.channelMuted, .channelMuted])
        try world.perform(UnsilenceChannel(channel: "general"), as: "ann")
        try world.execute("UPDATE members SET muted_until = \(Timestamp.forever) WHERE user_id = 'bob'")
        #expect(try codes("bob") == [.muted, .muted] && codes("ann") == [nil, nil])
        #expect(try world.code(StartTyping(channel: "nowhere"), as: "bob") == .notFound)
    }

    @Test("a custom signal goes to watchers, with its sender; one that is too large or has no type is refused")
    func custom() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        let wave = SendSignal(channel: "general", type: "wave", metadata: ["hand": "left"])
        let readers = try readers(of: "general", in: world)
        let signal = Signal(
            kind: .custom, channel: "general", sender: "bob", custom: CustomSignal(type: "wave", metadata: ["hand": "left"]))
        #expect(try typed(world, wave, as: "bob") == [.signal(signal, .watchers("general", readers))])

        func code(_ type: String, _ metadata: JSONValue?) throws -> RoostError.Code? {
            try world.code(SendSignal(channel: "general", type: type, metadata: metadata), as: "bob")
        }
        func text(_ count: Int) -> JSONValue { ["x": .string(String(repeating: "x", count: count))] }
        let nested: JSONValue = ["x": (0..<Limits.metadataDepth).reduce(.null) { inner, _ in .array([inner]) }]
        #expect(try code("", nil) == .invalidArgument)
        #expect(try code("wave", ["left"]) == .invalidArgument)
        #expect(try code(String(repeating: "x", count: Limits.customTypeLength), text(Limits.signalSizeBytes - 8)) == nil)
        #expect(try code(String(repeating: "x", count: Limits.customTypeLength + 1), nil) == .limitExceeded)
        #expect(try code("wave", text(Limits.signalSizeBytes - 7)) == .limitExceeded)
        #expect(try code("wave", nested) == .limitExceeded)
    }

    @Test(
        "§4 I9 typing is sent to the channel, above 1,000 members only to watchers, as are readers and new names above 10, and to nobody once it is deleted"
    )
    func audience() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        let typing = Signal(kind: .typingChanged, channel: "general", typing: TypingUsers(users: ["bob"], hasMore: false))
        let watching = Signal(
            kind: .watchingChanged, channel: "general",
            watching: WatcherChange(watcherCount: 1, started: ["bob"], stopped: [], isWhole: true))
        func audience(_ signal: Signal) throws -> [Audience] {
            try world.inContext { context in
                try context.notify(signal)
                return context.notices.compactMap { if case .signal(signal, let audience) = $0 { audience } else { nil } }
            }
        }
        let readers = try readers(of: "general", in: world)
        #expect(try audience(typing) == [.channel("general", readers)])
        #expect(try audience(watching) == [.watchers("general", readers)])
        try world.execute("UPDATE channel_heads SET member_count = \(Limits.largeChannelMembers)")
        #expect(try audience(typing) == [.channel("general", readers)])
        try world.execute("UPDATE channel_heads SET member_count = \(Limits.largeChannelMembers + 1)")
        #expect(try audience(typing) == [.watchers("general", readers)])
        let read = Signal(
            kind: .readUpdated, channel: "general",
            read: ReadUpdate(readers: [ReadPosition(userId: "bob", readSeq: 1)], isWhole: true))
        let names = Signal(
            kind: .usersChanged, channel: "general",
            users: UsersChange(users: [UserSummary(userId: "bob", displayName: "Bob", version: 2)], isWhole: true))
        try world.execute("UPDATE channel_heads SET member_count = \(Limits.receiptMembers)")
        for signal in [read, names] { #expect(try audience(signal) == [.channel("general", readers)]) }
        try world.execute("UPDATE channel_heads SET member_count = \(Limits.receiptMembers + 1)")
        for signal in [read, names] { #expect(try audience(signal) == [.watchers("general", readers)]) }
        try world.perform(DeleteChannel(channel: "general"), as: "ann")
        #expect(try audience(typing) == [])
    }
}
