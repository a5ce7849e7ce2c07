import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

/// Calls that may be repeated without harm: the second one answers, writes nothing and sends nothing (I22).
@Suite("Repeated operations")
struct RepeatTests {
    struct RepeatedOperation: CustomTestStringConvertible, Sendable {
        let what: String
        let user: UserID
        let make: @Sendable (MessageID) -> any Handled
        /// What happens before the first time.
        private(set) var prepare: @Sendable (CoreWorld, MessageID) throws -> Void = { _, _ in }
        /// Whether the second answer says that it was done before, and so differs from the first.
        private(set) var isAnsweredAnew = false
        var testDescription: String { what }

        init(_ what: String, _ user: UserID, _ make: @escaping @Sendable (MessageID) -> any Handled) {
            self.what = what
            self.user = user
            self.make = make
        }

        /// The same after something has happened.
        func after(_ prepare: @escaping @Sendable (CoreWorld, MessageID) throws -> Void) -> RepeatedOperation {
            var copy = self
            copy.prepare = prepare
            return copy
        }

        var answeredAnew: RepeatedOperation {
            var copy = self
            copy.isAnsweredAnew = true
            return copy
        }
    }

    static let cases: [RepeatedOperation] = generalCases + appCases + channelCases + memberCases + messageCases

    private static let generalCases: [RepeatedOperation] = [
        RepeatedOperation("AM-26 joining twice", "eve") { _ in JoinChannel(channel: "general") },
        RepeatedOperation("AM-26 joining the user's own channel", "ann") { _ in JoinChannel(channel: "general") },
        RepeatedOperation("AM-41 leaving twice", "bob") { _ in LeaveChannel(channel: "general") },
        RepeatedOperation("AM-41 leaving without being a member", "eve") { _ in LeaveChannel(channel: "general") },
        RepeatedOperation("AM-34 deleting a channel twice", "ann") { _ in DeleteChannel(channel: "general") },
        RepeatedOperation("AM-37 updating a channel to the same values", "ann") { _ in
            UpdateChannel(channel: "general", displayName: "General", tags: ["a"], metadata: ["k": [1, 2.5, .null]])
        },
        RepeatedOperation("AM-37 updating nothing of a channel", "ann") { _ in UpdateChannel(channel: "general") },
        RepeatedOperation("I22 setting a profile to what it is", "ann") { _ in UpdateMe(displayName: "Ann", metadata: ["k": "v"])
        },
        RepeatedOperation("I22 updating nothing of a profile", "ann") { _ in UpdateMe() },
        RepeatedOperation("I22 creating a user that exists", "root") { _ in UpsertUser(user: "bob") },
        RepeatedOperation("I22 deactivating a user twice", "root") { _ in DeactivateUser(user: "bob") },
        RepeatedOperation("I22 reactivating a user who is active", "root") { _ in ReactivateUser(user: "bob") },
        RepeatedOperation("I22 revoking tokens from before a moment twice", "root") { _ in
            RevokeUserTokens(user: "bob", before: Timestamp(milliseconds: 1000))
        },
        RepeatedOperation("I22 revoking a token twice", "root") { _ in
            RevokeToken(tokenId: "stolen", expiresAt: Timestamp(milliseconds: 1_772_368_300_000))
        },
        RepeatedOperation("retrying an effect twice", "root") { _ in RetryEffect(kind: "test.dead", key: "1") },
        RepeatedOperation("D-29 muting a channel without limit twice", "bob") { _ in MuteNotifications(channel: "general") },
        RepeatedOperation("D-29 unmuting an unmuted channel", "bob") { _ in UnmuteNotifications(channel: "general") },
        RepeatedOperation("I22 keeping a draft twice", "bob") { _ in SetDraft(channel: "general", text: "x", metadata: ["a": 1]) },
        RepeatedOperation("I22 removing a draft twice", "bob") { _ in SetDraft(channel: "general", text: "") },
        RepeatedOperation("I4 sending twice", "bob") { _ in
            SendMessage(channel: "general", clientId: "once", text: "x", metadata: ["a": 1], tags: ["t"])
        },
        RepeatedOperation("SB-58 editing a message to the same text", "bob") { id in
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

    private static let appCases: [RepeatedOperation] = [
        RepeatedOperation("R03 putting a type twice", "root") { _ in PutChannelType(type: "own", basedOn: .community) },
        RepeatedOperation("R03 deleting a type twice", "root") { _ in DeleteChannelType(type: "own") }
            .after { world, _ in try world.perform(PutChannelType(type: "own"), as: "root", role: .admin) },
        RepeatedOperation("R33 putting a role twice", "root") { _ in
            PutRole(role: "clerk", rank: 3, permissions: [.memberRemove])
        },
        RepeatedOperation("R33 deleting a role twice", "root") { _ in DeleteRole(role: "clerk") }
            .after { world, _ in
                try world.perform(PutRole(role: "clerk", rank: 3, permissions: []), as: "root", role: .admin)
            },
        RepeatedOperation("SB-18 setting preferences twice", "bob") { _ in UpdatePreferences(autoAcceptInvitations: false) },
    ]

    private static let channelCases: [RepeatedOperation] = [
        RepeatedOperation("SB-12 creating a channel twice with one key", "ann") { _ in
            CreateChannel(channel: "mine", idempotencyKey: "once")
        },
        RepeatedOperation("SB-21 freezing a channel twice", "ann") { _ in FreezeChannel(channel: "general") },
        RepeatedOperation("SB-21 unfreezing a channel twice", "ann") { _ in UnfreezeChannel(channel: "general") }
            .after { world, _ in try world.perform(FreezeChannel(channel: "general"), as: "ann") },
        RepeatedOperation("AM-07 silencing a channel without limit twice", "ann") { _ in SilenceChannel(channel: "general") },
        RepeatedOperation("AM-07 ending a silence twice", "ann") { _ in UnsilenceChannel(channel: "general") }
            .after { world, _ in try world.perform(SilenceChannel(channel: "general"), as: "ann") },
        RepeatedOperation("AM-08 setting a rate limit twice", "ann") { _ in
            SetRateLimit(channel: "general", messages: 5, windowSeconds: 10)
        },
        RepeatedOperation("AM-08 removing a rate limit twice", "ann") { _ in RemoveRateLimit(channel: "general") }
            .after { world, _ in
                try world.perform(SetRateLimit(channel: "general", messages: 5, windowSeconds: 10), as: "ann")
            },
        RepeatedOperation("SB-26 hiding a channel twice", "bob") { _ in HideChannel(channel: "general") },
        RepeatedOperation("SB-26 R23 hiding a channel with its messages twice", "ann") { _ in
            HideChannel(channel: "general", hidePreviousMessages: true)
        },
        RepeatedOperation("SB-28 unhiding a channel twice", "bob") { _ in UnhideChannel(channel: "general") }
            .after { world, _ in try world.perform(HideChannel(channel: "general"), as: "bob") },
        RepeatedOperation("SB-60 R23 emptying a channel for oneself twice", "ann") { _ in ResetHistory(channel: "general") },
    ]

    private static let memberCases: [RepeatedOperation] = [
        RepeatedOperation("AM-40 adding a member twice", "ann") { _ in AddMembers(channel: "general", users: ["eve"]) }
            .answeredAnew,
        RepeatedOperation("AM-40 removing a member twice", "ann") { _ in RemoveMembers(channel: "general", users: ["bob"]) }
            .answeredAnew,
        RepeatedOperation("R33 giving a role twice", "ann") { _ in
            SetMemberRole(channel: "general", users: ["bob"], role: .operator)
        }.answeredAnew,
        RepeatedOperation("SB-13 inviting twice", "bob") { _ in InviteMembers(channel: "general", users: ["eve"]) }
            .after { world, _ in try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: "eve") }
            .answeredAnew,
        RepeatedOperation("SB-15 accepting an invitation twice", "eve") { _ in AcceptInvitation(channel: "general") }
            .after { world, _ in try invite(in: world) },
        RepeatedOperation("R14 withdrawing an invitation twice", "bob") { _ in
            WithdrawInvitations(channel: "general", users: ["eve"])
        }.after { world, _ in try invite(in: world) }.answeredAnew,
    ]

    private static func invite(in world: CoreWorld) throws {
        try world.perform(UpdatePreferences(autoAcceptInvitations: false), as: "eve")
        try world.perform(InviteMembers(channel: "general", users: ["eve"]), as: "bob")
    }

    private static let messageCases: [RepeatedOperation] = [
        RepeatedOperation("SB-33 I4 sending an admin message twice", "root") { _ in
            SendAdminMessage(channels: ["general"], clientId: "once", text: "x", metaArrays: ["k": ["b", "a"]])
        },
        RepeatedOperation("SB-37 changing lists of texts twice", "bob") { id in
            UpdateMetaArrays(channel: "general", message: id, create: ["k"], add: ["k": ["b", "a"]], remove: ["other"])
        },
        RepeatedOperation("SB-59 deleting several messages twice", "bob") { id in
            DeleteMessages(channel: "general", messages: [id])
        },
        RepeatedOperation("SB-59 R23 deleting a message for oneself twice", "ann") { id in
            DeleteMessagesForMe(channel: "general", messages: [id])
        },
        RepeatedOperation("SB-59 R24 restoring a message twice", "bob") { id in
            UndeleteMessage(channel: "general", message: id)
        }.after { world, id in try world.perform(DeleteMessage(channel: "general", message: id), as: "bob") },
        RepeatedOperation("AM-45 marking as unread twice", "ann") { _ in MarkUnread(channel: "general", seq: 1) }
            .after { world, _ in try world.perform(MarkRead(channel: "general"), as: "ann") },
        RepeatedOperation("X-33 marking as delivered twice", "ann") { _ in MarkDelivered(channel: "general", seq: 2) }
            .after { world, _ in
                let change = UpdateChannel(channel: "general", policy: PolicyChanges(deliveryEvents: true))
                try world.perform(change, as: "ann")
            },
    ]

    /// The operations left out of the cases, and why.
    private static let exceptions: [String: String] = [
        SignOutDevice.name: "the device is gone by then: it is refused",
        DeclineInvitation.name: "the invitation is answered by then: it is refused",
        PurgeMessage.name: "the message is gone by then: it is refused",
        StartReading.name: "it is about a connection, and told each time",
        StopReading.name: "it is about a connection, and told each time",
        WatchChannel.name: "it is about a connection, and told each time",
        QueryAndWatchChannels.name: "it is about a connection, and told each time",
        UnwatchChannel.name: "it is about a connection, and told each time",
    ]

    private func perform<O: Handled>(_ operation: O, in world: CoreWorld, as user: UserID) throws -> AnyHashable {
        AnyHashable(try world.perform(operation, as: user, role: user == "root" ? .admin : .user))
    }

    /// A JoinChannel answers with a view and a SendMessage with a message: the same one both times.
    @Test("I22 the second time answers the same and changes nothing", arguments: cases)
    func isIdempotent(case repeated: RepeatedOperation) throws {
        let world = try CoreWorld()
        world.options.undeletionSeconds = 60
        try world.channel("general", owner: "ann", members: ["bob"])
        try world.user("eve")
        let message = try world.send("hi", to: "general", as: "bob").messageId
        try world.deadEffect("test.dead", key: "1")
        try repeated.prepare(world, message)
        let first = try perform(repeated.make(message), in: world, as: repeated.user)
        let before = try world.dump()
        world.advance(milliseconds: 1000)
        var second: AnyHashable?
        let notices = try world.notices { second = try perform(repeated.make(message), in: world, as: repeated.user) }
        #expect((second == first) != repeated.isAnsweredAnew)
        // Marking as unread again ends reading again.
        let others = notices.filter { if case .markedUnread("ann", "general", at: _) = $0 { false } else { true } }
        #expect(others == [])
        #expect(try world.dump() == before)
    }

    @Test("I22 an operation possible only once is refused the second time, and changes nothing then")
    func onlyOnce() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        try world.user("eve")
        try world.device("phone", of: "bob")
        let message = try world.send("hi", to: "general", as: "bob").messageId
        try Self.invite(in: world)
        try world.channel("private", type: .group, owner: "ann", members: ["bob"])
        let operations: [(any Handled, UserID, RoostError.Code)] = [
            (SignOutDevice(device: "phone"), "bob", .notFound), (DeclineInvitation(channel: "general"), "eve", .notInvited),
            (PurgeMessage(channel: "general", message: message), "bob", .notFound),
            (LeaveChannel(channel: "private"), "bob", .notFound),
        ]
        for (operation, user, code) in operations {
            _ = try perform(operation, in: world, as: user)
            let before = try world.dump()
            world.advance(milliseconds: 1000)
            var refusal: RoostError?
            let notices = try world.notices { refusal = try world.refusal(operation, as: user) }
            #expect(refusal?.code == code && notices == [], "\(type(of: operation).name)")
            #expect(try world.dump() == before)
        }
    }

    @Test("I22 every operation that changes something is repeated here, or left out for a reason")
    func isComplete() {
        let repeated = Set(Self.cases.map { type(of: $0.make(MessageID(rawValue: 1))).name })
        let changing = Set(Operations.all.filter { !$0.isReadOnly }.map { $0.name })
        #expect(changing.subtracting(repeated).symmetricDifference(Self.exceptions.keys) == [])
    }
}
