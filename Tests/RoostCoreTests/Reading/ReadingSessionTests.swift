import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Reading sessions")
struct ReadingSessionTests {
    private static let phone = ConnectionID(rawValue: 7)

    private func world() throws -> CoreWorld {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        for text in ["a", "b"] { try world.send(text, to: "general", as: "ann") }
        return world
    }

    @Test("AM-45 whoever begins to read has read all of it, also the second time and under the channel's other name")
    func start() throws {
        let world = try world()
        var answer: UnreadCount?
        let notices = try world.notices {
            answer = try world.perform(StartReading(channel: "general"), as: "bob", connection: 7)
        }
        #expect(answer == UnreadCount(channelId: "general", unreadCount: 0, readSeq: 3))
        #expect(notices.last == .reading(Self.phone, "general"))
        let kinds = notices.compactMap { if case .event(let event, _) = $0 { event.kind } else { nil } }
        #expect(kinds == [.readingMarked])
        #expect(
            try world.notices { try world.perform(StartReading(channel: "community:general"), as: "bob", connection: 7) }
                == [.reading(Self.phone, "general")])
        #expect(
            try world.notices { try world.perform(StopReading(channel: "community:general"), as: "bob", connection: 7) }
                == [.stoppedReading(Self.phone, "general")])
        // Stopping is no reading.
        try world.send("c", to: "general", as: "ann")
        try world.perform(StopReading(channel: "general"), as: "bob", connection: 7)
        #expect(try world.perform(GetUnread(channel: "general"), as: "bob").unreadCount == 1)
    }

    @Test("AM-45 ST-02 reading needs a connection and the membership; a refusal changes nothing")
    func refusals() throws {
        let world = try world()
        let before = try world.dump()
        #expect(try world.code(StartReading(channel: "general"), as: "bob") == .notConnected)
        #expect(try world.code(StopReading(channel: "general"), as: "bob") == .notConnected)
        #expect(try world.code(StartReading(channel: "general"), as: "zoe", connection: 7) == .notMember)
        #expect(try world.code(StartReading(channel: "nowhere"), as: "bob", connection: 7) == .notFound)
        #expect(try world.code(StartReading(channel: ""), as: "bob", connection: 7) == .invalidArgument)
        #expect(try world.dump() == before)
        try world.perform(LeaveChannel(channel: "general"), as: "bob")
        #expect(try world.code(StartReading(channel: "general"), as: "bob", connection: 7) == .notMember)
        // Whoever has left may stop all the same.
        try world.perform(StopReading(channel: "general"), as: "bob", connection: 7)
        try world.perform(StopReading(channel: "nowhere"), as: "bob", connection: 7)
    }
}
