import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

@Suite("Resume")
struct ResumeTests {
    /// Resumes as ann, and returns each channel's changes.
    private func resume(_ world: CoreWorld, _ channels: [String: Seq], after: Seq = 0) throws -> [ChannelID: Changes] {
        let answer = try world.perform(Resume(after: after, channels: channels), as: "ann")
        var found: [ChannelID: Changes] = [:]
        for changes in answer.channels {
            if case .channel(let channel) = changes.stream { found[channel] = changes }
        }
        return found
    }

    @Test("I5 a channel that the client doesn't hold is sent fresh, with its newest messages")
    func fresh() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        let sent = try (0..<30).map { try world.send("\($0)", to: "general", as: "ann") }
        let view = try world.perform(GetChannel(channel: "general"), as: "ann")
        let membership = try #require(view.membership)
        let expected = Changes(
            stream: .channel("general"),
            rows: Rows(
                channel: view.channel, ownCapabilities: ["general": view.ownCapabilities], Array(sent.suffix(Limits.freshMessages)),
                [membership]),
            seq: 31, hasMore: false, isFresh: true)
        #expect(try resume(world, [:]) == ["general": expected])
    }

    @Test("I5 a channel that the client holds is sent with the missed changes; one without changes isn't sent")
    func partial() throws {
        let world = try CoreWorld()
        for channel in ["moved", "still"] as [ChannelID] { try world.channel(channel, owner: "ann") }
        let first = try world.send("first", to: "moved", as: "ann")
        try world.send("second", to: "moved", as: "ann")
        let edited = try world.perform(EditMessage(channel: "moved", message: first.messageId, text: "edited"), as: "ann")
        let third = try world.send("third", to: "moved", as: "ann")
        let view = try world.perform(GetChannel(channel: "moved"), as: "ann")
        let membership = try #require(view.membership)
        let expected = Changes(
            stream: .channel("moved"),
            rows: Rows(counters: view.channel.counters, [third, edited], [membership]), seq: 5,
            hasMore: false)
        #expect(try resume(world, ["moved": 3, "still": 1]) == ["moved": expected])
    }

    @Test("AM-13 I5 a channel whose id is equal to a held one's as a text, and differs in its bytes, isn't held")
    func spellings() throws {
        let world = try CoreWorld()
        let (one, other): (ChannelID, ChannelID) = ("\u{105c9}", "\u{105d2}\u{307}")
        for channel in [one, other] { try world.channel(channel, owner: "ann") }
        let found = try resume(world, [one.rawValue: 1])
        #expect(found.mapValues(\.isFresh) == [other: true])
    }

    @Test("AM-13 R02 I5 a held channel keeps an id that new ones can't have, and the resume that names it is answered")
    func formerSpelling() throws {
        let world = try CoreWorld()
        let former: ChannelID = "\u{ac00}\u{11a8}"
        try world.channel("general", owner: "ann")
        #expect(try world.refusal(CreateChannel(channel: former), as: "ann")?.field == "channel")
        for table: SQL in ["channels", "channel_heads", "members", "channel_names"] {
            try world.execute("UPDATE \(table) SET channel_id = \(former)")
        }
        try world.execute("UPDATE channel_names SET name = \(former) WHERE name = \("general")")
        try world.send("hi", to: former, as: "ann")
        #expect(try resume(world, [former.rawValue: 1])[former]?.rows.messages?.map(\.text) == ["hi"])
        #expect(try world.code(DeleteChannel(channel: former), as: "ann") == nil)
    }

    @Test("R39 a part of the ids brings only those channels, also ones that the client doesn't hold, and all parts bring all")
    func parts() throws {
        let world = try CoreWorld()
        // In the order of their bytes, which isn't alphabetical.
        let ids: [ChannelID] = ["Zoo", "a", "b", "c", "ä", "日"]
        for id in ids { try world.channel(id, owner: "ann") }
        try world.perform(DeleteChannel(channel: "b"), as: "ann")
        func part(_ channels: [String: Seq], from: ChannelID?, before: ChannelID?) throws -> [String] {
            let operation = Resume(after: 0, channels: channels, from: from, before: before)
            let streams = try world.perform(operation, as: "ann").channels.map(\.stream)
            return streams.compactMap { if case .channel(let id) = $0 { id.rawValue } else { nil } }.sorted()
        }
        // Clients that hold a deleted channel get its end.
        #expect(try part(["a": 1, "b": 1], from: nil, before: "c") == ["Zoo", "b"])
        #expect(try part([:], from: "a", before: "c") == ["a"])
        #expect(try part(["日": 0], from: "c", before: nil) == ["c", "ä", "日"].sorted())
        #expect(try part([:], from: "ä", before: "日") == ["ä"])
        #expect(try part([:], from: nil, before: nil) == ["Zoo", "a", "c", "ä", "日"].sorted())
    }

    @Test("R39 a part without ids, and a position outside it, are refused by the name of the field")
    func impossibleParts() throws {
        let world = try CoreWorld()
        try world.user("ann")
        let refused: [(String, Resume)] = [
            ("before", Resume(after: 0, channels: [:], from: "b", before: "a")),
            ("before", Resume(after: 0, channels: [:], from: "a", before: "a")),
            ("before", Resume(after: 0, channels: [:], before: "")),
            ("from", Resume(after: 0, channels: [:], from: "a/b")),
            ("channels", Resume(after: 0, channels: ["a": 1], from: "b")),
            ("channels", Resume(after: 0, channels: ["b": 1], before: "b")),
        ]
        for (field, operation) in refused {
            #expect(try world.refusal(operation, as: "ann")?.field == field)
        }
    }

    @Test("I5 beyond 500 missed messages a channel is sent fresh instead", arguments: [500, 501])
    func tooMuchMissed(count: Int) throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        try world.send("held", to: "general", as: "ann")
        for number in 0..<count { try world.send("\(number)", to: "general", as: "ann") }
        let changes = try #require(try resume(world, ["general": 2])["general"])
        let found = [changes.isFresh == true, changes.rows.messages?.count == count, changes.hasMore]
        #expect(found == [count > 500, count <= 500, false])
    }

    @Test(
        "I5 beyond 500 old messages that were changed or deleted for good a channel is sent fresh too", arguments: [500, 501],
        [true, false])
    func tooMuchChanged(count: Int, isPurged: Bool) throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        try world.user("root")
        let sent = try (0..<count).map { try world.send("\($0)", to: "general", as: "ann") }
        let held = try world.perform(GetChannel(channel: "general"), as: "ann").channel.counters.seq
        for message in sent {
            if isPurged {
                try world.perform(PurgeMessage(channel: "general", message: message.messageId), as: "root", role: .admin)
            } else {
                try world.perform(EditMessage(channel: "general", message: message.messageId, text: "edited"), as: "ann")
            }
        }
        try world.send("newest", to: "general", as: "ann")
        let changes = try #require(try resume(world, ["general": held])["general"])
        #expect((changes.isFresh == true) == (count > 500))
    }

    @Test("AM-34 the end of a channel deleted meanwhile is sent, unless the client never had it")
    func deleted() throws {
        let world = try CoreWorld()
        for channel in ["held", "unknown"] as [ChannelID] {
            try world.channel(channel, owner: "ann")
            try world.perform(DeleteChannel(channel: channel), as: "ann")
        }
        let found = try resume(world, ["held": 1])
        #expect(Array(found.keys) == ["held"])
        #expect(found["held"]?.rows.channel?.deletedAt == world.now)
        #expect(found["held"]?.rows.memberships?.map(\.state) == [MembershipState.none])
    }

    @Test("I9 for a channel that the caller left the end of the membership is sent, and nothing of the channel")
    func left() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        let place = try world.perform(GetMyChanges(after: 0), as: "ann").seq
        try world.perform(LeaveChannel(channel: "general"), as: "ann")
        try world.send("secret", to: "general", as: "bob")
        let answer = try world.perform(Resume(after: place, channels: ["general": 1]), as: "ann")
        #expect(answer.channels == [])
        #expect(answer.user.rows.memberships?.map(\.state) == [MembershipState.none])
    }

    @Test("I9 a removed member learns nothing more of a private channel, not even its position")
    func removed() throws {
        let world = try CoreWorld()
        try world.channel("private", type: .messaging, owner: "ann", members: ["bob"])
        try world.perform(RemoveMembers(channel: "private", users: ["bob"]), as: "ann")
        func known() throws -> Membership? { try world.perform(GetMyChanges(after: 0), as: "bob").rows.memberships?.last }
        let before = try #require(try known())
        #expect(before.state == MembershipState.none)
        try world.send("secret", to: "private", as: "ann")
        #expect(try known() == before)
        try world.perform(DeleteChannel(channel: "private"), as: "ann")
        #expect(try known() == before)
    }

    @Test("I9 a non-member who names a channel gets nothing of it")
    func stranger() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "bob")
        try world.send("secret", to: "general", as: "bob")
        try world.user("ann")
        #expect(try resume(world, ["general": 0, "unknown": 0]) == [:])
    }

    @Test("I20 for a place beyond a channel's end the channel is sent fresh")
    func restoredBackup() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        #expect(try resume(world, ["general": 100])["general"]?.isFresh == true)
    }

    @Test("I18 an answer holds about 2000 rows, and says that there is more until all are sent")
    func isBounded() throws {
        let world = try CoreWorld()
        var held: [String: Seq] = [:]
        for number in 0..<7 {
            let channel = ChannelID("c\(number)")
            try world.channel(channel, owner: "ann")
            for number in 0..<400 { try world.send("\(number)", to: channel, as: "ann") }
            held[channel.rawValue] = 1
        }
        var sizes: [Int] = []
        var hasMore = true
        while hasMore, sizes.count < 10 {
            let answer = try world.perform(Resume(after: 0, channels: held), as: "ann")
            for changes in answer.channels {
                if case .channel(let channel) = changes.stream { held[channel.rawValue] = changes.seq }
            }
            sizes.append(answer.channels.reduce(0) { $0 + ($1.rows.messages?.count ?? 0) })
            hasMore = answer.hasMore
        }
        #expect(sizes == [2000, 800])
        #expect(Array(held.values) == Array(repeating: 401, count: 7))
    }

    @Test(
        "I18 the first answer to a client without channels holds about 500 rows, those of the most recently active channels in their order"
    )
    func firstPage() throws {
        let world = try CoreWorld()
        let channels = (0..<60).map { ChannelID("c\($0)") }
        for channel in channels { try world.channel(channel, owner: "ann") }
        let order = channels.enumerated().sorted { $0.offset % 7 < $1.offset % 7 }.map(\.element)
        for channel in order {
            world.advance(milliseconds: 1000)
            for number in 0..<9 { try world.send("\(number)", to: channel, as: "ann") }
        }
        let first = try world.perform(Resume(after: 0, channels: [:]), as: "ann")
        let names = { (answer: Resumption) in answer.channels.map { String("\($0.stream)".dropFirst("channel:".count)) } }
        #expect(names(first) == order.reversed().prefix(50).map(\.rawValue) && first.hasMore)
        let held = Dictionary(uniqueKeysWithValues: zip(names(first), first.channels.map(\.seq)))
        let second = try world.perform(Resume(after: first.user.seq, channels: held), as: "ann")
        #expect(names(second) == order.prefix(10).reversed().map(\.rawValue) && !second.hasMore)
    }

    @Test("SB-04 what is left of an ephemeral channel is sent, however many messages were missed, and says that some are gone")
    func ephemeral() throws {
        let world = try CoreWorld()
        try world.user("ann")
        var create = CreateChannel(channel: "echo", type: .group)
        create.isEphemeral = true
        try world.perform(create, as: "ann")
        for number in 0..<(Limits.resumeMessagesPerChannel + 1) { try world.send("\(number)", to: "echo", as: "ann") }
        let changes = try #require(try resume(world, ["echo": 1])["echo"])
        let view = try world.perform(GetChannel(channel: "echo"), as: "ann")
        let membership = try #require(view.membership)
        #expect(
            changes
                == Changes(
                    stream: .channel("echo"),
                    rows: Rows(counters: view.channel.counters, [membership]),
                    seq: 502, hasMore: false, isIncomplete: true))
        #expect(membership.readCount == 501)
    }

    @Test("AM-48 the caller's permissions are sent only with a change of the channel or of the caller's own role")
    func capabilities() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "bob", members: ["ann", "cid"])
        func bringsCapabilities() throws -> Bool {
            let seq = try world.perform(GetChannel(channel: "general"), as: "ann").channel.counters.seq
            return try resume(world, ["general": seq - 1])["general"]?.rows.ownCapabilities?["general"]
                == world.perform(GetChannel(channel: "general"), as: "ann").ownCapabilities
        }
        var found: [Bool] = []
        for operation in [
            FreezeChannel(channel: "general"), SendMessage(channel: "general", clientId: "1", text: "x"),
            SetMemberRole(channel: "general", users: ["ann"], role: .operator),
            SetMemberRole(channel: "general", users: ["cid"], role: .operator),
        ] as [any Handled] {
            #expect(try world.code(operation, as: "bob") == nil)
            found.append(try bringsCapabilities())
        }
        #expect(found == [true, false, true, false])
    }

    @Test("I18 NF-04 channels with long names and tags are sent in pages of about 1 MiB, each of them once")
    func largeChannels() throws {
        let world = try CoreWorld()
        for user in ["ann", "eve"] as [UserID] { try world.user(user) }
        let count = 300
        let tags = (0..<Limits.channelTags).map { "\(100 + $0)" + String(repeating: "日", count: Limits.tagLength - 3) }
        let text = String(repeating: "日", count: 128)
        try world.batch {
            for number in 0..<count {
                let id = ChannelID("\(1000 + number)" + String(repeating: "日", count: Limits.identifierLength - 4))
                let create = CreateChannel(
                    channel: id, type: .community, displayName: text, avatarFileId: text, customType: text, tags: tags,
                    users: ["ann"])
                try world.perform(create, as: "eve")
            }
        }
        var (held, after, pages): ([String: Seq], Seq, Int) = ([:], 0, 0)
        var hasMore = true
        while hasMore, pages < 20 {
            let answer = try world.perform(Resume(after: after, channels: held), as: "ann")
            #expect(!answer.channels.isEmpty)
            #expect(try JSONWriter.bytes(of: answer.channels).count < Limits.pageContentBytes / 10 * 11)
            for changes in answer.channels {
                guard case .channel(let channel) = changes.stream else { continue }
                #expect(held.updateValue(changes.seq, forKey: channel.rawValue) == nil)
            }
            (after, hasMore, pages) = (answer.user.seq, answer.hasMore, pages + 1)
        }
        #expect(held.count == count && (2...5).contains(pages))
    }

    @Test("I5 one missed message in each of many channels is sent in one answer")
    func manyChannels() throws {
        let world = try CoreWorld()
        // With the caller's membership beside each message these are more rows than one answer holds.
        let count = Limits.resumeRows.max / 3 + 10
        var positions: [String: Seq] = [:]
        for number in 0..<count {
            let channel = ChannelID("room-\(number)")
            try world.channel(channel, owner: "bob", members: ["ann"])
            positions[channel.rawValue] = try world.database.read { try $0.streams(of: "ann").channels[channel] } ?? 0
            try world.send("hi", to: channel, as: "bob")
        }
        let after = try world.database.read { try $0.streams(of: "ann").user }
        let answer = try world.perform(Resume(after: after, channels: positions), as: "ann")
        #expect(answer.channels.count == count)
        #expect(!answer.hasMore)
    }
}
