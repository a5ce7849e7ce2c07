import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Mentions and rights")
struct MentionRightTests {
    private static let cid: [Mentionee] = [.users(["cid"])]

    @Test("MN-02 MN-11 R33 R34 where only operators may mention, a member's edit keeps mentions or removes them")
    func operatorsAlone() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["ben", "cid"])
        func send(_ clientId: ClientID) -> SendMessage {
            SendMessage(channel: "general", clientId: clientId, text: "x", mentionees: Self.cid)
        }
        func edit(_ message: MessageID, text: String? = nil, mentionees: [Mentionee]? = nil) -> EditMessage {
            EditMessage(channel: "general", message: message, text: text, mentionees: mentionees)
        }
        let mentioning = try world.perform(send("1"), as: "ben").messageId
        let plain = try world.send("y", to: "general", as: "ben").messageId
        try world.perform(UpdateChannel(channel: "general", policy: PolicyChanges(mention: .operators)), as: "ann")

        let before = try world.dump()
        let refusals = [
            try world.refusal(send("2"), as: "ben"), try world.refusal(edit(plain, mentionees: Self.cid), as: "ben"),
            try world.refusal(edit(plain, mentionees: [.channel]), as: "ben"),
            // Even if the message already has exactly these.
            try world.refusal(edit(mentioning, text: "z", mentionees: Self.cid), as: "ben"),
        ]
        #expect(refusals.allSatisfy { $0?.code == .notPermitted && $0?.rule?.hasPrefix("message.mention ") == true })
        #expect(try world.dump() == before)

        #expect(try world.perform(edit(mentioning, text: "z"), as: "ben").mentionees == Self.cid)
        #expect(try world.perform(edit(mentioning, mentionees: []), as: "ben").mentionees == nil)
        #expect(try world.perform(edit(plain, mentionees: Self.cid), as: "ann").mentionees == Self.cid)
        try world.setRole(.operator, of: "ben", in: "general")
        #expect(try world.perform(edit(mentioning, mentionees: [.channel]), as: "ben").mentionees == [.channel])
    }

    @Test("MN-02 MN-11 R34 D-31 muted members don't mention by an edit, and nobody does in conversations and broadcasts")
    func refused() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["ben", "cid"])
        try world.channel("talk", type: .conversation, owner: "ann", members: ["ben", "cid"])
        try world.perform(CreateChannel(channel: "news", type: .broadcast, users: ["ben", "cid"]), as: "ann", role: .admin)
        func edit(_ channel: ChannelID, by user: UserID, role: AppRole = .user) throws -> EditMessage {
            let message = try world.send("x", to: channel, as: user, role: role).messageId
            return EditMessage(channel: channel, message: message, mentionees: Self.cid)
        }
        let edits = [try edit("general", by: "ben"), try edit("talk", by: "ben"), try edit("news", by: "ann", role: .admin)]
        try world.execute("UPDATE members SET muted_until = \(Timestamp.forever) WHERE channel_id = 'general' AND user_id = 'ben'")

        let before = try world.dump()
        #expect(try world.code(edits[0], as: "ben") == .muted)
        #expect(try world.code(edits[1], as: "ben") == .kindForbids)
        #expect(try world.code(edits[2], as: "ann", role: .admin) == .kindForbids)
        #expect(try world.dump() == before)

        try world.execute("UPDATE members SET muted_until = NULL WHERE channel_id = 'general' AND user_id = 'ben'")
        #expect(try world.perform(edits[0], as: "ben").mentionees == Self.cid)
        let policy = UpdateChannel(channel: "news", policy: PolicyChanges(mention: .admins))
        try world.perform(policy, as: "ann", role: .admin)
        #expect(try world.perform(edits[2], as: "ann", role: .admin).mentionees == Self.cid)
    }

    @Test("MN-16 R23 R33 R34 own mentions are listed only while their channel may be read, by policy and role")
    func reading() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["ben", "cid"])
        let send = SendMessage(channel: "general", clientId: "1", text: "x", mentionees: Self.cid)
        let sent = try world.perform(send, as: "ben").messageId
        func listed() throws -> [MessageID] { try world.perform(ListMentions(), as: "cid").items.map(\.messageId) }
        func setReaders(_ audience: ChannelPolicy.Audience) throws {
            let update = UpdateChannel(channel: "general", policy: PolicyChanges(read: audience))
            try world.perform(update, as: "root", role: .admin)
        }
        #expect(try listed() == [sent])
        for audience in [.operators, .owners, .admins, .nobody] as [ChannelPolicy.Audience] {
            try setReaders(audience)
            #expect(try listed() == [], "\(audience)")
        }
        try setReaders(.operators)
        try world.perform(SetMemberRole(channel: "general", users: ["cid"], role: .operator), as: "ann")
        #expect(try listed() == [sent])
        try world.perform(SetMemberRole(channel: "general", users: ["cid"], role: .member), as: "ann")
        #expect(try listed() == [])
        try setReaders(.members)
        #expect(try listed() == [sent])
    }

    /// How a mention ends.
    enum Ending: CaseIterable { case edit, deletion, purge }

    @Test(
        "MN-11 R23 I9 a user who may no longer read is notified that a mention has ended, but not by whom; a purge names nobody",
        arguments: Ending.allCases)
    func endOfMention(by ending: Ending) throws {
        for readers in [.members, .operators] as [ChannelPolicy.Audience] {
            let world = try CoreWorld()
            try world.channel("general", owner: "ann", members: ["ben", "cid"])
            let send = SendMessage(channel: "general", clientId: "1", text: "x", mentionees: Self.cid)
            let sent = try world.perform(send, as: "ann").messageId
            let update = UpdateChannel(channel: "general", policy: PolicyChanges(read: readers))
            try world.perform(update, as: "root", role: .admin)
            switch ending {
            case .edit: try world.perform(EditMessage(channel: "general", message: sent, mentionees: []), as: "ann")
            case .deletion: try world.perform(DeleteMessage(channel: "general", message: sent), as: "ann")
            case .purge: try world.perform(PurgeMessage(channel: "general", message: sent), as: "ann")
            }
            let event = try #require(world.events(to: .user("cid")).last)
            #expect(event.kind == .readingMarked && event.rows.memberships?.map(\.mentionSeq) == [0])
            let actor: UserID? = readers == .members && ending != .purge ? "ann" : nil
            #expect(event.actor == actor, "\(readers)")
        }
    }
}
