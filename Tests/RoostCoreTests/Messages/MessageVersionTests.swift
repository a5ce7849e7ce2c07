import RoostAPI
import RoostDatabase
import RoostTestSupport
import Testing

@testable import RoostCore

@Suite("Undeletion and earlier versions")
struct MessageVersionTests {
    private static func world(undeletion: Int = 3600, versions: Int = 86_400) throws -> CoreWorld {
        let world = try CoreWorld()
        world.options.undeletionSeconds = undeletion
        world.options.versionSeconds = versions
        try world.channel("room", owner: "ann", members: ["ben", "cid"])
        return world
    }

    private func versions(_ message: Message, in world: CoreWorld) throws -> [MessageVersion] {
        try world.perform(ListMessageVersions(channel: "room", message: message.messageId), as: "ann").versions
    }

    private func edit(_ message: Message, _ text: String, in world: CoreWorld) throws {
        try world.perform(EditMessage(channel: "room", message: message.messageId, text: text), as: "ben")
    }

    private func undelete(_ message: Message) -> UndeleteMessage {
        UndeleteMessage(channel: "room", message: message.messageId)
    }

    private func delete(_ message: Message, in world: CoreWorld, as user: UserID = "ben") throws {
        try world.perform(DeleteMessage(channel: "room", message: message.messageId), as: user)
    }

    /// Runs due effects, as the server does, and checks that the next run is due when the next version expires.
    private func runEffects(in world: CoreWorld) throws {
        let (due, _) = try world.database.read { try $0.effectsDue(of: [.forgetVersions], at: world.now, limit: 10) }
        #expect(due.count == 1)
        for effect in due { #expect(try world.inContext { try $0.finish(effect, as: .forgetVersions) }) }
        let next = try world.database.read { try $0.effectsDue(of: [.forgetVersions], at: world.now, limit: 10).next }
        let end = try world.rows("SELECT MIN(kept_until) FROM message_versions") { $0.optionalTimestamp() }.first ?? nil
        // With several writers each lane's key has its own row, which may be due when nothing expires.
        if TestDatabase.Engine.chosen == .sqlite {
            #expect(next == end)
        } else if let end {
            #expect(next.map { $0 <= end } == true)
        }
    }

    @Test("SB-59 R24 an author restores a deleted message, as it was, for everyone, and a repeat has no effect")
    func undeletion() throws {
        let world = try Self.world()
        let sent = try world.perform(
            SendMessage(
                channel: "room", clientId: "1", text: "hello @cid", customType: "a", data: "d", metadata: ["k": 1], tags: ["t"],
                mentionees: [.users(["cid"]), .channel], metaArrays: ["k": ["v"]], targetLanguages: ["de"]), as: "ben")
        try edit(sent, "hello, @cid", in: world)
        let before = try world.perform(GetMessage(channel: "room", message: sent.messageId), as: "ann")
        try world.perform(MarkRead(channel: "room"), as: "cid")
        try delete(sent, in: world)
        let back = try world.perform(undelete(sent), as: "ben")
        #expect(back.content == before.content && back.editedAt == before.editedAt && back.deletedAt == nil)
        #expect(back.seq == sent.seq && back.changeSeq > before.changeSeq)
        let event = try #require(world.events().last { $0.stream == .channel("room") })
        #expect(event.kind == .messageUndeleted && event.rows.messages?.map(\.text) == ["hello, @cid"])
        // Its mentions count from here on.
        #expect(try world.perform(GetUnread(channel: "room"), as: "cid").hasMention)
        #expect(try world.perform(GetUnread(channel: "room"), as: "cid").unreadCount == 0)
        #expect(try world.perform(QueryChannels(), as: "ann").items.first?.lastMessage?.text == "hello, @cid")
        let state = try world.dump()
        #expect(try world.perform(undelete(sent), as: "ben") == back)
        #expect(try world.dump() == state)
        // It can be deleted and restored again.
        try delete(sent, in: world)
        #expect(try world.perform(undelete(sent), as: "ben").text == "hello, @cid")
    }

    @Test("SB-59 R24 an operator doesn't see versions of messages that they deleted for themselves")
    func ownDeletion() throws {
        let world = try Self.world()
        let sent = try world.perform(SendMessage(channel: "room", clientId: "1", text: "first"), as: "ben")
        try edit(sent, "second", in: world)
        let list = ListMessageVersions(channel: "room", message: sent.messageId)
        #expect(try world.perform(list, as: "ann").versions.map(\.content.text) == ["first"])
        try world.perform(DeleteMessagesForMe(channel: "room", messages: [sent.messageId]), as: "ann")
        #expect(try world.perform(list, as: "ann").versions == [])
    }

    @Test("SB-59 MN-17 a restored message mentions the users who can still be mentioned")
    func mentions() throws {
        let world = try Self.world()
        let sent = try world.perform(
            SendMessage(channel: "room", clientId: "1", text: "x", mentionees: [.users(["cid", "ann"]), .channel]), as: "ben")
        try delete(sent, in: world)
        #expect(try !world.perform(GetUnread(channel: "room"), as: "ann").hasMention)
        try world.perform(LeaveChannel(channel: "room"), as: "cid")
        world.options.isMentionAllEnabled = false
        let back = try world.perform(undelete(sent), as: "ben")
        // The channel's mention is dropped silently: neither the message nor its event has it.
        let event = try #require(world.events().last { $0.stream == .channel("room") })
        #expect(event.kind == .messageUndeleted && event.rows.channelMentions == nil)
        #expect(event.rows.messages?.first?.mentionees == [.users(["ann"])])
        // The answer says whom it no longer mentions; the message doesn't.
        #expect(back.mentionees == [.users(["ann"])] && back.droppedMentions == ["cid"])
        #expect(try world.perform(GetMessage(channel: "room", message: sent.messageId), as: "ben").droppedMentions == nil)
        #expect(try world.perform(GetUnread(channel: "room"), as: "ann").hasMention)
    }

    @Test("SB-59 SB-58 MN-02 R24 a user who may no longer edit or mention can't restore a message, or its mentions")
    func lostRights() throws {
        let world = try Self.world()
        let sent = try world.perform(
            SendMessage(channel: "room", clientId: "1", text: "x", mentionees: [.users(["cid"]), .channel]), as: "ben")
        try delete(sent, in: world)
        try world.perform(FreezeChannel(channel: "room"), as: "ann")
        let before = try world.dump()
        #expect(try world.code(undelete(sent), as: "ben") == .frozen)
        #expect(try world.dump() == before)
        try world.perform(UnfreezeChannel(channel: "room"), as: "ann")
        try world.perform(UpdateChannel(channel: "room", policy: PolicyChanges(mention: .operators)), as: "ann")
        let back = try world.perform(undelete(sent), as: "ben")
        #expect(back.text == "x" && back.mentionees == nil && back.droppedMentions == ["cid"])
        #expect(try !world.perform(GetUnread(channel: "room"), as: "cid").hasMention)
        try world.perform(LeaveChannel(channel: "room"), as: "ben")
        #expect(try world.code(undelete(sent), as: "ben") == .notMember)
    }

    @Test("R24 SB-59 an undone deletion leaves earlier versions their former time")
    func timeAgain() throws {
        let world = try Self.world(undeletion: 60, versions: 86_400)
        let sent = try world.send("one", to: "room", as: "ben")
        try edit(sent, "two", in: world)
        func keptUntil() throws -> [Timestamp] {
            try world.rows("SELECT kept_until FROM message_versions ORDER BY change_seq") { $0.timestamp() }
        }
        let before = try keptUntil()
        try delete(sent, in: world)
        #expect(try keptUntil().allSatisfy { $0 < before[0] })
        try world.perform(undelete(sent), as: "ben")
        #expect(try keptUntil() == before)
        world.advance(milliseconds: 3_600_000)
        #expect(try versions(sent, in: world).map(\.text) == ["one"])
    }

    @Test("R24 SB-59 an undone deletion keeps earlier versions for their usual time, however far ahead the channel's time is")
    func timeAgainInChannelAhead() throws {
        let world = try Self.world(undeletion: 60, versions: 86_400)
        let start = world.now
        world.advance(milliseconds: 30 * 86_400_000)
        try world.send("ahead", to: "room", as: "ann")
        world.now = start
        let sent = try world.send("one", to: "room", as: "ben")
        try edit(sent, "two", in: world)
        try delete(sent, in: world)
        try world.perform(undelete(sent), as: "ben")
        #expect(try versions(sent, in: world).map(\.text) == ["one"])
        world.advance(milliseconds: 2 * 86_400_000)
        #expect(try versions(sent, in: world).isEmpty)
    }

    @Test("R24 deleting versions continues under one key, whichever lane requested it", arguments: [0, 7] as [Int64])
    func commonKey(lane: Int64) throws {
        // A single writer waits for no others.
        let asked = TestDatabase.Engine.chosen == .postgresql ? "\(lane)" : ""
        let world = try Self.world()
        func keys() throws -> [String] {
            try world.rows("SELECT effect_key FROM effects WHERE kind = 'messageVersions.forget' ORDER BY effect_key") {
                $0.string()
            }
        }
        let sent = try world.send("one", to: "room", as: "ben")
        world.ids = IDGenerator(IDGenerator.Number(lane))
        try edit(sent, "two", in: world)
        world.advance(milliseconds: 1000)
        try edit(sent, "three", in: world)
        #expect(try keys() == [asked])
        world.advance(milliseconds: 86_399_000)
        try runEffects(in: world)
        #expect(try keys() == [""])
        world.advance(milliseconds: 1000)
        try runEffects(in: world)
        #expect(try keys() == [])
        #expect(try world.rows("SELECT COUNT(*) FROM message_versions") { $0.int() } == [0])
    }

    @Test("R24 versions that expire at nearly the same time are deleted in one run")
    func pause() throws {
        let world = try Self.world(undeletion: 60, versions: 0)
        for number in 0..<3 {
            let sent = try world.send("\(number)", to: "room", as: "ben")
            try delete(sent, in: world)
            world.advance(milliseconds: 10)
        }
        world.advance(milliseconds: 60_000 - 30)
        let due = try world.database.read { try $0.effectsDue(of: [.forgetVersions], at: world.now, limit: 10).due }
        for effect in due { #expect(try world.inContext { try $0.finish(effect, as: .forgetVersions) }) }
        #expect(try world.rows("SELECT COUNT(*) FROM message_versions") { $0.int() } == [2])
        world.advance(milliseconds: 999)
        #expect(try world.database.read { try $0.effectsDue(of: [.forgetVersions], at: world.now, limit: 10).due }.isEmpty)
        world.advance(milliseconds: 1)
        try runEffects(in: world)
        #expect(try world.rows("SELECT COUNT(*) FROM message_versions") { $0.int() } == [0])
    }

    @Test("R24 one run deletes at most 20 versions, and the next follows at once")
    func manyExpired() throws {
        let world = try Self.world()
        for number in 0..<3 {
            let sent = try world.send("\(number)", to: "room", as: "ben")
            for text in 1...10 { try edit(sent, "edit \(text)", in: world) }
        }
        world.advance(milliseconds: 86_400_000)
        for left in [10, 0] {
            let due = try world.database.read { try $0.effectsDue(of: [.forgetVersions], at: world.now, limit: 10).due }
            for effect in due { #expect(try world.inContext { try $0.finish(effect, as: .forgetVersions) }) }
            #expect(try world.rows("SELECT COUNT(*) FROM message_versions") { $0.int() } == [left])
        }
    }

    @Test("SB-59 R24 only authors who deleted their own message and operators restore it, in time, unless deleted for good")
    func refusals() throws {
        let world = try Self.world(undeletion: 60)
        let sent = try world.send("secret", to: "room", as: "ben")
        try delete(sent, in: world, as: "ann")
        var before = try world.dump()
        #expect(try world.code(undelete(sent), as: "ben") == .notMessageOwner)
        #expect(try world.code(undelete(sent), as: "cid") == .notMessageOwner)
        #expect(try world.dump() == before)
        #expect(try world.perform(undelete(sent), as: "ann").text == "secret")
        try delete(sent, in: world)
        #expect(try world.code(undelete(sent), as: "cid") == .notMessageOwner)
        world.advance(milliseconds: 59_999)
        #expect(try world.perform(undelete(sent), as: "ben").text == "secret")
        try delete(sent, in: world)
        world.advance(milliseconds: 60_000)
        before = try world.dump()
        #expect(try world.refusal(undelete(sent), as: "ben")?.field == "message")
        #expect(try world.code(undelete(sent), as: "ann") == .notFound)
        #expect(try world.dump() == before)
        let other = try world.send("other", to: "room", as: "ben")
        try delete(other, in: world)
        try world.perform(PurgeMessage(channel: "room", message: other.messageId), as: "ben")
        #expect(try world.code(undelete(other), as: "ben") == .notFound)
        #expect(try !world.dump().contains { $0.contains("other") })
        world.options.undeletionSeconds = 0
        #expect(try world.code(undelete(sent), as: "ann") == .featureDisabled)
    }

    @Test("SB-59 R24 an operator's deletion of a message that its author deleted takes over the deletion, once, without an event")
    func takenOver() throws {
        let world = try Self.world(undeletion: 60)
        try world.perform(SetMemberRole(channel: "room", users: ["cid"], role: .operator), as: "ann")
        let sent = try ["1", "2"].map { try world.send($0, to: "room", as: "ben") }
        for message in sent { try delete(message, in: world) }
        func deleters() throws -> [UserID?] { try sent.map { try versions($0, in: world).first?.replacedBy } }
        // Their own, again.
        try delete(sent[0], in: world)
        #expect(try deleters() == ["ben", "ben"])
        let events = world.events().count
        try delete(sent[0], in: world, as: "ann")
        try world.perform(DeleteMessages(channel: "room", messages: [sent[1].messageId]), as: "ann")
        // The first one to delete it stays the deleter.
        try delete(sent[0], in: world, as: "cid")
        #expect(try deleters() == ["ann", "ann"] && world.events().count == events)
        for message in sent { #expect(try world.code(undelete(message), as: "ben") == .notMessageOwner) }
        #expect(try world.perform(undelete(sent[0]), as: "cid").text == "1")
        // A restored message has no deleter.
        try delete(sent[0], in: world)
        #expect(try world.perform(undelete(sent[0]), as: "ben").text == "1")
    }

    @Test("SB-59 R24 an author can't purge a message that another user deleted, while it can be restored")
    func purgingRemoved() throws {
        let world = try Self.world(undeletion: 60)
        let sent = try ["1", "2", "3"].map { try world.send($0, to: "room", as: "ben") }
        func purge(_ message: Message) -> PurgeMessage { PurgeMessage(channel: "room", message: message.messageId) }
        try delete(sent[0], in: world, as: "ann")
        try delete(sent[1], in: world)
        let before = try world.dump()
        #expect(try world.code(purge(sent[0]), as: "ben") == .notMessageOwner)
        #expect(try world.dump() == before && versions(sent[0], in: world).map(\.text) == ["1"])
        try world.perform(purge(sent[1]), as: "ben")
        // Operators may, and once nothing is kept, authors.
        try delete(sent[2], in: world, as: "ann")
        try world.perform(purge(sent[2]), as: "ann")
        world.advance(milliseconds: 60_000)
        try world.perform(purge(sent[0]), as: "ben")
    }

    @Test(
        "SB-59 R24 without the option, earlier deleted messages can't be restored: they are shown to nobody, and authors purge them"
    )
    func purgingWithoutOption() throws {
        let world = try Self.world(undeletion: 60)
        let sent = try world.send("1", to: "room", as: "ben")
        try edit(sent, "2", in: world)
        let edited = try world.send("3", to: "room", as: "ben")
        try edit(edited, "4", in: world)
        try delete(sent, in: world, as: "ann")
        #expect(try versions(sent, in: world).map(\.text) == ["2", "1"])
        world.options.undeletionSeconds = 0
        #expect(try versions(sent, in: world) == [])
        #expect(try versions(edited, in: world).map(\.text) == ["3"])
        try world.perform(PurgeMessage(channel: "room", message: sent.messageId), as: "ben")
        #expect(try world.code(PurgeMessage(channel: "room", message: sent.messageId), as: "ben") == .notFound)
    }

    @Test("R24 without the option of versions, those kept earlier are shown to nobody; a deleted message's content still is")
    func withoutVersions() throws {
        let world = try Self.world(undeletion: 60)
        let sent = try world.send("1", to: "room", as: "ben")
        try edit(sent, "2", in: world)
        world.options.versionSeconds = 0
        #expect(try versions(sent, in: world) == [])
        try delete(sent, in: world, as: "ann")
        #expect(try versions(sent, in: world).map(\.text) == ["2"])
        world.options.versionSeconds = 86_400
        #expect(try versions(sent, in: world).map(\.text) == ["2", "1"])
    }

    @Test("R24 nothing of deleted and edited messages is kept unless the app says so, and an effect deletes it")
    func effect() throws {
        let none = try Self.world(undeletion: 0, versions: 0)
        let plain = try none.send("secret", to: "room", as: "ben")
        try edit(plain, "open", in: none)
        try delete(plain, in: none)
        #expect(try !none.dump().contains { $0.contains("secret") || $0.contains("open") })
        #expect(try none.code(ListMessageVersions(channel: "room", message: plain.messageId), as: "ann") == .featureDisabled)

        let world = try Self.world(undeletion: 60, versions: 3600)
        let sent = try world.send("first", to: "room", as: "ben")
        try edit(sent, "second", in: world)
        let other = try world.send("third", to: "room", as: "ben")
        try delete(other, in: world)
        func dump() throws -> String { try world.dump().filter { $0.hasPrefix("message_versions") }.joined() }
        #expect(try dump().contains("first") && dump().contains("third"))
        world.advance(milliseconds: 60_000)
        try runEffects(in: world)
        #expect(try dump().contains("first") && !dump().contains("third"))
        // A deletion shortens the time of earlier versions.
        try delete(sent, in: world)
        #expect(try versions(sent, in: world).map(\.text) == ["second", "first"])
        world.advance(milliseconds: 60_000)
        #expect(try versions(sent, in: world).isEmpty)
        try runEffects(in: world)
        #expect(try dump().isEmpty)
    }

    @Test("R24 an effect that has failed permanently is revived by the next edit, so versions aren't kept indefinitely")
    func deadEffect() throws {
        let world = try Self.world()
        let sent = try world.send("first", to: "room", as: "ben")
        try edit(sent, "second", in: world)
        try world.execute("UPDATE effects SET dead_at = \(world.now), attempts = 12, failure = 'internal_error'")
        world.advance(milliseconds: 1000)
        try edit(sent, "third", in: world)
        world.advance(milliseconds: 86_400_000)
        try runEffects(in: world)
        #expect(try world.rows("SELECT seq FROM message_versions") { $0.int64() }.isEmpty)
    }

    @Test("SB-58 R24 operators read the versions before edits, at most 10; others, and other channels' operators, don't")
    func earlierVersions() throws {
        let world = try Self.world()
        let sent = try world.send("0", to: "room", as: "ben")
        #expect(try versions(sent, in: world).isEmpty)
        for number in 1...12 {
            world.advance(milliseconds: 1000)
            try edit(sent, "\(number)", in: world)
            // Changing nothing makes no version, and lists aren't part of a version.
            try edit(sent, "\(number)", in: world)
        }
        try world.perform(UpdateMetaArrays(channel: "room", message: sent.messageId, create: ["k"]), as: "ben")
        let kept = try versions(sent, in: world)
        #expect(kept.map(\.text) == (2...11).reversed().map(String.init))
        #expect(kept.allSatisfy { $0.replacedBy == "ben" && !$0.isDeletion })
        #expect(kept[0].replacedAt == world.now && kept[0].editedAt == kept[1].replacedAt)
        let list = ListMessageVersions(channel: "room", message: sent.messageId)
        #expect(try world.code(list, as: "ben") == .notPermitted)
        try world.user("eve")
        #expect(try world.code(list, as: "eve") == .notMember)
        try world.channel("other", owner: "eve")
        #expect(try world.code(ListMessageVersions(channel: "other", message: sent.messageId), as: "eve") == .notFound)
        try delete(sent, in: world)
        let all = try versions(sent, in: world)
        #expect(all.count == 11 && all[0].text == "12" && all[0].isDeletion)
    }

    @Test("I18 a list of large versions ends early, says so, and continues where it ended")
    func largeVersions() throws {
        let world = try Self.world()
        func content(_ number: Int) -> (text: String, data: String) {
            ("\(number) " + String(repeating: "\u{1F600}", count: 19_990), String(repeating: "\u{1F600}", count: 20_000))
        }
        let sent = try world.perform(SendMessage(channel: "room", clientId: "1", text: "0", data: content(0).data), as: "ben")
        for number in 1...10 {
            let (text, data) = content(number)
            try world.perform(EditMessage(channel: "room", message: sent.messageId, text: text, data: data), as: "ben")
        }
        var list = ListMessageVersions(channel: "room", message: sent.messageId)
        var (found, pages) = ([MessageVersion](), 0)
        while true {
            let page = try world.perform(list, as: "ann")
            #expect(page.versions.reduce(0) { $0 + $1.content.sizeBytes } <= Limits.pageContentBytes && !page.versions.isEmpty)
            (found, pages) = (found + page.versions, pages + 1)
            guard page.hasMore, let last = page.versions.last else { break }
            list.before = last.changeSeq
        }
        #expect(pages > 1 && found.map { $0.text.prefix { $0 != " " } } == (0...9).reversed().map { "\($0)" })
        list.before = 0
        #expect(try world.perform(list, as: "ann") == MessageVersions(versions: []))
    }

    @Test("R24 X-01 the place of a list of versions must be possible in a stream", arguments: [-1, .min, .max] as [Seq])
    func listsBeforeAPlace(before: Seq) throws {
        let world = try Self.world()
        let sent = try world.send("one", to: "room", as: "ben")
        try edit(sent, "two", in: world)
        let refusal = try world.refusal(ListMessageVersions(channel: "room", message: sent.messageId, before: before), as: "ann")
        #expect(refusal?.code == .invalidArgument && refusal?.field == "before")
    }

    @Test("SB-33 SB-59 a deleted admin message is restored by users who may send one, not by operators")
    func adminMessage() throws {
        let world = try Self.world()
        let content = SendAdminMessage(channels: ["room"], clientId: "1", text: "from the app")
        let sent = try #require(try world.perform(content, as: "root", role: .admin).messages.first)
        try world.perform(DeleteMessage(channel: "room", message: sent.messageId), as: "root", role: .admin)
        let state = try world.dump()
        let refusal = try world.refusal(undelete(sent), as: "ann")
        #expect(refusal?.code == .notPermitted && refusal?.message == "Only admins can restore admin messages.")
        #expect(try world.dump() == state)
        #expect(try world.perform(undelete(sent), as: "root", role: .admin).text == "from the app")
    }

    @Test(
        "I18 messages too large together are deleted in several calls; concealing them has no such limit, nor has a reply's parent"
    )
    func largeMessages() throws {
        let world = try Self.world()
        let data = String(repeating: "\u{1F600}", count: 20_000)
        let metadata = JSONValue.object(["a": .string(String(repeating: "b", count: 99_000))])
        let sent = try (0..<40).map { number in
            try world.perform(
                SendMessage(channel: "room", clientId: ClientID("\(number)"), text: data, data: data, metadata: metadata), as: "ben"
            )
        }
        let ids = sent.map(\.messageId)
        let limit = Limits.deletedMessagesSizeBytes / (sent[0].content.sizeBytes + 300)
        let state = try world.dump()
        let refusal = try world.refusal(DeleteMessages(channel: "room", messages: Array(ids.prefix(limit + 2))), as: "ben")
        #expect(refusal?.code == .limitExceeded && refusal?.field == "messages" && refusal?.limit == 10_000_000)
        #expect(try world.dump() == state)
        let deleted = try world.perform(DeleteMessages(channel: "room", messages: Array(ids.prefix(limit - 1))), as: "ben").messages
        #expect(deleted.count == limit - 1 && deleted.allSatisfy { $0.deletedAt != nil && $0.text.isEmpty })
        let concealed = try world.perform(DeleteMessagesForMe(channel: "room", messages: ids), as: "cid").messages
        #expect(
            concealed.map(\.messageId) == ids && concealed.allSatisfy { $0.isDeletedForMe && $0.text.isEmpty && $0.data == nil })
        #expect(try world.perform(GetMessage(channel: "room", message: ids[39]), as: "ann").data == data)
        let answer = SendMessage(channel: "room", clientId: "a", text: "short", parentId: ids[39])
        #expect(try world.code(answer, as: "cid") == .notFound)
        #expect(try world.perform(answer, as: "ann").parentId == ids[39])
    }

    @Test("I18 R24 what is kept of messages counts when they are deleted in one call", arguments: [0, 3600])
    func largeKeptVersions(undeletion: Int) throws {
        let world = try Self.world(undeletion: undeletion)
        let long = String(repeating: "\u{1F600}", count: 19_990)
        let sent = try (0..<8).map { number in
            let content = SendMessage(channel: "room", clientId: ClientID("\(number)"), text: "0 \(long)", data: long)
            let message = try world.perform(content, as: "ben")
            for text in 1..<10 { try edit(message, "\(text) \(long)", in: world) }
            try world.perform(EditMessage(channel: "room", message: message.messageId, text: "short", data: ""), as: "ben")
            return message.messageId
        }
        let refusal = try world.refusal(DeleteMessages(channel: "room", messages: sent), as: "ben")
        #expect(refusal?.code == .limitExceeded && refusal?.field == "messages" && refusal?.limit == 10_000_000)
        try world.perform(DeleteMessages(channel: "room", messages: Array(sent.prefix(5))), as: "ben")
        #expect(try world.rows("SELECT COUNT(*) FROM message_versions") { $0.int() } == [undeletion == 0 ? 30 : 85])
    }

    @Test("R24 the options have limits, and are in the configuration")
    func options() throws {
        var options = AppOptions()
        #expect(options.undeletionSeconds == 0 && options.versionSeconds == 0)
        (options.undeletionSeconds, options.versionSeconds) = (Limits.undeletionSecondsMax, Limits.versionSecondsMax)
        try options.validate()
        for (undeletion, versions, code) in [
            (-1, 0, RoostError.Code.invalidArgument), (0, -1, .invalidArgument),
            (Limits.undeletionSecondsMax + 1, 0, .limitExceeded),
            (0, Limits.versionSecondsMax + 1, .limitExceeded),
        ] {
            (options.undeletionSeconds, options.versionSeconds) = (undeletion, versions)
            let error = #expect(throws: RoostError.self) { try options.validate() }
            #expect(error?.code == code && error?.field == (undeletion == 0 ? "versionSeconds" : "undeletionSeconds"))
        }
        #expect(Limits.table["versionsPerMessage"] == 10 && Limits.table["largeChannelMembers"] == 1000)
    }
}
