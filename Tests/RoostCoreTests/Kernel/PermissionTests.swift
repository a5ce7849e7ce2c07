import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@Suite("Permissions")
struct PermissionTests {
    struct Case: CustomTestStringConvertible, Sendable {
        let operation: any Handled
        let user: UserID
        let code: RoostError.Code
        let rule: String
        var testDescription: String { rule }
    }

    static let cases: [Case] = [
        Case(operation: UpsertUser(user: "eve"), user: "bob", code: .notPermitted, rule: "user.manage needs an admin's token"),
        Case(
            operation: UpdateChannel(channel: "general", displayName: "x"), user: "bob", code: .notPermitted,
            rule: "channel.update needs the role operator or owner"),
        Case(
            operation: UpdateChannel(channel: "general", displayName: "x"), user: "eve", code: .notMember,
            rule: "channel.update is for members"),
        Case(
            operation: DeleteChannel(channel: "general"), user: "bob", code: .notPermitted,
            rule: "channel.delete needs the role owner"),
        Case(
            operation: SendMessage(channel: "general", clientId: "9", text: "x"), user: "eve", code: .notMember,
            rule: "message.send is for members"),
        Case(operation: ListMessages(channel: "general"), user: "eve", code: .notMember, rule: "history.read is for members"),
        Case(operation: MarkRead(channel: "general"), user: "eve", code: .notMember, rule: "read.mark is for members"),
        Case(operation: WatchChannel(channel: "general"), user: "eve", code: .notMember, rule: "channel.watch is for members"),
        Case(
            operation: SendMessage(channel: "deleted", clientId: "9", text: "x"), user: "bob", code: .notPermitted,
            rule: "message.send: not in a deleted channel"),
        Case(
            operation: JoinChannel(channel: "deleted"), user: "bob", code: .notPermitted,
            rule: "member.join: not in a deleted channel"),
    ]

    @Test("X-01 a refusal names its code and the rule that refused", arguments: cases)
    func namesTheRule(of refused: Case) throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        try world.channel("deleted", owner: "ann", members: ["bob"])
        try world.perform(DeleteChannel(channel: "deleted"), as: "ann")
        try world.user("eve")
        let refusal = try world.refusal(refused.operation, as: refused.user, connection: 1)
        let found = [refusal?.code.rawValue, refusal?.rule]
        #expect(found == [refused.code.rawValue, refused.rule])
    }

    @Test("X-01 every operation has a behaviour and a permission of the table")
    func tableIsComplete() {
        #expect(OperationTable.handled.map { $0.name } == Operations.all.map { $0.name })
    }

    @Test("SB-58 editing someone else's message is refused for whose it is")
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
            ["not_message_owner", "message.editAny needs the role operator or owner"],
            ["not_message_owner", "message.deleteAny needs the role operator or owner"],
        ]
        #expect(found == expected)
    }
}
