import RoostAPI
import RoostTestSupport
import Testing

/// Events reach their audience and nobody else, in order, before the reply.
@Suite struct DeliveryTests {
    @Test("AM-02 SB-58 SB-59 members get every durable event of a channel in order, whether they watch or not")
    func members() async throws {
        let server = try await TestServer()
        let ann = try await server.socket("ann")
        let bob = try await server.socket("bob")
        let eve = try await server.socket("eve")
        try await ann.call(CreateChannel(channel: "general", users: ["bob"]))
        #expect(try await bob.nextEvent().kind == .channelCreated)
        let sent = try await ann.call(SendMessage(channel: "general", clientId: "1", text: "one"))
        let edited = try await ann.call(EditMessage(channel: "general", message: sent.messageId, text: "two"))
        let deleted = try await ann.call(DeleteMessage(channel: "general", message: sent.messageId))
        var events: [Event] = []
        for _ in 0..<3 { events.append(try await bob.nextEvent()) }
        #expect(events.map(\.kind) == [.messageNew, .messageUpdated, .messageDeleted])
        #expect(events.map(\.seq) == [2, 3, 4])
        #expect(events.compactMap { $0.rows.messages?.first } == [sent, edited, deleted])
        // Non-members get nothing: the next thing that reaches eve is the answer to her own call.
        #expect(try await eve.call(GetMe()).userId == "eve")
        #expect(await eve.events.isEmpty)
        try await server.stop()
    }

    @Test("D-13 the caller's own connections get the event too, before the reply")
    func ownEcho() async throws {
        let server = try await TestServer()
        let phone = try await server.socket("ann")
        let laptop = try await server.socket("ann")
        try await phone.call(CreateChannel(channel: "general"))
        _ = try await laptop.nextEvent()
        let sent = try await phone.call(SendMessage(channel: "general", clientId: "mine", text: "hi"))
        let own = await phone.events.compactMap { $0.rows.messages?.first }
        let other = try await laptop.nextEvent().rows.messages
        #expect([own, other] == [[sent], [sent]])
        try await server.stop()
    }

    @Test("SB-20 I9 a member who leaves gets nothing newer; a new one gets everything from joining on")
    func leaving() async throws {
        let server = try await TestServer()
        let ann = try await server.socket("ann")
        let bob = try await server.socket("bob")
        try await ann.call(CreateChannel(channel: "general"))
        try await bob.call(JoinChannel(channel: "general"))
        try await ann.call(SendMessage(channel: "general", clientId: "1", text: "heard"))
        try await bob.call(LeaveChannel(channel: "general"))
        try await ann.call(SendMessage(channel: "general", clientId: "2", text: "unheard"))
        try await bob.call(GetMe())
        #expect(await bob.events.map(\.kind) == [.memberJoined, .messageNew, .memberLeft])
        #expect(await bob.events.compactMap { $0.rows.messages?.first?.text } == ["heard"])
        try await server.stop()
    }

    @Test("ST-05 ST-07 ST-10 watching marks the events of the channel, and answers with its state")
    func watching() async throws {
        let server = try await TestServer()
        let ann = try await server.socket("ann")
        let bob = try await server.socket("bob")
        try await ann.call(CreateChannel(channel: "general", users: ["bob"]))
        let state = try await bob.call(WatchChannel(channel: "general"))
        #expect([state.online, state.watcherCount, state.members.count, state.read.count] == [2, 1, 2, 2])
        #expect(state.config == ChannelPolicy.preset(.community))
        _ = try await ann.post(SendMessage(channel: "general", clientId: "1", text: "hi"))
        guard case .text(let toWatcher) = await bob.next() else { throw Missed("an event") }
        #expect(toWatcher.hasPrefix(#"{"watching":true,"message":{"#))
        try await bob.call(UnwatchChannel(channel: "general"))
        _ = try await ann.post(SendMessage(channel: "general", clientId: "2", text: "hi"))
        guard case .text(let toMember) = await bob.next() else { throw Missed("an event") }
        #expect(toMember.hasPrefix(#"{"watching":false,"#))
        try await server.stop()
    }

    @Test("AM-34 EM-13 a deleted channel ends for all its members immediately")
    func deleted() async throws {
        let server = try await TestServer()
        let ann = try await server.socket("ann")
        let bob = try await server.socket("bob")
        try await ann.call(CreateChannel(channel: "general", users: ["bob"]))
        _ = try await bob.nextEvent()
        try await ann.call(DeleteChannel(channel: "general"))
        let event = try await bob.nextEvent()
        #expect(event.kind == .channelDeleted && event.rows.channel?.deletedAt != nil)
        let refusal = await #expect(throws: RoostError.self) {
            try await bob.call(SendMessage(channel: "general", clientId: "1", text: "too late"))
        }
        #expect(refusal?.code == .notPermitted)
        #expect(try await bob.call(QueryChannels()).items.isEmpty)
        try await server.stop()
    }
}
