import RoostAPI
import RoostDatabase
import RoostTestSupport
import Testing

@testable import RoostCore

@Suite("Deletion for oneself")
struct OwnDeletionTests {
    /// A path to messages of the channel, as a user finds them.
    private struct Path: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let messages: @Sendable (CoreWorld, [Message], UserID) throws -> [Message]

        init(_ description: String, _ messages: @escaping @Sendable (CoreWorld, [Message], UserID) throws -> [Message]) {
            (testDescription, self.messages) = (description, messages)
        }

        static func page(_ description: String, _ set: @escaping @Sendable (inout ListMessages, [Message]) -> Void) -> Path {
            Path(description) { world, all, user in
                var operation = ListMessages(channel: "room", limit: 100)
                set(&operation, all)
                return try world.perform(operation, as: user).messages
            }
        }
    }

    private static let paths: [Path] = [
        .page("the newest page") { _, _ in }, .page("a page before a seq") { $0.before = $1[3].seq + 1 },
        .page("a page after a seq") { page, _ in page.after = 0 }, .page("a page around a seq") { $0.around = $1[1].seq },
        .page("a page around a message") { $0.aroundMessage = $1[1].messageId },
        .page("a page around a time") { $0.aroundTime = $1[1].createdAt },
        .page("a page of a sender") { page, _ in page.senders = ["ann"] },
        .page("a page, newest first") { page, _ in page.reverse = true },
        Path("each by its id") { world, all, user in
            try all.map { try world.perform(GetMessage(channel: "room", message: $0.messageId), as: user) }
        },
        Path("changes") { world, _, user in
            try world.perform(GetChannelChanges(channel: "room", after: 0), as: user).rows.messages ?? []
        },
        Path("a resume of a new device") { world, _, user in
            try world.perform(Resume(after: 0, channels: [:]), as: user).channels.flatMap { $0.rows.messages ?? [] }
        },
        Path("a resume") { world, all, user in
            try world.perform(Resume(after: 0, channels: ["room": all[0].seq - 1]), as: user).channels.flatMap {
                $0.rows.messages ?? []
            }
        },
        Path("a watch") { world, _, user in
            try world.perform(WatchChannel(channel: "room", limit: 100), as: user, connection: 1).messages
                .messages
        },
        Path("a channel") { world, _, user in
            try [world.perform(GetChannel(channel: "room"), as: user).lastMessage].compactMap(\.self)
        },
        Path("a list of channels") { world, _, user in
            try world.perform(QueryChannels(), as: user).items.compactMap(\.lastMessage)
        },
        Path("a repetition") { world, all, user in
            try world.perform(DeleteMessagesForMe(channel: "room", messages: [all[1].messageId, all[3].messageId]), as: "ben")
                .messages + (user == "ben" ? [] : all)
        },
    ]

    private static func world() throws -> CoreWorld {
        let world = try CoreWorld()
        try world.channel("room", owner: "ann", members: ["ben", "cid"])
        return world
    }

    private static func send(_ text: String, _ mentionees: [Mentionee]? = nil, in world: CoreWorld) throws -> Message {
        try world.perform(
            SendMessage(channel: "room", clientId: ClientID(text), text: text, customType: "poll", mentionees: mentionees),
            as: "ann")
    }

    private func deletion(_ messages: [Message]) -> DeleteMessagesForMe {
        DeleteMessagesForMe(channel: "room", messages: messages.map(\.messageId))
    }

    @Test("SB-59 a message deleted for oneself is a place without content on every path, and whole for others", arguments: paths)
    private func everyPath(_ path: Path) throws {
        let world = try Self.world()
        let all = try (1...4).map { try Self.send("\($0)", in: world) }
        let gone = Set([all[1].seq, all[3].seq])
        try world.perform(deletion([all[1], all[3]]), as: "ben")
        let found = try path.messages(world, all, "ben")
        #expect(found.contains { gone.contains($0.seq) })
        for message in found {
            let isGone = gone.contains(message.seq)
            #expect(message.isDeletedForMe == isGone && (message.deletedAt != nil) == isGone)
            #expect(message.text.isEmpty == isGone && (message.customType == nil) == isGone)
        }
        let theirs = try path.messages(world, all, "cid").filter { !$0.isDeletedForMe }
        if path.testDescription != "a repetition" {
            #expect(theirs.map(\.seq) == found.map(\.seq) && theirs.allSatisfy { !$0.text.isEmpty && $0.deletedAt == nil })
        }
    }

    @Test("SB-53 SB-59 a message deleted for oneself is no longer found by its custom type")
    func filters() throws {
        let world = try Self.world()
        let sent = try (1...3).map { try Self.send("\($0)", in: world) }
        try world.perform(deletion([sent[1]]), as: "ben")
        let polls = ListMessages(channel: "room", customType: "poll")
        #expect(try world.perform(polls, as: "ben").messages.map(\.text) == ["1", "3"])
        #expect(try world.perform(polls, as: "cid").messages.map(\.text) == ["1", "2", "3"])
    }

    @Test("SB-59 EM-35 MN-16 an unread message stays unread, and no longer mentions the user, whatever is edited later")
    func mentions() throws {
        let world = try Self.world()
        let named = try Self.send("named", [.users(["ben", "cid"])], in: world)
        let earlier = try world.perform(GetChannel(channel: "room"), as: "ben").membership
        let all = try Self.send("all", [.channel], in: world)
        let again = try Self.send("again", [.users(["ben"])], in: world)
        #expect(try world.perform(GetUnread(channel: "room"), as: "ben").unreadCount == 3)
        try world.perform(deletion([again]), as: "ben")
        let event = try #require(world.events().last)
        #expect(event.kind == .messageDeletedForMe && event.stream == .user("ben"))
        #expect(event.rows.ownDeletions?.map(\.seq) == [again.seq])
        // The newest mention is the previous one again.
        #expect(event.rows.memberships?.map(\.mentionMessage) == [named.messageId] && earlier?.mentionMessage == named.messageId)
        try world.perform(deletion([named]), as: "ben")
        let unread = try world.perform(GetUnread(channel: "room"), as: "ben")
        #expect(unread.unreadCount == 3 && unread.hasMention, "the channel's mention is left")
        try world.perform(deletion([all]), as: "ben")
        let none = try world.perform(GetUnread(channel: "room"), as: "ben")
        #expect(none.unreadCount == 3 && !none.hasMention)
        #expect(try world.perform(ListMentions(), as: "ben").items.isEmpty)
        // Edits mention him again, and don't reach him.
        for message in [named, again] {
            for mentionees in [[], [.users(["ben"]), .channel]] as [[Mentionee]] {
                try world.perform(EditMessage(channel: "room", message: message.messageId, mentionees: mentionees), as: "ann")
            }
        }
        #expect(try !world.perform(GetUnread(channel: "room"), as: "ben").hasMention)
        #expect(try world.perform(ListMentions(), as: "ben").items.isEmpty)
        #expect(try world.perform(GetUnread(channel: "room"), as: "cid").hasMention)
        #expect(try world.perform(ListMentions(), as: "cid").items.map(\.seq).isEmpty)
    }

    @Test("SB-59 a repeat changes nothing; an author may not edit a message that they no longer see, but may delete it for all")
    func again() throws {
        let world = try Self.world()
        world.options.undeletionSeconds = 60
        let sent = try Self.send("1", in: world)
        let mine = try world.perform(SendMessage(channel: "room", clientId: "2", text: "mine"), as: "ben")
        let answer = try world.perform(deletion([mine, sent]), as: "ben").messages
        #expect(answer.map(\.seq) == [mine.seq, sent.seq] && answer.allSatisfy { $0.isDeletedForMe && $0.text.isEmpty })
        let state = try world.dump()
        let events = world.events().count
        world.advance(milliseconds: 1000)
        try world.perform(deletion([mine]), as: "ben")
        #expect(try world.dump() == state && world.events().count == events)
        #expect(try world.code(EditMessage(channel: "room", message: mine.messageId, text: "x"), as: "ben") == .notFound)
        let lists = UpdateMetaArrays(channel: "room", message: mine.messageId, create: ["k"])
        #expect(try world.code(lists, as: "ben") == .notFound)
        #expect(try world.dump() == state)
        // Deleted for all and restored, it stays deleted for him.
        #expect(try world.perform(DeleteMessage(channel: "room", message: mine.messageId), as: "ben").isDeletedForMe)
        let back = try world.perform(UndeleteMessage(channel: "room", message: mine.messageId), as: "ben")
        #expect(back.isDeletedForMe && back.text.isEmpty)
        #expect(try world.perform(GetMessage(channel: "room", message: mine.messageId), as: "ann").text == "mine")
        // Once deleted for good, nothing of it is left.
        try world.perform(PurgeMessage(channel: "room", message: mine.messageId), as: "ann")
        #expect(try world.rows("SELECT seq FROM own_deletions") { $0.int64() } == [sent.seq])
        #expect(try world.code(deletion([mine]), as: "ben") == .notFound)
    }

    @Test(
        "SB-59 a message deleted for all has the time of that, whichever deletion came first, and otherwise that of the user's own")
    func times() throws {
        let world = try Self.world()
        let sent = try (1...3).map { try Self.send("\($0)", in: world) }
        world.advance(milliseconds: 1000)
        let first = world.now
        try world.perform(DeleteMessage(channel: "room", message: sent[0].messageId), as: "ann")
        try world.perform(deletion([sent[1], sent[2]]), as: "ben")
        world.advance(milliseconds: 1000)
        let second = world.now
        let answer = try world.perform(deletion([sent[0]]), as: "ben").messages
        try world.perform(DeleteMessage(channel: "room", message: sent[1].messageId), as: "ann")
        let found = try world.perform(ListMessages(channel: "room"), as: "ben").messages
        let expected: [Timestamp?] = [first, second, first]
        #expect(found.map(\.deletedAt) == expected && found.allSatisfy(\.isDeletedForMe))
        #expect(answer.first?.deletedAt == first)
    }

    @Test("SB-59 R24 bad calls, calls of non-members, and messages that the caller can't see are refused, and nothing changes")
    func refusals() throws {
        let world = try Self.world()
        let sent = try (1...2).map { try Self.send("\($0)", in: world) }
        try world.perform(HideChannel(channel: "room", hidePreviousMessages: true), as: "cid")
        let state = try world.dump()
        func call(_ ids: [MessageID]) -> DeleteMessagesForMe { DeleteMessagesForMe(channel: "room", messages: ids) }
        let (one, none) = (sent[0].messageId, MessageID(rawValue: 1))
        #expect(try world.code(call([]), as: "ben") == .invalidArgument)
        #expect(try world.code(call([one, one]), as: "ben") == .invalidArgument)
        let many = try world.refusal(call((1...101).map { MessageID(rawValue: $0) }), as: "ben")
        #expect(many?.code == .limitExceeded && many?.field == "messages" && many?.limit == 100)
        let unknown = try world.refusal(call([one, none]), as: "ben")
        #expect(unknown == RoostError(.notFound, "Message 1: There is no such message.", field: "messages[1]"))
        #expect(try world.code(call([one]), as: "cid") == .notFound, "it is below the floor")
        #expect(try world.code(call([one]), as: "zoe") == .notMember)
        #expect(try world.dump() == state)
    }

    @Test("R39 pages of a user's changes never split the messages of one deletion")
    func pages() throws {
        let world = try Self.world()
        let sent = try (1...250).map { try Self.send("\($0)", in: world) }
        for start in stride(from: 0, to: 250, by: 50) {
            try world.perform(deletion(Array(sent[start..<start + 50])), as: "ben")
        }
        var (seqs, after, hasMore, pages): ([Seq], Seq, Bool, Int) = ([], 0, true, 0)
        while hasMore {
            let changes = try world.perform(GetMyChanges(after: after, limit: 20), as: "ben")
            seqs += (changes.rows.ownDeletions ?? []).map(\.seq)
            (after, hasMore, pages) = (changes.seq, changes.hasMore, pages + 1)
        }
        #expect(seqs == sent.map(\.seq) && pages > 2)
    }

    @Test("I18 only those of a user's own deletions that concern the messages read are looked up")
    func between() throws {
        let world = try CoreWorld()
        try world.channel("room", owner: "ann", members: ["ben"])
        let all = try (0..<300).map { try world.send("\($0)", to: "room", as: "ann") }
        for part in all.dropFirst().map(\.messageId).chunked(by: 100) {
            try world.perform(DeleteMessagesForMe(channel: "room", messages: Array(part)), as: "ben")
        }
        let known = try world.perform(GetChannel(channel: "room"), as: "ben").channel.counters.seq
        try world.perform(EditMessage(channel: "room", message: all[0].messageId, text: "edited"), as: "ann")
        try world.perform(EditMessage(channel: "room", message: all[299].messageId, text: "edited"), as: "ann")
        let operation = GetChannelChanges(channel: "room", after: known)
        var rowCount = 0
        let changes = try world.database.read { transaction in
            let counting = CountingTransaction(transaction)
            var context = Context(transaction: counting, caller: Caller(user: "ben"), now: world.now, ids: IDGenerator())
            defer { rowCount = counting.rowCount }
            return try operation.handle(in: &context)
        }
        #expect(changes.rows.messages?.map(\.isDeletedForMe) == [false, true])
        #expect(rowCount < 20)
    }
}
