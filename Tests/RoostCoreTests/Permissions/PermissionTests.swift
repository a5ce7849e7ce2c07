import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Permissions")
struct PermissionTests {
    struct RefusedOperation: CustomTestStringConvertible, Sendable {
        let operation: any Handled
        let user: UserID
        let code: RoostError.Code
        let rule: String
        var testDescription: String { rule }

        init(_ operation: any Handled, by user: UserID, _ code: RoostError.Code, _ rule: String) {
            self.operation = operation
            self.user = user
            self.code = code
            self.rule = rule
        }
    }

    static let cases: [RefusedOperation] = [
        RefusedOperation(UpsertUser(user: "eve"), by: "bob", .notPermitted, "user.manage needs an admin's token"),
        RefusedOperation(
            PutRole(role: "guide", rank: 1, permissions: []), by: "ann", .notPermitted, "config.manage needs an admin's token"),
        RefusedOperation(CreateChannel(type: .broadcast), by: "bob", .kindForbids, "channel.create in broadcast is for admins"),
        RefusedOperation(CreateChannel(type: .standard), by: "bob", .kindForbids, "channel.create in standard is for nobody"),
        RefusedOperation(
            UpdateChannel(channel: "general", displayName: "x"), by: "bob", .notPermitted,
            "channel.update needs a role that grants it"),
        RefusedOperation(
            UpdateChannel(channel: "general", displayName: "x"), by: "eve", .notMember, "channel.update is for members"),
        RefusedOperation(DeleteChannel(channel: "general"), by: "bob", .notPermitted, "channel.delete needs the role owner"),
        RefusedOperation(FreezeChannel(channel: "general"), by: "bob", .notPermitted, "channel.freeze needs a role that grants it"),
        RefusedOperation(
            SendMessage(channel: "general", clientId: "9", text: "x"), by: "eve", .notMember, "message.send is for members"),
        RefusedOperation(
            SendMessage(channel: "news", clientId: "9", text: "x"), by: "bob", .sendNotAllowed, "message.send is for admins"),
        RefusedOperation(
            SendMessage(channel: "frozen", clientId: "9", text: "x"), by: "bob", .frozen, "message.send: not while frozen"),
        RefusedOperation(
            EditMessage(channel: "frozen", message: MessageID(rawValue: 1), text: "x"), by: "eve", .notMember,
            "history.read is for members"),
        RefusedOperation(ListMessages(channel: "general"), by: "eve", .notMember, "history.read is for members"),
        RefusedOperation(MarkRead(channel: "general"), by: "eve", .notMember, "reading.mark is for members"),
        RefusedOperation(HideChannel(channel: "general"), by: "eve", .notMember, "channel.hide is for members"),
        RefusedOperation(WatchChannel(channel: "general"), by: "eve", .notMember, "channel.watch is for members"),
        RefusedOperation(JoinChannel(channel: "group"), by: "eve", .inviteRequired, "member.join needs an invitation"),
        RefusedOperation(AcceptInvitation(channel: "general"), by: "eve", .notInvited, "invitation.answer needs an invitation"),
        RefusedOperation(LeaveChannel(channel: "talk"), by: "bob", .kindForbids, "member.leave in conversation is for nobody"),
        RefusedOperation(
            SendMessage(channel: "deleted", clientId: "9", text: "x"), by: "bob", .notPermitted,
            "message.send: not in a deleted channel"),
        RefusedOperation(JoinChannel(channel: "deleted"), by: "bob", .notPermitted, "member.join: not in a deleted channel"),
    ]

    @Test("AM-48 a refusal names its code and the rule that refused", arguments: cases)
    func namesTheRule(of refused: RefusedOperation) throws {
        let world = try CoreWorld()
        for channel in ["general", "frozen", "deleted"] as [ChannelID] {
            try world.channel(channel, owner: "ann", members: ["bob"])
        }
        try world.perform(FreezeChannel(channel: "frozen"), as: "ann")
        try world.perform(DeleteChannel(channel: "deleted"), as: "ann")
        try world.perform(CreateChannel(channel: "news", type: .broadcast, users: ["bob"]), as: "ann", role: .admin)
        try world.perform(CreateChannel(channel: "group", type: .group, users: ["bob"]), as: "ann")
        try world.perform(CreateChannel(channel: "talk", type: .conversation, users: ["bob"]), as: "ann")
        try world.user("eve")
        let refusal = try world.refusal(refused.operation, as: refused.user, connection: 1)
        let found = [refusal?.code.rawValue, refusal?.rule]
        #expect(found == [refused.code.rawValue, refused.rule])
    }

    @Test("R33 every operation has a behaviour and a permission from the table")
    func tableIsComplete() {
        #expect(OperationTable.handled.map { $0.name } == Operations.all.map { $0.name })
    }

    @Test("SB-58 editing someone else's message is refused because of its sender")
    func someoneElses() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob", "cid"])
        let message = try world.send("mine", to: "general", as: "bob").messageId
        let refusals = try [
            world.refusal(EditMessage(channel: "general", message: message, text: "x"), as: "cid"),
            world.refusal(DeleteMessage(channel: "general", message: message), as: "cid"),
        ]
        let found = refusals.map { [$0?.code.rawValue, $0?.rule] }
        let expected = [
            ["not_message_owner", "message.editAny needs a role that grants it"],
            ["not_message_owner", "message.deleteAny needs a role that grants it"],
        ]
        #expect(found == expected)
    }

    @Test("SB-59 deleting several messages, every refusal because of one says which it is")
    func someoneElsesAmongOthers() throws {
        let world = try CoreWorld()
        try world.user("bob")
        try world.perform(CreateChannel(channel: "talk", type: .conversation, users: ["bob"]), as: "ann")
        let sent = try [world.send("one", to: "talk", as: "bob"), world.send("two", to: "talk", as: "ann")].map(\.messageId)
        let refusal = try world.refusal(DeleteMessages(channel: "talk", messages: sent), as: "bob")
        #expect(refusal?.code == .kindForbids && refusal?.field == "messages[1]")
    }

    @Test("SB-59 R23 if nobody may read, deleting several messages is refused for the channel, and names none of them")
    func nobodyReads() throws {
        let world = try CoreWorld()
        try world.channel("room", owner: "ann", members: ["bob"])
        let sent = try (1...2).map { try world.send("\($0)", to: "room", as: "bob").messageId }
        let update = UpdateChannel(channel: "room", policy: PolicyChanges(read: .nobody))
        try world.perform(update, as: "root", role: .admin)
        let refusal = try world.refusal(DeleteMessages(channel: "room", messages: sent), as: "bob")
        #expect(refusal?.code == .kindForbids && refusal?.field == nil)
    }

    @Test("SB-59 a hundred messages are deleted at once, and of a hundred and one none is")
    func hundredAtOnce() throws {
        let world = try CoreWorld()
        try world.channel("room", owner: "ann")
        let sent = try (1...101).map { try world.send("\($0)", to: "room", as: "ann").messageId }
        let refusal = try world.refusal(DeleteMessages(channel: "room", messages: sent), as: "ann")
        #expect(refusal?.code == .limitExceeded && refusal?.field == "messages" && refusal?.limit == 100)
        let deleted = try world.perform(DeleteMessages(channel: "room", messages: Array(sent.prefix(100))), as: "ann")
        #expect(deleted.messages.count == 100 && deleted.messages.allSatisfy { $0.deletedAt != nil })
        #expect(try world.perform(GetMessage(channel: "room", message: sent[100]), as: "ann").deletedAt == nil)
    }

    @Test("R33 D-39 nobody removes, or takes a role from, a member of their own rank; operators appoint operators")
    func ranks() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["oda", "ole", "gus", "bob"])
        try world.perform(
            PutRole(role: "guide", rank: 10, permissions: [.memberRemove, .memberSetRole]), as: "root", role: .admin)
        try world.perform(SetMemberRole(channel: "general", users: ["oda", "ole"], role: .operator), as: "ann")
        try world.perform(SetMemberRole(channel: "general", users: ["gus"], role: "guide"), as: "oda")
        func outcomes<O: Handled>(
            _ operation: O, by user: UserID, role: AppRole = .user
        ) throws -> [String] where O.Response == MemberResults {
            do {
                let results = try world.perform(operation, as: user, role: role).results
                return results.map { $0.error?.code.rawValue ?? $0.outcome.rawValue }
            } catch let error as RoostError {
                return [error.code.rawValue]
            }
        }
        let found = try [
            outcomes(RemoveMembers(channel: "general", users: ["ole", "ann", "oda"]), by: "oda"),
            outcomes(RemoveMembers(channel: "general", users: ["oda", "bob"]), by: "gus"),
            outcomes(SetMemberRole(channel: "general", users: ["ole"], role: .member), by: "oda"),
            outcomes(SetMemberRole(channel: "general", users: ["gus"], role: .operator), by: "oda"),
            outcomes(SetMemberRole(channel: "general", users: ["gus"], role: .owner), by: "oda"),
            outcomes(SetMemberRole(channel: "general", users: ["oda"], role: .member), by: "oda"),
        ]
        let expected = [
            ["not_permitted", "not_permitted", "invalid_argument"], ["not_permitted", "removed"], ["not_permitted"],
            ["changed"], ["not_permitted"], ["changed"],
        ]
        #expect(found == expected)
        // The app's moderators may remove operators, but nobody above these.
        let byModerator = try [
            outcomes(SetMemberRole(channel: "general", users: ["ann", "ole"], role: .member), by: "mod", role: .moderator),
            outcomes(RemoveMembers(channel: "general", users: ["ann", "gus"]), by: "mod", role: .moderator),
            outcomes(RemoveMembers(channel: "general", users: ["ann"]), by: "root", role: .admin),
        ]
        #expect(byModerator == [["not_permitted", "changed"], ["not_permitted", "removed"], ["removed"]])
    }
}
