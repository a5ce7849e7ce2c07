import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Kinds and fields of messages")
struct MessageKindTests {
    @Test("SB-33 R19 R40 an admin message goes to up to 100 channels, to all or to none, once for its client id")
    func admin() throws {
        let world = try CoreWorld()
        for channel in ["a", "b", "c"] as [ChannelID] { try world.channel(channel, owner: "ann") }
        // A conversation's member writes there as themselves, whatever their token says.
        try world.channel("talk", type: .conversation, owner: "root", members: ["ben"])
        func send(_ channels: [ChannelID], _ clientId: ClientID = "1") -> SendAdminMessage {
            SendAdminMessage(channels: channels, clientId: clientId, text: "Maintenance at noon")
        }
        let sent = try world.perform(send(["a", "b"]), as: "root", role: .admin).messages
        #expect(sent.map(\.channelId) == ["a", "b"] && sent.allSatisfy { $0.kind == .admin && $0.sender == "root" })
        #expect(try world.perform(GetUnread(channel: "a"), as: "ann").unreadCount == 1)
        // Again, with one more channel: that one gets it.
        let again = try world.perform(send(["c", "b", "a"]), as: "root", role: .admin).messages
        #expect(again.map(\.channelId) == ["c", "b", "a"] && again[2] == sent[0])
        #expect(try world.perform(ListMessages(channel: "c"), as: "ann").messages == [again[0]])
        // If one channel lets no admin send, or doesn't exist, nothing is sent.
        let before = try world.dump()
        for (channels, code, field) in [
            (["a", "talk"], RoostError.Code.kindForbids, "channels[1]"), (["nowhere", "a"], .notFound, "channels[0]"),
            (["a", "a"], .invalidArgument, "channels"), (["a", "community:a"], .invalidArgument, "channels"),
            ([], .invalidArgument, "channels"), ((0...100).map { ChannelID("c\($0)") }, .limitExceeded, "channels"),
        ] as [([ChannelID], RoostError.Code, String)] {
            let refusal = try world.refusal(send(channels, "2"), as: "root", role: .admin)
            #expect(refusal?.code == code && refusal?.field == field, "\(channels.prefix(3))")
        }
        #expect(try world.code(send(["a"], "2"), as: "ann") == .notPermitted)
        var custom = send(["a"], "2")
        custom.content.kind = .custom
        #expect(try world.refusal(custom, as: "root", role: .admin)?.field == "kind")
        var answer = send(["b", "a"], "2")
        answer.content.parentId = again[2].messageId
        #expect(try world.refusal(answer, as: "root", role: .admin)?.field == "parentId")
        // All copies are written and answered at once.
        let data = String(repeating: "é", count: 20_000)
        var large = SendAdminMessage(channels: [], clientId: "2", text: data, data: data)
        large.content.metadata = .object(["a": .string(String(repeating: "b", count: 99_000))])
        let tooMany = Limits.adminMessagesSizeBytes / large.content.sizeBytes + 1
        large.channels = (0..<tooMany).map { ChannelID("c\($0)") }
        let refusal = try world.refusal(large, as: "root", role: .admin)
        #expect(refusal?.code == .limitExceeded && refusal?.field == "channels" && refusal?.limit == 10_000_000)
        let longest = String(repeating: "\u{1F600}", count: 20_000)
        let text = SendAdminMessage(channels: (0..<100).map { ChannelID("c\($0)") }, clientId: "2", text: longest)
        #expect(try world.refusal(text, as: "root", role: .admin)?.code == .notFound)
        var less = large
        less.channels.removeLast()
        #expect(try world.refusal(less, as: "root", role: .admin)?.code == .notFound)
        #expect(try world.dump() == before)
    }

    @Test("R19 I4 an admin message stays acknowledged after edits, and after its parent and its channels are deleted")
    func adminAgain() throws {
        let world = try CoreWorld()
        for channel in ["a", "b", "c"] as [ChannelID] { try world.channel(channel, owner: "ann") }
        try world.user("root")
        let parent = try world.send("question", to: "a", as: "ann").messageId
        let answer = SendAdminMessage(channels: ["a"], clientId: "1", text: "answer", parentId: parent)
        let news = SendAdminMessage(channels: ["a", "b"], clientId: "2", text: "news", mentionees: [.channel])
        func perform(_ operation: SendAdminMessage) throws -> [Message] {
            try world.perform(operation, as: "root", role: .admin).messages
        }
        let (answered, sent) = (try perform(answer), try perform(news))
        try world.perform(DeleteMessage(channel: "a", message: parent), as: "ann")
        try world.perform(DeleteChannel(channel: "b"), as: "ann")
        world.options.isMentionAllEnabled = false
        let before = try world.dump()
        #expect(try perform(answer) == answered && perform(news) == sent)
        #expect(try world.dump() == before)
        // It goes to all channels that don't have it, or to none of them.
        var more = news
        more.channels = ["a", "b", "nowhere"]
        #expect(try world.refusal(more, as: "root", role: .admin)?.field == "channels[2]")
        more.channels = ["b", "community:b"]
        #expect(try world.refusal(more, as: "root", role: .admin)?.field == "channels")
        #expect(try world.dump() == before)
        world.options.isMentionAllEnabled = true
        more.channels = ["b", "c"]
        let other = try perform(more)
        #expect(other.first == sent.last && other.last?.channelId == "c")
        #expect(try world.perform(ListMessages(channel: "c"), as: "ann").messages == [other[1]])
    }

    @Test("R19 message.send refuses admin and system messages, and custom ones need a custom type but no text")
    func kinds() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        func refusal(
            _ kind: MessageKind, text: String = "x", customType: String? = nil, _ clientId: ClientID = "1"
        ) throws -> RoostError? {
            try world.refusal(
                SendMessage(channel: "general", clientId: clientId, text: text, kind: kind, customType: customType), as: "ann")
        }
        let before = try world.dump()
        #expect(try refusal(.admin)?.field == "kind" && refusal(.system)?.field == "kind")
        #expect(try refusal(.unknown("poll"))?.message == "kind must be one of: text, admin, system, custom.")
        #expect(try refusal(.custom)?.field == "customType" && refusal(.custom, customType: "")?.field == "customType")
        #expect(try refusal(.text, text: " \n\t")?.field == "text")
        #expect(try world.dump() == before)
        #expect(try refusal(.custom, text: "", customType: "card") == nil)
        let card = try #require(try world.perform(ListMessages(channel: "general"), as: "ann").messages.first)
        #expect(card.kind == .custom && card.text == "" && card.customType == "card")
        // An edited message must be one that could be sent.
        try world.perform(EditMessage(channel: "general", message: card.messageId, text: "a"), as: "ann")
        let text = try world.send("x", to: "general", as: "ann")
        for blank in ["", " ", "\u{200B}"] {
            // A custom one may be edited to anything that it may be sent with.
            #expect(try refusal(.custom, text: blank, customType: "card", "blank \(blank.utf8.count)") == nil)
            let edited = try world.perform(EditMessage(channel: "general", message: card.messageId, text: blank), as: "ann")
            #expect(edited.text == blank)
            let edit = EditMessage(channel: "general", message: text.messageId, text: blank)
            #expect(try world.refusal(edit, as: "ann")?.field == "text")
        }
        #expect(
            try world.refusal(EditMessage(channel: "general", message: card.messageId, customType: ""), as: "ann")?.field
                == "customType")
    }

    @Test("R21 SB-36 SB-38 SB-39 a message keeps whom it mentions, its lists, its push option and target languages")
    func options() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["ben"])
        var content = MessageContent(
            text: "x", customType: "t", data: "{}", mentionees: [.users(["ben"]), .channel],
            metaArrays: ["votes": ["b", "a", "b"]],
            pushOption: .suppress, targetLanguages: ["de", "pt-BR"])
        let sent = try world.perform(SendMessage(channel: "general", clientId: "1", content: content), as: "ann")
        // Lists are sorted, and hold each text once.
        content.metaArrays = ["votes": ["a", "b"]]
        #expect(sent.content == content)
        #expect(try world.perform(GetMessage(channel: "general", message: sent.messageId), as: "ben") == sent)
        // Nothing translates, which isn't an error: the message says so, and so does the app's configuration.
        #expect(try sent.translationStatus == .unavailable && world.send("y", to: "general", as: "ann").translationStatus == nil)
        #expect(try world.perform(GetConfiguration(), as: "ben").translation == .unavailable)
        for languages in [["de", "de"], ["d e"], [""], ["-de"], ["deutschland"], ["1de"], ["de-"]] {
            let send = SendMessage(channel: "general", clientId: "2", text: "x", targetLanguages: languages)
            #expect(try world.refusal(send, as: "ann")?.field == "targetLanguages", "\(languages)")
        }
        let many = (0...10).map { "a\(Character(Unicode.Scalar(UInt8(97 + $0))))" }
        #expect(
            try world.code(SendMessage(channel: "general", clientId: "2", text: "x", targetLanguages: many), as: "ann")
                == .limitExceeded)
        #expect(
            try world.code(
                SendMessage(channel: "general", clientId: "2", text: "x", targetLanguages: Array(many.dropLast())), as: "ann")
                == nil)
    }

    @Test("R25 a silent message is never unread, counts in no list, and brings no hidden channel back")
    func silent() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["ben"])
        try world.send("hi", to: "general", as: "ann")
        try world.perform(HideChannel(channel: "general"), as: "ben")
        try world.perform(SendMessage(channel: "general", clientId: "1", text: "x", isSilent: true), as: "ann")
        let view = try world.perform(GetChannel(channel: "general"), as: "ben")
        #expect(view.unreadCount == 1 && view.hiddenState == .hiddenAllowAutoUnhide && view.lastMessage?.isSilent == true)
        #expect(try world.perform(GetTotalUnread(), as: "ben").unreadCount == 1)
        // Reading up to it, before it, and again.
        try world.perform(MarkRead(channel: "general", seq: 2), as: "ben")
        #expect(try world.perform(GetUnread(channel: "general"), as: "ben").unreadCount == 0)
        try world.send("news", to: "general", as: "ann")
        #expect(try world.perform(GetChannel(channel: "general"), as: "ben").hiddenState == .unhidden)
        #expect(try world.perform(GetUnread(channel: "general"), as: "ben").unreadCount == 1)
    }

    @Test("SB-33 D-39 a channel's owner can't edit the app's messages in it, but may delete them; admins edit them")
    func adminMessages() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["ben"])
        let sending = SendAdminMessage(channels: ["general"], clientId: "1", text: "The app says")
        let sent = try #require(try world.perform(sending, as: "root", role: .admin).messages.first)
        let edit = EditMessage(channel: "general", message: sent.messageId, text: "Give me your password", mentionees: [.channel])
        let lists = UpdateMetaArrays(channel: "general", message: sent.messageId, create: ["a"])
        let before = try world.dump()
        for refusal in [try world.refusal(edit, as: "ann"), try world.refusal(lists, as: "ann")] {
            #expect(refusal?.code == .notPermitted && refusal?.message == "Only admins can edit admin messages.")
        }
        // Nor can the sender, who is no longer an admin.
        #expect(try world.code(edit, as: "root") != nil)
        #expect(try world.dump() == before)
        let text = EditMessage(channel: "general", message: sent.messageId, text: "The app says more")
        #expect(try world.perform(text, as: "rita", role: .admin).text == "The app says more")
        #expect(try world.perform(DeleteMessage(channel: "general", message: sent.messageId), as: "ann").deletedAt != nil)
    }

    @Test("SB-37 R21 lists of texts are made, extended, shortened and removed, sorted and without duplicates")
    func metaArrays() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["ben"])
        let sent = try world.perform(
            SendMessage(channel: "general", clientId: "1", text: "x", metaArrays: ["b": ["z", "a", "z"], "a": []]), as: "ann")
        #expect(sent.metaArrays == ["b": ["a", "z"], "a": []])
        func update(
            create: [String]? = nil, add: [String: [String]]? = nil, removeValues: [String: [String]]? = nil,
            remove: [String]? = nil
        ) -> UpdateMetaArrays {
            UpdateMetaArrays(
                channel: "general", message: sent.messageId, create: create, add: add, removeValues: removeValues, remove: remove)
        }
        let changed = try world.perform(
            update(create: ["c", "b"], add: ["c": ["1"], "b": ["m", "a"]], removeValues: ["b": ["z"]], remove: ["a"]), as: "ann")
        #expect(changed.metaArrays == ["b": ["a", "m"], "c": ["1"]] && changed.editedAt == nil && changed.changeSeq > sent.seq)
        #expect(world.events().last?.rows.messages == [changed])
        // A repeat changes nothing.
        let before = try world.dump()
        #expect(
            try world.perform(
                update(create: ["c"], add: ["c": ["1"]], removeValues: ["b": ["z"], "x": ["y"]], remove: ["a"]), as: "ann")
                == changed)
        #expect(try world.code(update(add: ["nowhere": ["1"]]), as: "ann") == .notFound)
        #expect(try world.code(update(create: (0..<10).map { "n\($0)" }), as: "ann") == .limitExceeded)
        #expect(try world.code(update(add: ["c": (0..<100).map { "v\($0)" }]), as: "ann") == .limitExceeded)
        #expect(try world.code(update(), as: "ann") == .invalidArgument)
        #expect(try world.code(update(create: ["d"]), as: "ben") == .notMessageOwner)
        #expect(try world.dump() == before)
        #expect(try world.perform(update(remove: ["b", "c"]), as: "ann").metaArrays == nil)
    }
}
