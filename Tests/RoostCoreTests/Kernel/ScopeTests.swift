import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

/// An operation advances only the streams of its scope.
@Suite("Scopes")
struct ScopeTests {
    struct ScopeViolation: CustomTestStringConvertible, Sendable {
        let operation: Misplaced
        /// The stream that the failure names.
        let stream: String
        var testDescription: String { "\(operation.work.rawValue) within \(operation.channels) and \(operation.users)" }

        init(_ operation: Misplaced, _ stream: String) { (self.operation, self.stream) = (operation, stream) }
    }

    static let cases: [ScopeViolation] = [
        ScopeViolation(Misplaced(.send, in: "general"), "channel:general"),
        ScopeViolation(Misplaced(.send, in: "general", channels: ["other"], users: ["ann", "bob"]), "channel:general"),
        ScopeViolation(Misplaced(.read, in: "general", channels: ["general"]), "user:ann"),
        ScopeViolation(Misplaced(.read, in: "general", channels: ["general"], users: ["bob"]), "user:ann"),
        ScopeViolation(Misplaced(.add, in: "general", channels: ["general"]), "user:bob"),
        ScopeViolation(Misplaced(.add, in: "general", users: ["bob"]), "channel:general"),
        ScopeViolation(Misplaced(.delete, in: "general", channels: ["general"], users: ["ann"]), "user:ida"),
    ]

    private func world() throws -> CoreWorld {
        let world = try CoreWorld()
        for channel in ["general", "other"] as [ChannelID] { try world.channel(channel, owner: "ann") }
        for user in ["bob", "ida", "cid"] as [UserID] { try world.user(user) }
        try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: "ida")
        try world.perform(InviteMembers(channel: "general", users: ["ida"]), as: "ann")
        try world.perform(AddMembers(channel: "general", users: ["cid"]), as: "ann")
        try world.send("hi", to: "general", as: "cid")
        return world
    }

    @Test(
        "an operation that advances a stream outside its scope fails, which isn't a refusal, and stores nothing",
        arguments: cases)
    func outside(_ given: ScopeViolation) throws {
        let world = try world()
        let before = try world.dump()
        let noticeCount = world.notices.count
        let error = #expect(throws: (any Error).self) { try world.perform(given.operation, as: "ann") }
        #expect(!(error is RoostError))
        #expect(error.map { "\($0)" } == "The operation moves \(given.stream), which its scope doesn't name.")
        #expect(try world.dump() == before)
        #expect(world.notices.count == noticeCount)
        try world.send("on it goes", to: "general", as: "ann")
    }

    @Test("all operations wait for one that changes access or rules, unless its caller may not")
    func exclusive() {
        let operations: [any Handled] = [
            DeactivateUser(user: "bob"), ReactivateUser(user: "bob"), RevokeUserTokens(user: "bob"), RevokeToken(tokenId: "1"),
            PutChannelType(type: "new"), DeleteChannelType(type: "new"), PutRole(role: "new", rank: 1, permissions: []),
            DeleteRole(role: "new"),
        ]
        for operation in operations {
            #expect(operation.scope(for: Caller(user: "ann", role: .admin)).isExclusive)
            #expect(operation.scope(for: Caller(user: "ann")) == Scope())
        }
    }

    @Test("the same operations succeed within a scope that names the streams they advance, or says that they find them")
    func inside() throws {
        let world = try world()
        try world.perform(Misplaced(.send, in: "general", channels: ["general"]), as: "ann")
        try world.perform(Misplaced(.read, in: "general", users: ["cid"]), as: "cid")
        try world.perform(Misplaced(.add, in: "general", channels: ["general"], users: ["bob"]), as: "ann")
        // The invitation's sender is found in its row.
        try world.perform(DeleteChannel(channel: "general"), as: "ann")
        // The call doesn't name the id that the server makes.
        let made = try world.perform(CreateChannel(displayName: "made"), as: "ann").channel.channelId
        #expect(try world.perform(GetChannel(channel: made), as: "ann").channel.displayName == "made")
    }

    @Test("without a scope, as in a read, nothing can advance a stream")
    func nothing() throws {
        let world = try world()
        let before = try world.dump()
        #expect(throws: (any Error).self) { try world.inContext { _ = try $0.advanceStream(of: "ann") } }
        #expect(throws: (any Error).self) { try world.inContext(scope: .user("bob")) { _ = try $0.advanceStream(of: "ann") } }
        #expect(try world.dump() == before)
        #expect(try world.inContext(scope: .user("ann")) { try $0.advanceStream(of: "ann") } > 0)
    }
}
