import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

/// What may be asked for again without harm: the second time answers, writes nothing and tells nobody (I22).
@Suite("Operations that are repeated")
struct RepeatTests {
    struct RepeatedOperation: CustomTestStringConvertible, Sendable {
        let what: String
        let user: UserID
        let make: @Sendable (MessageID) -> any Handled
        var testDescription: String { what }

        init(_ what: String, _ user: UserID, _ make: @escaping @Sendable (MessageID) -> any Handled) {
            self.what = what
            self.user = user
            self.make = make
        }
    }

    static let cases: [RepeatedOperation] = [
        RepeatedOperation("AM-26 joining twice", "eve") { _ in JoinChannel(channel: "general") },
        RepeatedOperation("AM-26 joining one's own channel", "ann") { _ in JoinChannel(channel: "general") },
        RepeatedOperation("AM-41 leaving twice", "bob") { _ in LeaveChannel(channel: "general") },
        RepeatedOperation("AM-41 leaving what one isn't a member of", "eve") { _ in LeaveChannel(channel: "general") },
        RepeatedOperation("AM-34 deleting a channel twice", "ann") { _ in DeleteChannel(channel: "general") },
        RepeatedOperation("AM-37 updating a channel to what it is", "ann") { _ in
            UpdateChannel(channel: "general", displayName: "General", tags: ["a"], metadata: ["k": [1, 2.5, .null]])
        },
        RepeatedOperation("AM-37 updating nothing of a channel", "ann") { _ in UpdateChannel(channel: "general") },
        RepeatedOperation("X-01 updating a profile to what it is", "ann") { _ in UpdateMe(displayName: "Ann", metadata: ["k": "v"])
        },
        RepeatedOperation("X-01 updating nothing of a profile", "ann") { _ in UpdateMe() },
        RepeatedOperation("X-01 creating a user that exists", "root") { _ in UpsertUser(user: "bob") },
        RepeatedOperation("R21 deactivating a user twice", "root") { _ in DeactivateUser(user: "bob") },
        RepeatedOperation("R21 reactivating a user who is active", "root") { _ in ReactivateUser(user: "bob") },
        RepeatedOperation("R21 revoking tokens from before a moment twice", "root") { _ in
            RevokeUserTokens(user: "bob", before: Timestamp(milliseconds: 1000))
        },
        RepeatedOperation("R21 revoking a token twice", "root") { _ in
            RevokeToken(tokenId: "stolen", expiresAt: Timestamp(milliseconds: 1_772_368_300_000))
        },
        RepeatedOperation("trying an effect again twice", "root") { _ in RetryEffect(kind: "test.dead", key: "1") },
        RepeatedOperation("D-29 muting a channel for ever twice", "bob") { _ in MuteNotifications(channel: "general") },
        RepeatedOperation("D-29 ending what is no muting", "bob") { _ in UnmuteNotifications(channel: "general") },
        RepeatedOperation("I22 keeping a draft twice", "bob") { _ in SetDraft(channel: "general", text: "x", metadata: ["a": 1]) },
        RepeatedOperation("I22 removing a draft twice", "bob") { _ in SetDraft(channel: "general", text: "") },
        RepeatedOperation("I4 sending twice", "bob") { _ in
            SendMessage(channel: "general", clientId: "once", text: "x", metadata: ["a": 1], tags: ["t"])
        },
        RepeatedOperation("SB-58 editing a message to what it is", "bob") { id in
            EditMessage(channel: "general", message: id, text: "changed", data: "d", metadata: ["a": 1], tags: ["t"])
        },
        RepeatedOperation("SB-58 editing nothing of a message", "bob") { id in EditMessage(channel: "general", message: id) },
        RepeatedOperation("SB-59 deleting a message twice", "bob") { id in DeleteMessage(channel: "general", message: id) },
        RepeatedOperation("AM-45 marking all as read twice", "ann") { _ in MarkRead(channel: "general") },
        RepeatedOperation("AM-45 marking a place as read twice", "ann") { _ in MarkRead(channel: "general", seq: 2) },
        RepeatedOperation("AM-45 marking further than the end twice", "ann") { _ in MarkRead(channel: "general", seq: Limits.seqMax)
        },
        RepeatedOperation("AM-45 marking the beginning", "ann") { _ in MarkRead(channel: "general", seq: 0) },
    ]

    private func perform<O: Handled>(_ operation: O, in world: CoreWorld, as user: UserID) throws -> AnyHashable {
        AnyHashable(try world.perform(operation, as: user, role: user == "root" ? .admin : .user))
    }

    /// A JoinChannel answers with a view and a SendMessage with a message: the same one both times.
    @Test("I22 the second time answers the same and changes nothing", arguments: cases)
    func isIdempotent(case repeated: RepeatedOperation) throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        let message = try world.send("hi", to: "general", as: "bob").messageId
        try world.deadEffect("test.dead", key: "1")
        let first = try perform(repeated.make(message), in: world, as: repeated.user)
        let before = try world.dump()
        world.advance(milliseconds: 1000)
        var second: AnyHashable?
        let notices = try world.notices { second = try perform(repeated.make(message), in: world, as: repeated.user) }
        #expect(second == first)
        #expect(notices == [])
        #expect(try world.dump() == before)
    }
}
