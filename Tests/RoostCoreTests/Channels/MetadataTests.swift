import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

/// The attributes of a channel: names, pictures, data, tags and metadata.
@Suite("Attributes of channels") struct MetadataTests {
    private func world() throws -> CoreWorld {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        return world
    }

    @Test("AM-04 AM-06 AM-11 AM-12 SB-08 SB-09 SB-11 R01 every attribute is created, updated, removed and read")
    func attributes() throws {
        let world = try world()
        var create = CreateChannel(
            channel: "new", type: .group, displayName: "Name", avatarFileId: "file", tags: ["a", "b"], metadata: ["k": 1],
            users: ["bob"])
        create.coverUrl = "https://example.org/cover.png"
        create.customType = "team"
        create.data = "{}"
        create.operators = ["bob"]
        let view = try world.perform(create, as: "ann")
        var expected = Channel(
            channelId: "new", type: .group,
            counters: ChannelCounters(seq: 1, memberCount: 2, messageCount: 0, lastActivity: world.now), createdBy: "ann",
            createdAt: world.now, updatedAt: world.now)
        expected.displayName = "Name"
        expected.avatarFileId = "file"
        expected.coverUrl = "https://example.org/cover.png"
        expected.customType = "team"
        expected.data = "{}"
        expected.tags = ["a", "b"]
        expected.metadata = ["k": 1]
        expected.metadataVersion = 1
        expected.metadataUpdatedBy = "ann"
        #expect(view.channel == expected)
        #expect(try world.perform(GetMember(channel: "new", user: "bob"), as: "ann").member.role == .operator)

        var update = UpdateChannel(channel: "new", displayName: "", avatarFileId: "", tags: [])
        update.coverUrl = ""
        update.customType = ""
        update.data = ""
        let emptied = try world.perform(update, as: "bob")
        let values = [emptied.displayName, emptied.avatarFileId, emptied.coverUrl, emptied.customType, emptied.data]
        #expect(values == [nil, nil, nil, nil, nil] && emptied.tags == [])
    }

    @Test("AM-06 AM-34 a tag rewritten in another Unicode form is found in the new form only")
    func tagForms() throws {
        let world = try world()
        let (composed, decomposed) = ("caf\u{e9}", "cafe\u{301}")
        func found(_ tag: String) throws -> [[ChannelID]] {
            try [QueryChannels(includingTags: [tag]), QueryChannels(membership: .all, includingTags: [tag])].map { query in
                try world.perform(query, as: "ann").items.map(\.channel.channelId)
            }
        }
        let (here, nowhere): ([[ChannelID]], [[ChannelID]]) = ([["general"], ["general"]], [[], []])
        for (tag, other) in [(composed, decomposed), (decomposed, composed)] {
            let channel = try world.perform(UpdateChannel(channel: "general", tags: [tag]), as: "ann")
            #expect(channel.tags.map { Array($0.utf8) } == [Array(tag.utf8)])
            #expect(try found(tag) == here)
            #expect(try found(other) == nowhere)
        }
        // In one list they count as a duplicate tag.
        #expect(try world.code(UpdateChannel(channel: "general", tags: [composed, decomposed]), as: "ann") == .invalidArgument)
    }

    @Test("AM-35 AM-36 R10 the last writer of the metadata wins, and everyone sees the version and the writer")
    func lastWriterWins() throws {
        let world = try world()
        try world.perform(SetMemberRole(channel: "general", users: ["bob"], role: .operator), as: "ann")
        try world.perform(UpdateChannel(channel: "general", metadata: ["a": 1]), as: "ann")
        let notices = try world.notices { try world.perform(UpdateChannel(channel: "general", metadata: ["b": 2]), as: "bob") }
        let channel = try world.perform(GetChannel(channel: "general"), as: "ann").channel
        #expect(channel.metadata == ["b": 2] && channel.metadataVersion == 2 && channel.metadataUpdatedBy == "bob")
        guard case .event(let event, .channel("general", _)) = notices.first else { throw RoostError(.internalError, "\(notices)") }
        #expect(event.kind == .channelMetadataUpdated && event.rows == Rows(channel: channel))
    }

    @Test("AM-36 R10 a writer who names a version overwrites no other")
    func ifVersion() throws {
        let world = try world()
        func write(_ value: Int64, if version: Int?) throws -> RoostError? {
            try world.refusal(
                UpdateChannel(channel: "general", metadata: ["v": .integer(value)]).with { $0.ifMetadataVersion = version },
                as: "ann")
        }
        #expect(try write(1, if: 0) == nil)
        #expect(
            try write(2, if: 0)
                == RoostError(.conflictVersion, "The metadata is at version 1.", field: "ifMetadataVersion", limit: 1))
        #expect(try write(2, if: 1) == nil)
        #expect(try write(3, if: nil) == nil)
        #expect(try world.perform(GetChannel(channel: "general"), as: "bob").channel.metadataVersion == 3)
        let lone = UpdateChannel(channel: "general").with { $0.ifMetadataVersion = 3 }
        #expect(try world.code(lone, as: "ann") == .invalidArgument)
    }

    @Test("AM-35 R10 metadata has at most 100,000 bytes and 32 levels")
    func metadataLimits() throws {
        let world = try world()
        func text(_ bytes: Int) -> JSONValue { ["k": .string(String(repeating: "x", count: bytes - #"{"k":""}"#.utf8.count))] }
        func nested(_ levels: Int) -> JSONValue { (1..<levels).reduce(.object([:])) { value, _ in ["k": value] } }
        let codes = try [text(100_000), text(100_001), text(1_000_000), nested(32), nested(33), .array([]), .string("x")].map {
            try world.code(UpdateChannel(channel: "general", metadata: $0), as: "ann")
        }
        #expect(
            codes == [nil, .limitExceeded, .limitExceeded, nil, .limitExceeded, .invalidArgument, .invalidArgument])
    }

    @Test(
        "SB-08 a cover is the address of a picture",
        arguments: [
            "file:///etc/passwd", "javascript:alert(1)", "https://a b", "//example.org", "https://\u{0}", "http",
            "https://" + String(repeating: "x", count: 2041),
        ])
    func coverUrl(url: String) throws {
        let world = try world()
        let refusal = try world.refusal(CreateChannel().with { $0.coverUrl = url }, as: "ann")
        #expect(refusal?.field == "coverUrl")
    }

    @Test("AM-09 AM-10 R01 counters match a recount, and the last activity includes that of members")
    func counters() throws {
        let world = try world()
        world.advance(milliseconds: 5)
        try world.send("hi", to: "general", as: "bob")
        let sentAt = world.now
        world.advance(milliseconds: 5)
        for user in ["cid", "dan"] as [UserID] { try world.user(user) }
        try world.perform(AddMembers(channel: "general", users: ["cid", "dan"]), as: "ann")
        world.advance(milliseconds: 5)
        try world.perform(RemoveMembers(channel: "general", users: ["cid"]), as: "ann")
        let counters = try world.perform(GetChannel(channel: "general"), as: "ann").channel.counters
        #expect(
            counters == ChannelCounters(seq: 4, memberCount: 3, messageCount: 1, lastActivity: world.now, lastMessageAt: sentAt))
    }

    @Test("SB-04 R05 an ephemeral channel sends its messages to connected members, counts them, and stores none")
    func ephemeral() throws {
        let world = try world()
        let create = CreateChannel(channel: "moment", type: .group, users: ["bob"]).with { $0.isEphemeral = true }
        #expect(try world.perform(create, as: "ann").channel.isEphemeral)
        let message = try world.send("now", to: "moment", as: "ann")
        #expect(world.events(to: .channel("moment")).last?.rows.messages == [message])
        let view = try world.perform(GetChannel(channel: "moment"), as: "bob")
        #expect(view.unreadCount == 1 && view.channel.counters.messageCount == 1 && view.lastMessage == nil)
        #expect(try world.perform(ListMessages(channel: "moment"), as: "bob").messages == [])
        #expect(try world.code(EditMessage(channel: "moment", message: message.messageId, text: "x"), as: "ann") == .notFound)
        #expect(try world.perform(MarkRead(channel: "moment", seq: 1), as: "bob").unreadCount == 0)
        let changes = try world.perform(GetChannelChanges(channel: "moment", after: 1), as: "bob")
        #expect(changes.isIncomplete == true && changes.rows.messages == nil && changes.seq == message.seq)
        #expect(try world.code(CreateChannel(type: .community).with { $0.isEphemeral = true }, as: "ann") == .kindForbids)
    }

    @Test("AM-34 R12 a user invited to a deleted channel has nothing left to accept, and is notified")
    func deletionWithdraws() throws {
        let world = try world()
        try world.user("eve")
        try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: "eve")
        try world.perform(InviteMembers(channel: "general", users: ["eve"]), as: "bob")
        try world.perform(DeleteChannel(channel: "general"), as: "ann")
        #expect(world.events(to: .user("eve")).last?.rows.invitations?.map(\.state) == [.withdrawn])
        #expect(world.events(to: .user("bob")).last?.rows.invitations?.map(\.state) == [.withdrawn])
        #expect(try world.perform(ListMyInvitations(), as: "eve").items == [])
        #expect(try world.code(AcceptInvitation(channel: "general"), as: "eve") == .notInvited)
    }
}
