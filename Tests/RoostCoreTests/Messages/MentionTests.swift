import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

@Suite("Mentions")
struct MentionTests {
    private static func world(type: ChannelType = .community) throws -> CoreWorld {
        let world = try CoreWorld()
        try world.channel("general", type: type, owner: "ann", members: ["ben", "cid"])
        try world.user("eve")
        return world
    }

    private static func mention(_ mentionees: [Mentionee], _ clientId: ClientID = "m") -> SendMessage {
        SendMessage(channel: "general", clientId: clientId, text: "@you", mentionees: mentionees)
    }

    private func isMentioned(_ user: UserID, in world: CoreWorld) throws -> Bool {
        let unread = try world.perform(GetUnread(channel: "general"), as: user).hasMention
        let view = try world.perform(GetChannel(channel: "general"), as: user)
        #expect(view.hasMention == unread)
        return unread
    }

    @Test("MN-01 MN-04 MN-16 R34 R35 users are mentioned by name, until they read; the sender and others aren't")
    func byName() throws {
        let world = try Self.world()
        let sent = try world.perform(Self.mention([.users(["ben", "ann", "ben"])]), as: "ann")
        // Each once, and the sender is named like anyone else.
        #expect(sent.mentionees == [.users(["ben", "ann"])] && sent.droppedMentions == nil)
        #expect(
            try [isMentioned("ben", in: world), isMentioned("ann", in: world), isMentioned("cid", in: world)] == [
                true, false, false,
            ])
        let received = world.events(to: .user("ben")).last
        #expect(received?.kind == .mentionReceived)
        #expect(
            received?.rows.memberships?.first?.mentionMessage == sent.messageId
                && received?.rows.memberships?.first?.mentionSeq == sent.seq
        )
        try world.perform(MarkRead(channel: "general", seq: sent.seq - 1), as: "ben")
        #expect(try isMentioned("ben", in: world))
        try world.perform(MarkRead(channel: "general"), as: "ben")
        #expect(try !isMentioned("ben", in: world))
    }

    @Test("MN-12 MN-16 a mention of the channel reaches every member but the sender, newcomers too, and writes no member's row")
    func channel() throws {
        let world = try Self.world()
        let before = try world.rows("SELECT user_id, user_seq, mention_seq FROM members ORDER BY 1") {
            [$0.string(), "\($0.int64())", "\($0.int64())"]
        }
        let sent = try world.perform(Self.mention([.channel]), as: "ann")
        let after = try world.rows("SELECT user_id, user_seq, mention_seq FROM members ORDER BY 1") {
            [$0.string(), "\($0.int64())", "\($0.int64())"]
        }
        #expect(before == after)
        #expect(
            world.events().last?.rows.channelMentions == [
                ChannelMention(seq: sent.seq, changeSeq: sent.seq, mentionSeq: sent.seq, sender: "ann")
            ])
        #expect(
            try [isMentioned("ben", in: world), isMentioned("cid", in: world), isMentioned("ann", in: world)] == [
                true, true, false,
            ])
        try world.perform(MarkRead(channel: "general"), as: "cid")
        #expect(try [isMentioned("ben", in: world), isMentioned("cid", in: world)] == [true, false])
        // A new member has read everything before.
        try world.perform(JoinChannel(channel: "general"), as: "eve")
        #expect(try !isMentioned("eve", in: world))
        try world.perform(DeleteMessage(channel: "general", message: sent.messageId), as: "ann")
        #expect(try !isMentioned("ben", in: world))
        #expect(world.events().last?.rows.channelMentions?.map(\.mentionSeq) == [nil])
    }

    @Test("MN-12 MN-16 R35 a client that missed only messages learns that one of them mentions the channel")
    func missed() throws {
        let world = try Self.world()
        let after = try world.perform(GetChannel(channel: "general"), as: "ben").channel.counters.seq
        try world.send("before", to: "general", as: "ann")
        let sent = try world.perform(Self.mention([.channel]), as: "ann")
        try world.send("after", to: "general", as: "ann")
        let mention = ChannelMention(seq: sent.seq, changeSeq: sent.seq, mentionSeq: sent.seq, sender: "ann")
        let resumed = try world.perform(Resume(after: 0, channels: ["general": after]), as: "ben").channels.map(\.rows)
        #expect(resumed.map(\.channelMentions) == [[mention]] && resumed.map(\.messages?.count) == [3])
        let paged = try world.perform(GetChannelChanges(channel: "general", after: after, limit: 1), as: "ben")
        let rest = try world.perform(GetChannelChanges(channel: "general", after: paged.seq, limit: 1), as: "ben")
        #expect([paged, rest].map(\.rows.channelMentions) == [nil, [mention]])
        // A node that missed the events brings it too.
        let missed = try world.database.read { try $0.missedEvents(of: .channel("general"), after: after, now: world.now) }
        let events = missed.notices.compactMap { if case .event(let event, _) = $0 { event } else { nil } }
        #expect(events.flatMap { $0.rows.channelMentions ?? [] } == [mention])
    }

    @Test("MN-11 MN-16 R34 an edit adds mentions to a read message, which stays read, and removes mentions")
    func edits() throws {
        let world = try Self.world()
        let sent = try world.perform(Self.mention([.users(["ben"])]), as: "ann")
        for user in ["ben", "cid"] as [UserID] { try world.perform(MarkRead(channel: "general"), as: user) }
        // Editing only the text leaves the mentions as they are: read.
        try world.perform(EditMessage(channel: "general", message: sent.messageId, text: "@all"), as: "ann")
        #expect(try [isMentioned("ben", in: world), isMentioned("cid", in: world)] == [false, false])
        let edited = try world.perform(
            EditMessage(channel: "general", message: sent.messageId, mentionees: [.users(["ben", "cid"])]), as: "ann")
        #expect(edited.mentionees == [.users(["ben", "cid"])])
        // Ben was mentioned before, and had read it.
        #expect(try [isMentioned("ben", in: world), isMentioned("cid", in: world)] == [false, true])
        #expect(try world.perform(GetUnread(channel: "general"), as: "cid").unreadCount == 0)
        try world.perform(EditMessage(channel: "general", message: sent.messageId, mentionees: [.channel]), as: "ann")
        #expect(try [isMentioned("ben", in: world), isMentioned("cid", in: world)] == [true, true])
        let none = try world.perform(EditMessage(channel: "general", message: sent.messageId, mentionees: []), as: "ann")
        #expect(none.mentionees == nil)
        #expect(try [isMentioned("ben", in: world), isMentioned("cid", in: world)] == [false, false])
    }

    @Test("MN-16 the newest of several mentions counts, and the previous one once that is gone")
    func several() throws {
        let world = try Self.world()
        let first = try world.perform(Self.mention([.users(["ben"])], "1"), as: "ann")
        let second = try world.perform(Self.mention([.users(["ben"])], "2"), as: "ann")
        try world.perform(MarkRead(channel: "general", seq: first.seq), as: "ben")
        #expect(try isMentioned("ben", in: world))
        try world.perform(DeleteMessage(channel: "general", message: second.messageId), as: "ann")
        #expect(try !isMentioned("ben", in: world))
        let membership = try world.perform(GetChannel(channel: "general"), as: "ben").membership
        #expect(membership?.mentionSeq == first.seq && membership?.mentionMessage == first.messageId)
    }

    @Test("MN-17 users who aren't members or can't read are left out, and named in the answer")
    func dropped() throws {
        let world = try Self.world()
        let sent = try world.perform(Self.mention([.users(["ben", "eve", "nobody"])]), as: "ann")
        #expect(sent.mentionees == [.users(["ben"])] && sent.droppedMentions == ["eve", "nobody"])
        let stored = try world.perform(GetMessage(channel: "general", message: sent.messageId), as: "ben")
        #expect(stored.mentionees == [.users(["ben"])] && stored.droppedMentions == nil)
        let none = try world.perform(Self.mention([.users(["eve"])], "2"), as: "ann")
        #expect(none.mentionees == nil && none.droppedMentions == ["eve"])
        // A sender who has lost the answer gets it again, even after the unmentioned user has become a member.
        try world.perform(JoinChannel(channel: "general"), as: "eve")
        #expect(try world.perform(Self.mention([.users(["ben", "eve", "nobody"])]), as: "ann") == sent)
        #expect(try world.perform(Self.mention([.users(["eve"])], "2"), as: "ann") == none)
        try world.perform(LeaveChannel(channel: "general"), as: "eve")
        let edited = try world.perform(
            EditMessage(channel: "general", message: none.messageId, mentionees: [.users(["eve", "cid"])]), as: "ann")
        #expect(edited.mentionees == [.users(["cid"])] && edited.droppedMentions == ["eve"])
        // The edit decides whom it mentions now.
        let again = try world.perform(Self.mention([.users(["eve"])], "2"), as: "ann")
        #expect(again.mentionees == [.users(["cid"])] && again.droppedMentions == nil)
        // A message that the sender has deleted for themselves has no mentions.
        try world.perform(DeleteMessagesForMe(channel: "general", messages: [sent.messageId]), as: "ann")
        #expect(try world.perform(Self.mention([.users(["ben", "eve"])]), as: "ann").droppedMentions == nil)
        // A user who may not read the message wouldn't find it.
        try world.perform(
            UpdateChannel(channel: "general", policy: PolicyChanges(read: .operators)), as: "root", role: .admin)
        let unreadable = try world.perform(Self.mention([.users(["ben", "cid"])], "4"), as: "ann")
        #expect(unreadable.mentionees == nil && unreadable.droppedMentions == ["ben", "cid"])
        try world.perform(UpdateChannel(channel: "general", policy: PolicyChanges(read: .members)), as: "root", role: .admin)
        #expect(
            try world.rows("SELECT COUNT(*) FROM mentions WHERE message_id = \(unreadable.messageId)") { $0.int() } == [0])
        // Banned users aren't members: until then a ban is a separate row.
        try world.execute("UPDATE members SET banned_until = \(Timestamp.forever) WHERE user_id = 'ben'")
        #expect(try world.perform(Self.mention([.users(["ben"])], "3"), as: "ann").droppedMentions == ["ben"])
    }

    @Test("MN-01 D-25 SB-45 the 31st mention is refused; users above the cap aren't notified, though all are mentioned")
    func limits() throws {
        let world = try Self.world()
        world.options.mentionsPerMessage = 2
        let before = try world.dump()
        let refusal = try world.refusal(Self.mention([.users(["ann", "ben", "cid"])]), as: "ann")
        #expect(refusal?.code == .mentionLimit && refusal?.field == "mentionees" && refusal?.limit == 2)
        #expect(try world.dump() == before)
        #expect(AppOptions().mentionsPerMessage == 30 && AppOptions().mentionNotifyCap == 30)
        world.options.mentionNotifyCap = 1
        try world.perform(Self.mention([.users(["cid", "ben"])]), as: "ann")
        #expect(world.events(to: .user("cid")).last?.kind == .mentionReceived)
        #expect(world.events(to: .user("ben")).last?.kind == .readingMarked)
        #expect(try [isMentioned("ben", in: world), isMentioned("cid", in: world)] == [true, true])
    }

    @Test("MN-11 D-25 SB-45 an edit notifies no more users than the cap leaves beside those already mentioned")
    func limitsOfEdits() throws {
        let world = try Self.world()
        world.options.mentionNotifyCap = 2
        try world.perform(JoinChannel(channel: "general"), as: "eve")
        let sent = try world.perform(Self.mention([.users(["ann", "ben"])]), as: "ann")
        func notified(_ users: [UserID]) throws -> [StreamID] {
            let before = world.events().count
            let edit = EditMessage(channel: "general", message: sent.messageId, mentionees: [.users(users)])
            try world.perform(edit, as: "ann")
            return world.events().dropFirst(before).filter { $0.kind == .mentionReceived }.map(\.stream)
        }
        // The sender isn't one of the two.
        #expect(try notified(["ann", "eve", "cid", "ben"]) == [.user("eve")])
        #expect(try [isMentioned("eve", in: world), isMentioned("cid", in: world)] == [true, true])
        #expect(try notified(["ann", "cid", "ben"]) == [])
        // A user whom the message mentions again would be notified again.
        #expect(try notified(["eve", "cid"]) == [])
        #expect(try isMentioned("eve", in: world))
    }

    @Test(
        "MN-11 D-25 SB-45 however often a message is edited, deleted and restored, it notifies no more users than the cap"
    )
    func limitOfAllEdits() throws {
        let world = try Self.world()
        world.options.mentionNotifyCap = 5
        world.options.undeletionSeconds = 60
        let users = (1...6).map { UserID("u\($0)") }
        for user in users {
            try world.user(user)
            try world.perform(JoinChannel(channel: "general"), as: user)
        }
        func notified(_ body: () throws -> Void) throws -> [StreamID] {
            let before = world.events().count
            try body()
            return world.events().dropFirst(before).filter { $0.kind == .mentionReceived }.map(\.stream)
        }
        var sent: Message?
        #expect(try notified { sent = try world.perform(Self.mention([.users(["u1", "ann"])]), as: "ann") } == [.user("u1")])
        let message = try #require(sent).messageId
        func edit(_ users: [UserID]) throws {
            try world.perform(EditMessage(channel: "general", message: message, mentionees: [.users(users)]), as: "ann")
        }
        #expect(try notified { try edit(["u1", "u2"]) } == [.user("u2")])
        // Another user replaces the two, so the message has notified three.
        #expect(try notified { try edit(["u3"]) } == [.user("u3")])
        try world.perform(DeleteMessage(channel: "general", message: message), as: "ann")
        #expect(
            try notified { try world.perform(UndeleteMessage(channel: "general", message: message), as: "ann") } == [.user("u3")])
        #expect(try notified { try edit(["u4", "u5", "u6"]) } == [.user("u4")])
        #expect(try ["u4", "u5", "u6"].map { try isMentioned($0, in: world) } == [true, true, true])
        #expect(try notified { try edit([]) } == [] && notified { try edit(["u1", "u2"]) } == [])
        // Another message has its own cap.
        #expect(try notified { try world.perform(Self.mention([.users(["u1"])], "2"), as: "ann") } == [.user("u1")])
        try world.perform(PurgeMessage(channel: "general", message: message), as: "ann")
        #expect(try world.rows("SELECT user_id FROM mentions WHERE message_id = \(message)") { $0.string() } == [])
    }

    @Test("MN-13 MN-23 mentions of the whole channel can be turned off, which clients learn")
    func mentionAll() throws {
        let world = try Self.world()
        world.options.isMentionAllEnabled = false
        let message = try world.perform(Self.mention([.users(["ben"])]), as: "ann").messageId
        let before = try world.dump()
        #expect(try world.code(Self.mention([.channel], "2"), as: "ann") == .mentionAllDisabled)
        #expect(
            try world.code(EditMessage(channel: "general", message: message, mentionees: [.channel]), as: "ann")
                == .mentionAllDisabled)
        #expect(try world.dump() == before)
        #expect(try world.perform(GetConfiguration(), as: "ann").options.isMentionAllEnabled == false)
        // An acknowledged message stays so, whatever is turned off later.
        #expect(try world.perform(Self.mention([.users(["ben"]), .channel]), as: "ann").messageId == message)
    }

    @Test(
        "MN-02 D-31 conversations have no mentions, broadcasts only if their policy is changed",
        arguments: [ChannelType.conversation, .broadcast])
    func kinds(type: ChannelType) throws {
        let world = try CoreWorld()
        for user in ["ann", "ben"] as [UserID] { try world.user(user) }
        let role: AppRole = type == .broadcast ? .admin : .user
        try world.perform(CreateChannel(channel: "general", type: type, users: ["ben"]), as: "ann", role: role)
        #expect(try world.code(Self.mention([.users(["ben"])]), as: "ann", role: role) == .kindForbids)
        #expect(try world.code(SendMessage(channel: "general", clientId: "2", text: "x"), as: "ann", role: role) == nil)
        guard type == .broadcast else { return }
        var update = UpdateChannel(channel: "general")
        update.policy = PolicyChanges(mention: .admins)
        try world.perform(update, as: "ann", role: .admin)
        #expect(try world.code(Self.mention([.users(["ben"])]), as: "ann", role: .admin) == nil)
    }

    @Test("MN-16 a message that a member can't see doesn't mention them, even if it is edited")
    func floors() throws {
        let world = try Self.world()
        world.options.showsHistoryToNewMembers = false
        let old = try world.send("old", to: "general", as: "ann")
        try world.perform(JoinChannel(channel: "general"), as: "eve")
        let edited = try world.perform(
            EditMessage(channel: "general", message: old.messageId, mentionees: [.users(["eve", "ben"]), .channel]), as: "ann")
        #expect(edited.mentionees == [.users(["ben"]), .channel] && edited.droppedMentions == ["eve"])
        #expect(try [isMentioned("eve", in: world), isMentioned("ben", in: world)] == [false, true])
        #expect(try world.perform(ListMentions(), as: "eve").items == [])
    }

    @Test("SB-26 SB-60 a message that members hid from themselves still mentions them for others, and doesn't notify them")
    func ownFloors() throws {
        let world = try Self.world()
        let sent = try world.perform(Self.mention([.users(["ben", "cid"])]), as: "ann")
        try world.perform(ResetHistory(channel: "general"), as: "ben")
        try world.perform(HideChannel(channel: "general", hidePreviousMessages: true), as: "cid")
        func edit(_ text: String) throws -> Message {
            try world.perform(
                EditMessage(channel: "general", message: sent.messageId, text: text, mentionees: sent.mentionees), as: "ann")
        }
        let notices = try world.notices {
            let edited = try edit("again")
            #expect(edited.mentionees == sent.mentionees && edited.droppedMentions == nil)
        }
        #expect(!notices.contains { if case .event(let event, .user) = $0 { event.kind == .mentionReceived } else { false } })
        world.options.undeletionSeconds = 60
        try world.perform(DeleteMessage(channel: "general", message: sent.messageId), as: "ann")
        let back = try world.perform(UndeleteMessage(channel: "general", message: sent.messageId), as: "ann")
        #expect(back.mentionees == sent.mentionees && back.droppedMentions == nil)
        for user in ["ben", "cid"] as [UserID] {
            #expect(try world.perform(ListMentions(), as: user).items == [] && !isMentioned(user, in: world))
        }
    }

    @Test("MN-17 SB-60 an edit doesn't reveal who has emptied their history, even of a message from before they joined")
    func emptiedHistory() throws {
        let world = try Self.world()
        let sent = try world.perform(Self.mention([.users(["ben"])]), as: "ann")
        for user in ["dan", "eve"] as [UserID] { try world.user(user) }
        try world.perform(AddMembers(channel: "general", users: ["dan"]), as: "ann")
        try world.perform(AddMembers(channel: "general", users: ["eve"], hideHistory: true), as: "ann")
        func dropped(_ text: String) throws -> [UserID]? {
            try world.perform(
                EditMessage(channel: "general", message: sent.messageId, text: text, mentionees: [.users(["ben", "dan", "eve"])]),
                as: "ann"
            ).droppedMentions
        }
        #expect(try dropped("1") == ["eve"])
        try world.perform(ResetHistory(channel: "general"), as: "dan")
        #expect(try dropped("2") == ["eve"])
        // Nor after they have left and rejoined.
        try world.perform(LeaveChannel(channel: "general"), as: "dan")
        try world.perform(AddMembers(channel: "general", users: ["dan"]), as: "ann")
        #expect(try dropped("3") == ["eve"])
    }

    @Test("MN-16 R34 the list of a user's mentions spans channels, newest first, without messages that they can no longer see")
    func list() throws {
        let world = try Self.world()
        try world.channel("other", owner: "cid", members: ["ben"])
        var sent: [Message] = []
        for number in 0..<5 {
            let channel: ChannelID = number % 2 == 0 ? "general" : "other"
            let sender: UserID = number % 2 == 0 ? "ann" : "cid"
            world.advance(milliseconds: 2)
            sent.append(
                try world.perform(
                    SendMessage(
                        channel: channel, clientId: "\(number)", text: "\(number)", mentionees: [.users(["ben"]), .channel]),
                    as: sender))
        }
        #expect(try world.perform(ListMentions(), as: "ben").items == sent.reversed())
        let first = try world.perform(ListMentions(limit: 2), as: "ben")
        let second = try world.perform(ListMentions(limit: 2, cursor: first.nextCursor), as: "ben")
        #expect(first.items + second.items == Array(sent.reversed().prefix(4)))
        #expect(first.users?.map(\.userId) == ["ann", "ben", "cid"])
        // A mention of only the channel names nobody.
        #expect(try world.perform(ListMentions(), as: "ann").items == [])
        try world.perform(DeleteMessage(channel: "general", message: sent[4].messageId), as: "ann")
        try world.perform(LeaveChannel(channel: "other"), as: "ben")
        #expect(try world.perform(ListMentions(), as: "ben").items == [sent[2], sent[0]])
        #expect(try world.code(ListMentions(cursor: "x"), as: "ben") == .invalidArgument)
        #expect(try world.code(ListMentions(limit: 101), as: "ben") == .limitExceeded)
    }

    @Test("SB-04 MN-16 in an ephemeral channel a message says whom it mentions, without a notification or an unread mention")
    func ephemeral() throws {
        let world = try Self.world()
        try world.perform(CreateChannel(channel: "talk", type: .group, users: ["ben"], isEphemeral: true), as: "ann")
        let before = world.events().count
        let send = SendMessage(channel: "talk", clientId: "1", text: "@you", mentionees: [.users(["ben"]), .channel])
        let sent = try world.perform(send, as: "ann")
        #expect(sent.mentionees == [.users(["ben"]), .channel])
        let events = Array(world.events().dropFirst(before))
        #expect(events.map(\.kind) == [.messageNew] && events[0].rows.messages == [sent])
        #expect(events[0].rows.channelMentions == nil)
        #expect(try !world.perform(GetUnread(channel: "talk"), as: "ben").hasMention)
        #expect(try world.perform(ListMentions(), as: "ben").items == [])
    }

    @Test("MN-04 there are at most two entries, one of each type, and they say whom they name")
    func shapes() throws {
        let world = try Self.world()
        let before = try world.dump()
        let codes = try [
            [Mentionee.channel, .users(["ben"]), .channel], [.channel, .channel],
            [Mentionee(type: .channel, users: ["ben"])],
            [.users([""])],
        ].map { try world.refusal(Self.mention($0), as: "ann") }
        #expect(codes.map { $0?.code } == [.limitExceeded, .mentionInvalid, .mentionInvalid, .invalidArgument])
        #expect(codes.allSatisfy { $0?.field == "mentionees" })
        var silent = Self.mention([.channel])
        silent.content.isSilent = true
        #expect(try world.refusal(silent, as: "ann")?.field == "mentionees")
        #expect(try world.dump() == before)
        // An entry for users without names mentions nobody.
        #expect(try world.perform(Self.mention([.users([])], "none"), as: "ann").mentionees == nil)
        // A list for the channel is empty or absent.
        #expect(try world.perform(Self.mention([Mentionee(type: .channel, users: [])]), as: "ann").mentionees == [.channel])
    }

    @Test(
        "MN-16 a mention of the channel is unread before any number of the reader's own, also for a client new to the channel"
    )
    func behindOwn() throws {
        let world = try Self.world()
        func isMentionedAnew(_ user: UserID) throws -> Bool {
            let fresh = try world.perform(Resume(after: 0, channels: [:]), as: user).channels
            let rows = try #require(fresh.first?.rows)
            let membership = try #require(try world.perform(GetChannel(channel: "general"), as: user).membership)
            // The user's own stream has the messages that they deleted for themselves.
            let deletions = world.events().filter { $0.stream == .user(user) }.flatMap { $0.rows.ownDeletions ?? [] }.map(\.seq)
            let mentions = (rows.channelMentions ?? []).filter { !deletions.contains($0.seq) }
            return Unread.hasMention(in: membership, mentions, as: user)
        }
        let theirs = try world.perform(Self.mention([.channel], "theirs"), as: "ann")
        for number in 0..<(Limits.freshMentions + 5) { try world.perform(Self.mention([.channel], "\(number)"), as: "ben") }
        #expect(try isMentioned("ben", in: world) && isMentionedAnew("ben"))
        // One of them is removed, and another added by an edit.
        let sent = try world.perform(SendMessage(channel: "general", clientId: "edited", text: "x"), as: "ben")
        try world.perform(EditMessage(channel: "general", message: sent.messageId, mentionees: [.channel]), as: "ben")
        #expect(try isMentioned("ben", in: world) && isMentionedAnew("ben"))
        try world.perform(EditMessage(channel: "general", message: theirs.messageId, mentionees: []), as: "ann")
        #expect(try !isMentioned("ben", in: world) && !isMentionedAnew("ben"))
        try world.perform(EditMessage(channel: "general", message: theirs.messageId, mentionees: [.channel]), as: "ann")
        #expect(try isMentioned("ben", in: world) && isMentionedAnew("ben"))
        try world.perform(DeleteMessagesForMe(channel: "general", messages: [theirs.messageId]), as: "ben")
        #expect(try !isMentioned("ben", in: world) && !isMentionedAnew("ben"))
        #expect(try isMentioned("cid", in: world) && isMentionedAnew("cid"))
        // Each of a sender's own leads to an earlier one by another sender, not to one of the same run.
        let places = try world.rows(
            "SELECT sender_id, mention_seq, other_mention_seq FROM channel_mentions WHERE mention_seq IS NOT NULL ORDER BY mention_seq"
        ) { (sender: $0.string(), at: $0.int64(), other: $0.int64()) }
        for place in places {
            let other = places.last { $0.at < place.at && $0.sender != place.sender }?.at ?? 0
            #expect(place.other == other || place.other == theirs.seq)
        }
    }

    @Test("MN-16 R35 after every step of random histories, mentions match a recount", arguments: Seeds.first(3))
    func recount(seed: UInt64) throws {
        let world = try CoreWorld()
        var history = try RandomHistory(seed: seed, in: world)
        for _ in 0..<300 {
            let what = try history.step(in: world)
            // Messages that aren't stored can't be unread.
            let ephemeral = try world.rows("SELECT channel_id FROM channels WHERE is_ephemeral = 1") {
                $0.identifier(ChannelID.self)
            }
            for user in history.users {
                for channel in history.channels where !ephemeral.contains(channel) {
                    guard case .success(let unread) = Result(catching: { try world.perform(GetUnread(channel: channel), as: user) })
                    else { continue }
                    #expect(try unread.hasMention == Self.recount(user, channel, in: world), "\(user) in \(channel) after \(what)")
                }
            }
        }
    }

    /// Whether an unread message mentions the user, from all events so far, without the server's own bookkeeping.
    private static func recount(_ user: UserID, _ channel: ChannelID, in world: CoreWorld) throws -> Bool {
        guard let membership = try world.perform(GetChannel(channel: channel), as: user).membership else { return false }
        var since: [Seq: (byName: Seq?, ofChannel: Seq?)] = [:]
        for event in world.events() where event.stream == .channel(channel) {
            for place in event.rows.purged ?? [] { since[place.seq] = nil }
            for message in event.rows.messages ?? [] where message.sender != user {
                let names = message.mentionees?.mentionedUsers.contains(user) ?? false
                let isOfAll = message.mentionees?.mentionsChannel ?? false
                let known = since[message.seq]
                since[message.seq] = (
                    names ? known?.byName ?? message.changeSeq : nil, isOfAll ? known?.ofChannel ?? message.changeSeq : nil
                )
            }
        }
        // A message that a user deleted for themselves no longer mentions them, even if they mark it as unread.
        let deletions = world.events().filter { $0.stream == .user(user) }.flatMap { $0.rows.ownDeletions ?? [] }
        let gone = Set(deletions.filter { $0.channelId == channel }.map(\.seq))
        return since.contains { seq, since in
            !gone.contains(seq) && seq > membership.historyFloor
                && max(since.byName ?? 0, since.ofChannel ?? 0) > membership.readSeq
        }
    }
}
