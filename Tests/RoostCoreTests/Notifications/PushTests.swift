import RoostAPI
import RoostDatabase
import RoostTestSupport
import Testing

@testable import RoostCore

/// Who gets a push for a message, and when it is requested.
@Suite("Pushes")
struct PushTests {
    private static func world(members: [UserID] = ["ben", "cid"]) throws -> CoreWorld {
        let world = try CoreWorld()
        try world.channel("room", owner: "ann", members: members)
        world.handsOffPushes = true
        return world
    }

    private static func waiting(in world: CoreWorld) throws -> [Effect] {
        try world.database.read { try $0.effectsDue(of: [.push], at: world.now, limit: 100).due }
    }

    /// Hands off pending pushes, as the runner does.
    private static func handOff(in world: CoreWorld) throws -> [PushNotification] {
        var all: [PushNotification] = []
        while let effect = try waiting(in: world).first {
            let pushes = try world.inContext { try $0.pushes(for: effect) }
            all += pushes.notifications
            let ended = try world.inContext(scope: EffectKind.push.scope(effect)) {
                try $0.finish(effect, String(pushes.upTo), as: .push)
            }
            #expect(ended)
        }
        return all
    }

    private func users(_ pushes: [PushNotification]) -> [[UserID]] { pushes.map { $0.recipients.map(\.user) } }

    @discardableResult
    private func send(_ message: SendMessage, in world: CoreWorld, as user: UserID = "ann") throws -> Message {
        world.advance(milliseconds: 1)
        return try world.perform(message, as: user)
    }

    @Test("ST-07 SB-02 every other member gets pushes for messages that count as unread, with the names that a push shows")
    func members() throws {
        let world = try Self.world()
        try world.perform(UpdateChannel(channel: "room", displayName: "The room"), as: "ann")
        try world.perform(UpdateMe(displayName: "Ann"), as: "ann")
        let sent = try send(SendMessage(channel: "room", clientId: "1", text: "hi"), in: world)
        let pushes = try Self.handOff(in: world)
        #expect(pushes.map(\.message) == [sent])
        #expect(pushes.first?.channelName == "The room" && pushes.first?.sender?.displayName == "Ann")
        #expect(users(pushes) == [["ben", "cid"]])
        #expect(pushes.first?.recipients.contains(where: \.isMentioned) == false)
        // It is done.
        #expect(try Self.waiting(in: world).isEmpty)
    }

    @Test("ST-07 MN-19 a channel's only member gets pushes for messages of non-members: a backend, or strangers who may send")
    func onlyMember() throws {
        let world = try Self.world()
        for user: UserID in ["dan", "eve"] { try world.user(user) }
        try world.perform(CreateChannel(channel: "orders", users: ["dan"]), as: "shop", role: .service)
        let sent = try world.send("hi", to: "orders", as: "shop", role: .service)
        try world.perform(
            SendAdminMessage(channels: ["orders"], clientId: "admin", text: "closing"), as: "shop", role: .service)
        #expect(users(try Self.handOff(in: world)) == [["dan"], ["dan"]])
        try world.perform(MarkRead(channel: "orders"), as: "dan")
        try world.perform(
            EditMessage(channel: "orders", message: sent.messageId, mentionees: [.users(["dan"])]), as: "shop", role: .service)
        #expect(users(try Self.handOff(in: world)) == [["dan"]])

        try world.channel("stage", type: .livestream, owner: "dan")
        try world.send("hello", to: "stage", as: "eve")
        #expect(users(try Self.handOff(in: world)) == [["dan"]])
        // There is nobody else to get a push for the member's own message.
        try world.send("welcome", to: "stage", as: "dan")
        #expect(try Self.waiting(in: world).isEmpty)
    }

    @Test("ST-07 system messages are pushed to nobody")
    func announcement() throws {
        let world = try Self.world()
        try world.user("dan")
        try world.perform(UpdateChannel(channel: "room", policy: PolicyChanges(announcesJoins: true)), as: "root", role: .admin)
        try world.perform(JoinChannel(channel: "room"), as: "dan")
        #expect(try world.perform(ListMessages(channel: "room"), as: "ben").messages.map(\.kind) == [.system])
        #expect(try Self.waiting(in: world).isEmpty)
    }

    /// Reasons why ben, or everybody, gets no push for the message "hi" that ann then sends.
    private static let reasons:
        [(name: String, before: @Sendable (CoreWorld) throws -> Void, after: @Sendable (CoreWorld) throws -> Void)] = [
            ("read", { _ in }, { try $0.perform(MarkRead(channel: "room"), as: "ben") }),
            ("muted for himself", { try $0.perform(MuteNotifications(channel: "room"), as: "ben") }, { _ in }),
            (
                "banned", { try $0.execute("UPDATE members SET banned_until = \(Timestamp.forever) WHERE user_id = 'ben'") },
                { _ in }
            ),
            ("deactivated", { _ in }, { try $0.perform(DeactivateUser(user: "ben"), as: "root", role: .admin) }),
            ("left", { _ in }, { try $0.perform(LeaveChannel(channel: "room"), as: "ben") }),
            (
                "joined after it", { try $0.perform(LeaveChannel(channel: "room"), as: "ben") },
                { try $0.perform(JoinChannel(channel: "room"), as: "ben") }
            ),
            ("emptied", { _ in }, { try $0.perform(ResetHistory(channel: "room"), as: "ben") }),
            (
                "no reader", { _ in },
                {
                    try $0.perform(
                        UpdateChannel(channel: "room", policy: PolicyChanges(read: .operators)), as: "root", role: .admin)
                    try $0.setRole(.operator, of: "cid", in: "room")
                }
            ),
            (
                "deleted for himself", { _ in },
                { world in
                    let page = try world.perform(ListMessages(channel: "room"), as: "ben")
                    try world.perform(DeleteMessagesForMe(channel: "room", messages: page.messages.map(\.messageId)), as: "ben")
                }
            ),
        ]

    @Test("ST-07 SB-02 D-29 SB-14 users who can't see, have read or don't want a message get no push", arguments: reasons.indices)
    func left(reason: Int) throws {
        let world = try Self.world()
        try Self.reasons[reason].before(world)
        try send(SendMessage(channel: "room", clientId: "1", text: "hi"), in: world)
        try Self.reasons[reason].after(world)
        #expect(users(try Self.handOff(in: world)) == [["cid"]], "\(Self.reasons[reason].name)")
    }

    @Test("SB-39 X-24 the sender decides on pushes: to nobody, or also to members who have muted the channel")
    func option() throws {
        let world = try Self.world()
        try world.perform(MuteNotifications(channel: "room"), as: "ben")
        try send(SendMessage(channel: "room", clientId: "1", text: "hi", pushOption: .suppress), in: world)
        try send(SendMessage(channel: "room", clientId: "2", text: "hi", isSilent: true), in: world)
        #expect(try Self.waiting(in: world).isEmpty)
        try send(SendMessage(channel: "room", clientId: "3", text: "hi", pushOption: .force), in: world)
        #expect(users(try Self.handOff(in: world)) == [["ben", "cid"]])
    }

    @Test("D-20 MN-22 the app decides what is pushed: everything, only mentions, or nothing, whatever a sender says")
    func level() throws {
        let world = try Self.world()
        func pushed(_ level: AppOptions.PushLevel) throws -> [String: [UserID]] {
            world.options.pushLevel = level
            func message(_ id: String, _ mentionees: [Mentionee]? = nil, _ option: PushOption = .default) -> SendMessage {
                SendMessage(
                    channel: "room", clientId: ClientID("\(level.rawValue) \(id)"), text: id, mentionees: mentionees,
                    pushOption: option)
            }
            try send(message("plain"), in: world)
            try send(message("name", [.users(["cid"])]), in: world)
            try send(message("channel", [.channel]), in: world)
            try send(message("force", nil, .force), in: world)
            try send(message("suppress", [.users(["cid"])], .suppress), in: world)
            let sent = try send(message("before"), in: world)
            var pushes = try Self.handOff(in: world)
            try world.perform(
                EditMessage(channel: "room", message: sent.messageId, text: "edited", mentionees: [.users(["ben"])]), as: "ann")
            pushes += try Self.handOff(in: world)
            return Dictionary(uniqueKeysWithValues: pushes.map { ($0.message.text, $0.recipients.map(\.user)) })
        }
        let (both, nobody): ([UserID], [String: [UserID]]) = (["ben", "cid"], [:])
        #expect(
            try pushed(.all) == ["plain": both, "name": both, "channel": both, "force": both, "before": both, "edited": ["ben"]])
        #expect(try pushed(.mentionsOnly) == ["name": ["cid"], "channel": both, "force": both, "edited": ["ben"]])
        #expect(try pushed(.none) == nobody)
        // Earlier requested pushes are no longer handed off.
        world.options.pushLevel = .all
        try send(SendMessage(channel: "room", clientId: "last", text: "last"), in: world)
        #expect(try Self.waiting(in: world).count == 1)
        world.options.pushLevel = .none
        #expect(try Self.handOff(in: world).isEmpty && Self.waiting(in: world).isEmpty)
    }

    @Test("MN-19 D-25 mentioned users are marked, by name as many as are notified")
    func mentions() throws {
        let world = try Self.world()
        world.options.mentionNotifyCap = 1
        // The sender isn't notified.
        try send(
            SendMessage(channel: "room", clientId: "1", text: "hi", mentionees: [.users(["ann", "cid", "ben"])]), in: world)
        try send(SendMessage(channel: "room", clientId: "2", text: "hi", mentionees: [.channel]), in: world)
        let pushes = try Self.handOff(in: world)
        #expect(users(pushes) == [["ben", "cid"], ["ben", "cid"]])
        #expect(pushes.map { $0.recipients.filter(\.isMentioned).map(\.user) } == [["cid"], ["ben", "cid"]])
    }

    @Test("MN-19 SB-45 D-25 an edit is pushed to no more users than the cap leaves beside those already mentioned")
    func mentionsOfEdits() throws {
        let world = try Self.world(members: ["ben", "cid", "dan"])
        world.options.mentionNotifyCap = 2
        let sent = try send(SendMessage(channel: "room", clientId: "1", text: "hi", mentionees: [.users(["ben"])]), in: world)
        _ = try Self.handOff(in: world)
        try world.perform(
            EditMessage(channel: "room", message: sent.messageId, mentionees: [.users(["ben", "cid", "dan"])]), as: "ann")
        #expect(users(try Self.handOff(in: world)) == [["cid"]])
        // Nor does removing earlier mentions help.
        try world.perform(EditMessage(channel: "room", message: sent.messageId, mentionees: [.users(["dan"])]), as: "ann")
        try world.perform(EditMessage(channel: "room", message: sent.messageId, mentionees: [.users(["ben"])]), as: "ann")
        #expect(users(try Self.handOff(in: world)) == [])
    }

    @Test("MN-19 an edit is pushed to the users it newly mentions, even if they had read the message")
    func edits() throws {
        let world = try Self.world()
        let sent = try send(SendMessage(channel: "room", clientId: "1", text: "hi", mentionees: [.users(["ben"])]), in: world)
        _ = try Self.handOff(in: world)
        for user: UserID in ["ben", "cid"] { try world.perform(MarkRead(channel: "room"), as: user) }
        try world.perform(EditMessage(channel: "room", message: sent.messageId, text: "ho"), as: "ann")
        #expect(try Self.waiting(in: world).isEmpty)
        try world.perform(
            EditMessage(channel: "room", message: sent.messageId, mentionees: [.users(["ben", "cid"])]), as: "ann")
        let named = try Self.handOff(in: world)
        #expect(users(named) == [["cid"]] && named.first?.message.text == "ho")
        try world.perform(MarkRead(channel: "room"), as: "cid")
        try world.perform(
            EditMessage(channel: "room", message: sent.messageId, mentionees: [.users(["cid"]), .channel]), as: "ann")
        #expect(users(try Self.handOff(in: world)) == [["ben", "cid"]])
    }

    @Test(
        "MN-19 an edit is pushed to its mentioned users even if others change the message, or more arrives during the hand-off"
    )
    func laterEdits() throws {
        let world = try Self.world()
        let sent = try send(SendMessage(channel: "room", clientId: "1", text: "hi"), in: world)
        _ = try Self.handOff(in: world)
        func edit(_ change: (inout EditMessage) -> Void) throws {
            var edit = EditMessage(channel: "room", message: sent.messageId)
            change(&edit)
            try world.perform(edit, as: "ann")
        }
        try edit { $0.mentionees = [.users(["ben"])] }
        try world.perform(MarkRead(channel: "room"), as: "cid")
        try edit { $0.text = "ho" }
        let effect = try #require(try Self.waiting(in: world).first)
        let pushes = try world.inContext { try $0.pushes(for: effect) }
        #expect(users(pushes.notifications) == [["ben"]])
        try edit { $0.mentionees = [.users(["ben", "cid"])] }
        #expect(try Self.waiting(in: world).count == 1)
        let ended = try world.inContext(scope: EffectKind.push.scope(effect)) {
            try $0.finish(effect, String(pushes.upTo), as: .push)
        }
        #expect(ended)
        #expect(users(try Self.handOff(in: world)) == [["cid"]])
        // A user who has read it since gets no push, whatever happens to it.
        try edit { $0.mentionees = [.users(["ben", "cid"]), .channel] }
        for user: UserID in ["ben", "cid"] { try world.perform(MarkRead(channel: "room"), as: user) }
        try edit { $0.text = "hm" }
        #expect(try Self.handOff(in: world).isEmpty)
    }

    @Test("MN-19 a user mentioned by a second edit who had read the first gets a push, even if both are handed off together")
    func secondEdit() throws {
        let world = try Self.world()
        let sent = try send(SendMessage(channel: "room", clientId: "1", text: "hi"), in: world)
        _ = try Self.handOff(in: world)
        func mention(_ mentionees: [Mentionee]) throws {
            try world.perform(EditMessage(channel: "room", message: sent.messageId, mentionees: mentionees), as: "ann")
        }
        try mention([.users(["ben"])])
        for user: UserID in ["ben", "cid"] { try world.perform(MarkRead(channel: "room"), as: user) }
        try mention([.users(["ben", "cid"])])
        #expect(users(try Self.handOff(in: world)) == [["cid"]])
        // The channel is mentioned after all had read it, ben by name earlier.
        for user: UserID in ["ben", "cid"] { try world.perform(MarkRead(channel: "room"), as: user) }
        try mention([.users(["ben", "cid"]), .channel])
        #expect(users(try Self.handOff(in: world)) == [["ben", "cid"]])
    }

    @Test("each channel has one pending row; messages during its hand-off go to the next one, and deleted ones to none")
    func merging() throws {
        let world = try Self.world()
        try world.channel("other", owner: "ann", members: ["ben"])
        var sent: [Message] = []
        for number in 1...3 {
            sent.append(try send(SendMessage(channel: "room", clientId: "\(number)", text: "\(number)"), in: world))
        }
        try send(SendMessage(channel: "other", clientId: "1", text: "other"), in: world)
        let effects = try Self.waiting(in: world)
        #expect(effects.count == 2)
        let effect = try #require(effects.first)
        let pushes = try world.inContext { try $0.pushes(for: effect) }
        #expect(pushes.notifications.map(\.message) == sent)
        // Another runner has it now, and two more messages arrive.
        for number in 4...5 {
            sent.append(try send(SendMessage(channel: "room", clientId: "\(number)", text: "\(number)"), in: world))
        }
        try world.perform(DeleteMessage(channel: "room", message: sent[4].messageId), as: "ann")
        let ended = try world.inContext(scope: EffectKind.push.scope(effect)) {
            try $0.finish(effect, String(pushes.upTo), as: .push)
        }
        #expect(ended)
        let rest = try Self.handOff(in: world)
        #expect(Set(rest.map(\.message.text)) == ["other", "4"] && rest.count == 2)
    }

    @Test("a push requested before the clock was set back is handed off at once, without another message, and with the next ones")
    func clockSetBack() throws {
        let world = try Self.world()
        try send(SendMessage(channel: "room", clientId: "1", text: "1"), in: world)
        world.advance(milliseconds: -3_600_000)
        #expect(try Self.waiting(in: world).count == 1)
        let state = try world.database.read { try $0.effectsState(of: [.push], at: world.now) }
        #expect(state.lateMilliseconds == 0)
        try send(SendMessage(channel: "room", clientId: "2", text: "2"), in: world)
        #expect(try Self.handOff(in: world).map(\.message.text) == ["1", "2"])
    }

    @Test("a push that was started or has failed before the clock was set back waits no longer than its lease or pause")
    func startedBeforeClockSetBack() throws {
        let world = try Self.world()
        let start = world.now
        for (ahead, attempts, hasFailed, count) in [
            (5_400_000, 1, false, 1), (5_400_000, 1, true, 1), (86_400_000, 20, true, 1), (62_000, 1, false, 1),
            (0, 1, false, 0), (0, 20, true, 0),
        ] as [(Int64, Int, Bool, Int)] {
            try world.execute("DELETE FROM effects")
            world.now = start
            world.advance(milliseconds: ahead)
            let id = ClientID("\(ahead) \(attempts) \(hasFailed)")
            try send(SendMessage(channel: "room", clientId: id, text: "1"), in: world)
            let effect = try #require(try Self.waiting(in: world).first)
            let lease = world.now.after(seconds: EffectKind.leaseSecondsMax)
            let started = try world.inContext { try $0.lease(effect, until: lease) }
            let leased = try #require(started)
            if hasFailed {
                let isDead = try world.inContext {
                    try $0.recordFailure(of: leased, attempts: attempts, reason: "", as: .push)
                }
                #expect(!isDead)
            }
            world.now = start.after(seconds: 1)
            #expect(try Self.waiting(in: world).count == count, "\(ahead) \(attempts) \(hasFailed)")
        }
    }

    @Test("a hundred messages are handed off at once, and the others after them")
    func pages() throws {
        let world = try Self.world()
        for number in 1...250 { try send(SendMessage(channel: "room", clientId: "\(number)", text: "\(number)"), in: world) }
        let first = try #require(try Self.waiting(in: world).first)
        #expect(try world.inContext { try $0.pushes(for: first) }.notifications.count == 100)
        #expect(try Self.handOff(in: world).map(\.message.text) == (1...250).map { "\($0)" })
    }

    @Test("in a channel of very many members only members mentioned by name get a push")
    func large() throws {
        let world = try Self.world()
        try world.execute("UPDATE channel_heads SET member_count = \(Int64(Limits.largeChannelMembers) + 1)")
        try send(SendMessage(channel: "room", clientId: "1", text: "hi", mentionees: [.channel]), in: world)
        #expect(try Self.waiting(in: world).isEmpty)
        try send(SendMessage(channel: "room", clientId: "2", text: "hi", mentionees: [.users(["cid"])]), in: world)
        try send(SendMessage(channel: "room", clientId: "3", text: "hi"), in: world)
        let pushes = try Self.handOff(in: world)
        #expect(users(pushes) == [["cid"]] && pushes.first?.message.clientId == "2")
    }

    @Test("ST-07 a channel of exactly 1,000 members gets all pushes, also for messages that arrive during a hand-off")
    func atTheLimit() throws {
        let world = try Self.world()
        try world.execute("UPDATE channel_heads SET member_count = \(Int64(Limits.largeChannelMembers))")
        try send(SendMessage(channel: "room", clientId: "1", text: "hi"), in: world)
        let effect = try #require(try Self.waiting(in: world).first)
        let pushes = try world.inContext { try $0.pushes(for: effect) }
        #expect(users(pushes.notifications) == [["ben", "cid"]])
        try send(SendMessage(channel: "room", clientId: "2", text: "ho"), in: world)
        let ended = try world.inContext(scope: EffectKind.push.scope(effect)) {
            try $0.finish(effect, String(pushes.upTo), as: .push)
        }
        #expect(ended)
        let rest = try Self.handOff(in: world)
        #expect(rest.map(\.message.clientId) == ["2"] && users(rest) == [["ben", "cid"]])
    }

    @Test("SB-04 a message of an ephemeral channel is pushed without its text, which isn't stored")
    func ephemeral() throws {
        let world = try Self.world()
        try world.perform(CreateChannel(channel: "talk", type: .group, users: ["ben", "cid"], isEphemeral: true), as: "ann")
        for number in 1...2 {
            try send(
                SendMessage(channel: "talk", clientId: "\(number)", text: "secret \(number)", mentionees: [.users(["ben"])]),
                in: world)
        }
        #expect(try world.dump().contains { $0.contains("secret") } == false)
        let late = try Self.waiting(in: world)
        #expect(late.count == 2)
        let pushes = try Self.handOff(in: world)
        #expect(Set(pushes.map(\.message.clientId)) == ["1", "2"])
        #expect(pushes.allSatisfy { $0.message.text.isEmpty && $0.message.channelId == "talk" })
        #expect(pushes.allSatisfy { $0.recipients.filter(\.isMentioned).map(\.user) == ["ben"] && $0.recipients.count == 2 })
        world.advance(milliseconds: 3_600_001)
        for effect in late { #expect(try world.inContext { try $0.pushes(for: effect) }.notifications.isEmpty) }
    }

    @Test("without a push sender nothing is written; for a deleted channel nothing is handed off")
    func nobody() throws {
        let world = try Self.world()
        world.handsOffPushes = false
        try send(SendMessage(channel: "room", clientId: "1", text: "hi"), in: world)
        #expect(try Self.waiting(in: world).isEmpty)
        world.handsOffPushes = true
        try send(SendMessage(channel: "room", clientId: "2", text: "hi"), in: world)
        try world.perform(DeleteChannel(channel: "room"), as: "ann")
        #expect(try Self.handOff(in: world).isEmpty && Self.waiting(in: world).isEmpty)
    }
}
