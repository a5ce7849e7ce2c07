import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

/// What happens when several users do the same thing at the same moment.
@Suite struct RaceTests {
    @Test("AM-25 SB-05 R04 two users who start the same conversation at once get the same one")
    func conversations() async throws {
        let server = try await TestServer()
        let ann = try await server.socket("ann")
        let bob = try await server.socket("bob")
        let admin = try await server.socket("root", role: .admin)
        for round in 1...30 {
            let third = UserID("third-\(round)")
            try await admin.call(UpsertUser(user: third))
            async let one = ann.call(CreateChannel(type: .conversation, users: ["bob", third]))
            async let other = bob.call(CreateChannel(type: .conversation, users: [third, "ann"]))
            let ids = try await [one.channel.channelId, other.channel.channelId]
            #expect(ids[0] == ids[1])
        }
        #expect(try await ann.call(QueryChannels(types: [.conversation], limit: 100)).items.count == 30)
        try await server.stop()
    }

    @Test("AM-36 R10 I23 of two simultaneous metadata writes one wins entirely, and of two that name a version only one succeeds")
    func metadata() async throws {
        let server = try await TestServer()
        let ann = try await server.socket("ann")
        let bob = try await server.socket("bob")
        try await ann.call(CreateChannel(channel: "general").with { $0.operators = ["bob"] })
        for round in 1...30 {
            let version = round * 2 - 2
            async let first: Channel = ann.call(
                UpdateChannel(channel: "general", metadata: ["ann": .integer(Int64(round)), "x": 1]))
            async let second: Channel = bob.call(
                UpdateChannel(channel: "general", metadata: ["bob": .integer(Int64(round)), "x": 2]))
            let written = try await [first, second].map(\.metadataVersion).sorted()
            let channel = try await ann.call(GetChannel(channel: "general")).channel
            #expect(written == [version + 1, version + 2] && channel.metadataVersion == version + 2)
            let whole: [JSONValue] = [["ann": .integer(Int64(round)), "x": 1], ["bob": .integer(Int64(round)), "x": 2]]
            #expect(channel.metadata.map(whole.contains) == true)
        }
        let at = try await ann.call(GetChannel(channel: "general")).channel.metadataVersion
        async let first = code { try await ann.call(write(1, ifVersion: at)) }
        async let second = code { try await bob.call(write(2, ifVersion: at)) }
        #expect(await Set([first, second]) == [nil, .conflictVersion])
        try await server.stop()
    }

    @Test("R02 where look-alikes are refused, only one of many simultaneous claims to a name succeeds, and one channel is made")
    func names() async throws {
        let server = try await TestServer { $0.options.confusableNames = .refused }
        var sockets: [RawSocket] = []
        for number in 1...8 { sockets.append(try await server.socket(UserID("u\(number)"))) }
        for name in ["Paula", "Раulа"] {
            let codes = try await withThrowingTaskGroup(of: RoostError.Code?.self) { group in
                for socket in sockets { group.addTask { await code { try await socket.call(UpdateMe(displayName: name)) } } }
                return try await group.reduce(into: [RoostError.Code?]()) { $0.append($1) }
            }
            // In the second round the owner of the name may change its spelling.
            #expect(codes.count { $0 == nil } == 1 && codes.count { $0 == .alreadyExists } == 7)
        }
        let ids: [ChannelID] = ["scope", "ѕcope", "sсope", "scоpe", "scoрe", "scopе", "ѕсope", "ѕсоpe"]
        let codes = try await withThrowingTaskGroup(of: RoostError.Code?.self) { group in
            for (socket, id) in zip(sockets, ids) {
                group.addTask { await code { try await socket.call(CreateChannel(channel: id)) } }
            }
            return try await group.reduce(into: [RoostError.Code?]()) { $0.append($1) }
        }
        #expect(codes.count { $0 == nil } == 1 && codes.count { $0 == .alreadyExists } == 7)
        try await server.stop()
    }

    @Test("SB-58 SB-59 R24 a simultaneous edit and deletion leave a deleted message, and an edit that came too late is refused")
    func editsAndDeletions() async throws {
        let server = try await TestServer()
        let (phone, tablet) = (try await server.socket("ann"), try await server.socket("ann"))
        let bob = try await server.socket("bob")
        try await phone.call(CreateChannel(channel: "general"))
        try await bob.call(JoinChannel(channel: "general"))
        for round in 1...30 {
            let message = try await phone.send("general", "message-\(round)")
            async let edited = code { try await phone.call(EditMessage(channel: "general", message: message.messageId, text: "x")) }
            async let deleted = code { try await tablet.call(DeleteMessage(channel: "general", message: message.messageId)) }
            let codes = await [edited, deleted]
            #expect(codes[1] == nil && (codes[0] == nil || codes[0] == .notFound), "\(codes)")
            let left = try await bob.call(GetMessage(channel: "general", message: message.messageId))
            #expect(left.text == "" && left.deletedAt != nil)
            #expect(try await bob.call(GetChannel(channel: "general")).lastMessage == left)
        }
        try await server.stop()
    }

    @Test("SB-60 I10 a reset while messages are being sent hides those before it and none after it, for its caller")
    func resetsAndSends() async throws {
        let server = try await TestServer()
        let (ann, bob) = (try await server.socket("ann"), try await server.socket("bob"))
        try await ann.call(CreateChannel(channel: "general"))
        try await bob.call(JoinChannel(channel: "general"))
        for round in 1...20 {
            async let reset = bob.call(ResetHistory(channel: "general"))
            async let sent = [ann.send("general", "a-\(round)"), ann.send("general", "b-\(round)")]
            let (membership, messages) = try await (reset, sent)
            let seen = try await bob.call(ListMessages(channel: "general")).messages.map(\.seq)
            #expect(seen == messages.map(\.seq).filter { $0 > membership.historyFloor }, "round \(round)")
            #expect(try await bob.call(GetUnread(channel: "general")).unreadCount == seen.count)
            #expect(try await ann.call(ListMessages(channel: "general", limit: 100)).messages.count == round * 2)
        }
        try await server.stop()
    }

    @Test("SB-01 R13 of many simultaneous joins as many succeed as there is room for, and the counter matches a recount")
    func lastPlaces() async throws {
        let server = try await TestServer()
        let owner = try await server.socket("owner")
        try await owner.call(CreateChannel(channel: "general").with { $0.policy = PolicyChanges(maxMembers: 5) })
        var sockets: [RawSocket] = []
        for number in 1...10 { sockets.append(try await server.socket(UserID("u\(number)"))) }
        let codes = try await withThrowingTaskGroup(of: RoostError.Code?.self) { group in
            for socket in sockets { group.addTask { await code { try await socket.call(JoinChannel(channel: "general")) } } }
            return try await group.reduce(into: [RoostError.Code?]()) { $0.append($1) }
        }
        #expect(codes.filter { $0 == nil }.count == 4 && codes.filter { $0 == .memberLimit }.count == 6)
        let members = try await owner.call(ListMembers(channel: "general")).items.count
        let counted = try await owner.call(GetChannel(channel: "general")).channel.counters.memberCount
        #expect([members, counted] == [5, 5])
        try await server.stop()
    }

    private func write(_ value: Int64, ifVersion version: Int) -> UpdateChannel {
        UpdateChannel(channel: "general", metadata: ["v": .integer(value)]).with { $0.ifMetadataVersion = version }
    }
}

/// The code of a refusal; nil if the call succeeded.
private func code(_ body: () async throws -> some Sendable) async -> RoostError.Code? {
    do {
        _ = try await body()
        return nil
    } catch {
        return (error as? RoostError)?.code ?? .internalError
    }
}
