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

    @Test("AM-45 a user who begins to read has read everything, also the second time and under the channel's other name")
    func start() throws {
        let world = try world()
        var answer: UnreadCount?
        let notices = try world.notices {
            answer = try world.perform(StartReading(channel: "general"), as: "bob", connection: 7)
        }
        #expect(answer == UnreadCount(channelId: "general", unreadCount: 0, readSeq: 3))
        guard case .event(let marked, .user("bob"))? = notices.first else { throw Missed("\(notices)") }
        #expect(notices.last == .reading(Self.phone, "general", since: 1, at: marked.seq, channelSeq: 3))
        let kinds = notices.compactMap { if case .event(let event, _) = $0 { event.kind } else { nil } }
        #expect(kinds == [.readingMarked])
        #expect(
            try world.notices { try world.perform(StartReading(channel: "community:general"), as: "bob", connection: 7) }
                == [.reading(Self.phone, "general", since: 1, at: marked.seq, channelSeq: 3)])
        #expect(
            try world.notices { try world.perform(StopReading(channel: "community:general"), as: "bob", connection: 7) }
                == [.stoppedReading(Self.phone, "general")])
        // Stopping marks nothing as read.
        try world.send("c", to: "general", as: "ann")
        try world.perform(StopReading(channel: "general"), as: "bob", connection: 7)
        #expect(try world.perform(GetUnread(channel: "general"), as: "bob").unreadCount == 1)
    }

    @Test("AM-45 R26 X-33 a user who may not read can clear unread messages, and isn't sent or listed as a reader")
    func withoutTheRight() throws {
        let world = try world()
        try world.user("cid")
        try world.perform(JoinChannel(channel: "general"), as: "cid")
        let policy = PolicyChanges(read: .operators, deliveryEvents: true)
        try world.perform(UpdateChannel(channel: "general", policy: policy), as: "ann")
        try world.perform(SetMemberRole(channel: "general", users: ["cid"], role: .operator), as: "ann")
        let sent = try world.send("c", to: "general", as: "ann")
        let before = try world.dump()
        #expect(try world.code(StartReading(channel: "general"), as: "bob", connection: 7) == .notPermitted)
        #expect(try world.code(MarkDelivered(channel: "general", seq: sent.seq), as: "bob") == .notPermitted)
        #expect(try world.dump() == before)
        func reported(as user: UserID) throws -> [UserID] {
            let notices = try world.notices { try world.perform(MarkRead(channel: "general"), as: user) }
            #expect(try world.perform(GetUnread(channel: "general"), as: user).unreadCount == 0)
            return notices.compactMap { if case .read(let position, _) = $0 { position.userId } else { nil } }
        }
        #expect(try reported(as: "bob") == [] && reported(as: "cid") == ["cid"])
        func readers(_ message: MessageID?) throws -> [UserID] {
            try world.perform(ListReaders(channel: "general", message: message), as: "ann").items.map(\.userId)
        }
        func watched() throws -> Set<String> {
            Set(try world.perform(WatchChannel(channel: "general"), as: "ann", connection: 8).read.keys)
        }
        #expect(try readers(sent.messageId) == ["cid"] && readers(nil) == ["ann", "cid"] && watched() == ["ann", "cid"])
        // A mark is the user's own decision: it holds once they may read again.
        try world.perform(UpdateChannel(channel: "general", policy: PolicyChanges(read: .members)), as: "ann")
        #expect(try readers(sent.messageId) == ["bob", "cid"] && watched() == ["ann", "bob", "cid"])
        #expect(try world.perform(StartReading(channel: "general"), as: "bob", connection: 7).unreadCount == 0)
    }

    @Test(
        "AM-45 X-33 where only admins read, or nobody, a member can't begin to read or mark as delivered",
        arguments: [.admins, .nobody] as [ChannelPolicy.Audience])
    func withoutReaders(read: ChannelPolicy.Audience) throws {
        let world = try world()
        let policy = PolicyChanges(read: read, deliveryEvents: true)
        try world.perform(UpdateChannel(channel: "general", policy: policy), as: "ann", role: .admin)
        let before = try world.dump()
        #expect(try world.code(StartReading(channel: "general"), as: "bob", connection: 7) == .kindForbids)
        #expect(try world.code(MarkDelivered(channel: "general", seq: 3), as: "bob") == .kindForbids)
        #expect(try world.dump() == before)
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
        // A former member may still stop.
        try world.perform(StopReading(channel: "general"), as: "bob", connection: 7)
        try world.perform(StopReading(channel: "nowhere"), as: "bob", connection: 7)
    }
}
