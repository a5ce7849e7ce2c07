import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

/// Hiding a channel from the user's own lists.
@Suite("Hidden state") struct HideStateTests {
    private func world() throws -> CoreWorld {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        try world.send("before", to: "general", as: "ann")
        return world
    }

    private func state(of user: UserID, in world: CoreWorld) throws -> HiddenState {
        try world.perform(GetChannel(channel: "general"), as: user).hiddenState
    }

    @Test(
        "SB-26 SB-27 SB-29 D-32 R27 a hidden channel comes back with the next message; an archived one doesn't",
        arguments: [true, false])
    func autoUnhide(allow: Bool) throws {
        let world = try world()
        try world.perform(HideChannel(channel: "general", allowAutoUnhide: allow), as: "bob")
        let hidden: HiddenState = allow ? .hiddenAllowAutoUnhide : .hiddenPreventAutoUnhide
        #expect(try [state(of: "bob", in: world), state(of: "ann", in: world)] == [hidden, .unhidden])
        // Other events don't bring it back.
        try world.perform(UpdateChannel(channel: "general", displayName: "x"), as: "ann")
        #expect(try state(of: "bob", in: world) == hidden)
        try world.send("new", to: "general", as: "ann")
        #expect(try state(of: "bob", in: world) == (allow ? .unhidden : hidden))
    }

    @Test(
        "SB-26 SB-04 R27 a hidden ephemeral channel, whose messages have no positions, stays hidden whatever the user has seen"
    )
    func ephemeral() throws {
        let world = try CoreWorld()
        for user in ["ann", "bob"] as [UserID] { try world.user(user) }
        try world.perform(CreateChannel(channel: "talk", type: .group, users: ["bob"], isEphemeral: true), as: "ann")
        try world.send("one", to: "talk", as: "ann")
        try world.perform(UpdateChannel(channel: "talk", displayName: "x"), as: "ann")
        try world.perform(HideChannel(channel: "talk", upTo: 2), as: "bob")
        #expect(try world.perform(GetChannel(channel: "talk"), as: "bob").hiddenState == .hiddenAllowAutoUnhide)
        try world.send("two", to: "talk", as: "ann")
        #expect(try world.perform(GetChannel(channel: "talk"), as: "bob").hiddenState == .unhidden)
    }

    @Test("SB-26 R27 by default earlier messages stay and the next message brings the channel back")
    func defaults() throws {
        let world = try world()
        let membership = try world.perform(HideChannel(channel: "general"), as: "bob")
        #expect([membership.hiddenState] == [.hiddenAllowAutoUnhide] && membership.historyFloor == 0)
        #expect(try world.perform(ListMessages(channel: "general"), as: "bob").messages.count == 1)
    }

    @Test("SB-26 R23 R27 I10 hiding with earlier messages hides them permanently, on every path, and only for that user")
    func conceals() throws {
        let world = try world()
        let old = try world.perform(ListMessages(channel: "general"), as: "bob").messages[0]
        #expect(try world.perform(GetUnread(channel: "general"), as: "bob").unreadCount == 1)
        try world.perform(HideChannel(channel: "general", hidePreviousMessages: true), as: "bob")
        #expect(try world.perform(GetUnread(channel: "general"), as: "bob").unreadCount == 0)
        let new = try world.send("after", to: "general", as: "ann")
        try world.perform(EditMessage(channel: "general", message: old.messageId, text: "edited"), as: "ann")
        let view = try world.perform(GetChannel(channel: "general"), as: "bob")
        #expect(view.hiddenState == .unhidden && view.unreadCount == 1 && view.lastMessage == new)
        func texts(_ messages: [Message]?) -> [String] { messages?.map(\.text) ?? [] }
        let ways = try [
            texts(world.perform(ListMessages(channel: "general"), as: "bob").messages),
            texts(world.perform(ListMessages(channel: "general", before: new.seq + 1), as: "bob").messages),
            texts(world.perform(ListMessages(channel: "general", after: 0), as: "bob").messages),
            texts(world.perform(ListMessages(channel: "general", around: old.seq), as: "bob").messages),
            texts(world.perform(WatchChannel(channel: "general"), as: "bob", connection: 1).messages.messages),
            texts(world.perform(GetChannelChanges(channel: "general", after: 0), as: "bob").rows.messages),
            texts(world.perform(Resume(after: 0, channels: [:]), as: "bob").channels.first?.rows.messages),
            texts(world.perform(Resume(after: 0, channels: ["general": 1]), as: "bob").channels.first?.rows.messages),
        ]
        #expect(ways == Array(repeating: ["after"], count: ways.count))
        #expect(try world.code(EditMessage(channel: "general", message: old.messageId, text: "x"), as: "bob") == .notFound)
        #expect(try world.code(GetMessage(channel: "general", message: old.messageId), as: "bob") == .notFound)
        #expect(try world.code(ListMessages(channel: "general", aroundMessage: old.messageId), as: "bob") == .notFound)
        let reply = SendMessage(channel: "general", clientId: "r", text: "re", parentId: old.messageId)
        #expect(try world.code(reply, as: "bob") == .notFound)
        #expect(try texts(world.perform(ListMessages(channel: "general"), as: "ann").messages) == ["edited", "after"])
        // Unhiding, and leaving and rejoining, bring nothing back.
        try world.perform(UnhideChannel(channel: "general"), as: "bob")
        try world.perform(LeaveChannel(channel: "general"), as: "bob")
        try world.perform(JoinChannel(channel: "general"), as: "bob")
        #expect(try texts(world.perform(ListMessages(channel: "general"), as: "bob").messages) == ["after"])
    }

    @Test("SB-26 SB-60 MN-16 hidden messages no longer mention the user: no membership names a message that its user can't see")
    func concealsMentions() throws {
        let conceals: [(CoreWorld) throws -> Membership] = [
            { try $0.perform(HideChannel(channel: "general", hidePreviousMessages: true), as: "bob") },
            { try $0.perform(ResetHistory(channel: "general"), as: "bob") },
        ]
        for conceal in conceals {
            let world = try world()
            func mention(_ id: ClientID) throws -> MessageID {
                let send = SendMessage(channel: "general", clientId: id, text: "@bob", mentionees: [.users(["bob"])])
                return try world.perform(send, as: "ann").messageId
            }
            let first = try mention("1")
            // Hiding only the channel leaves its messages.
            #expect(try world.perform(HideChannel(channel: "general"), as: "bob").mentionMessage == first)
            let concealed = try conceal(world)
            let stored = try world.perform(GetChannel(channel: "general"), as: "bob").membership
            #expect([concealed.mentionMessage, stored?.mentionMessage] == [nil, nil])
            #expect(concealed.mentionSeq == 0 && stored?.mentionSeq == 0)
            let second = try mention("2")
            #expect(try world.perform(GetChannel(channel: "general"), as: "bob").membership?.mentionMessage == second)
        }
    }

    @Test("SB-26 SB-60 R26 hidden messages count as read: a list of readers says the same as the events")
    func receipts() throws {
        let conceals: [any Handled] = [
            HideChannel(channel: "general", hidePreviousMessages: true), ResetHistory(channel: "general"),
        ]
        for conceal in conceals {
            let world = try world()
            func position() throws -> ReadPosition? {
                try world.perform(ListReaders(channel: "general"), as: "ann").items.first { $0.userId == "bob" }
            }
            func reported() throws -> [ReadPosition] {
                let notices = try world.notices { _ = try world.code(conceal, as: "bob") }
                return notices.compactMap { notice in
                    if case .read(let position, "general") = notice { position } else { nil }
                }
            }
            world.advance(milliseconds: 5)
            #expect(try reported() == [ReadPosition(userId: "bob", readSeq: 2, lastReadAt: world.now)])
            #expect(try position() == ReadPosition(userId: "bob", readSeq: 2, lastReadAt: world.now, joinedSeq: 1))
            // Nothing moves if everything is read already, or if the user doesn't share it.
            world.advance(milliseconds: 5)
            #expect(try reported() == [])
            try world.send("more", to: "general", as: "ann")
            try world.perform(UpdatePreferences(sharesReading: false), as: "bob")
            #expect(try reported() == [] && position() == nil)
        }
        let world = try world()
        let notices = try world.notices { try world.perform(HideChannel(channel: "general"), as: "bob") }
        #expect(!notices.contains { if case .read = $0 { true } else { false } })
    }

    @Test(
        "R25 SB-26 SB-60 hiding messages read earlier and marked as unread since sends the others nothing, and isn't a new reading"
    )
    func readBefore() throws {
        let conceals: [any Handled] = [
            HideChannel(channel: "general", hidePreviousMessages: true), ResetHistory(channel: "general"),
        ]
        for conceal in conceals {
            let world = try world()
            try world.perform(MarkRead(channel: "general"), as: "bob")
            let position = try world.perform(ListReaders(channel: "general"), as: "ann").items
            world.advance(milliseconds: 5)
            try world.perform(MarkUnread(channel: "general", seq: 2), as: "bob")
            let notices = try world.notices { _ = try world.code(conceal, as: "bob") }
            #expect(!notices.contains { if case .read = $0 { true } else { false } })
            #expect(try world.perform(ListReaders(channel: "general"), as: "ann").items == position)
            #expect(try world.perform(GetUnread(channel: "general"), as: "bob").unreadCount == 0)
        }
    }

    @Test("SB-28 unhiding a channel is sent to the user's own devices; unhiding a visible one changes nothing")
    func unhides() throws {
        let world = try world()
        let hidden = try world.notices { try world.perform(HideChannel(channel: "general", allowAutoUnhide: false), as: "bob") }
        let shown = try world.notices { try world.perform(UnhideChannel(channel: "general"), as: "bob") }
        let again = try world.notices { try world.perform(UnhideChannel(channel: "general"), as: "bob") }
        let events = (hidden + shown + again).map { notice in
            if case .event(let event, let audience) = notice { "\(event.kind.rawValue) \(audience == .user("bob"))" } else { "?" }
        }
        #expect(events == ["channel.hidden true", "channel.unhidden true"])
        #expect(try state(of: "bob", in: world) == .unhidden)
    }

    @Test("SB-28 unhiding a channel that a message has brought back changes nothing; a muted one wasn't brought back")
    func broughtBack() throws {
        let world = try world()
        func unhide() throws -> Int { try world.notices { try world.perform(UnhideChannel(channel: "general"), as: "bob") }.count }
        try world.perform(HideChannel(channel: "general"), as: "bob")
        try world.send("new", to: "general", as: "ann")
        let before = try world.dump()
        #expect(try unhide() == 0)
        #expect(try world.dump() == before)
        #expect(try state(of: "bob", in: world) == .unhidden)

        try world.perform(HideChannel(channel: "general"), as: "bob")
        try world.perform(MuteNotifications(channel: "general"), as: "bob")
        try world.send("newer", to: "general", as: "ann")
        #expect(try state(of: "bob", in: world) == .hiddenAllowAutoUnhide)
        #expect(try unhide() == 1)
        #expect(try state(of: "bob", in: world) == .unhidden)
    }

    @Test("SB-26 a non-member can't hide a channel")
    func strangers() throws {
        let world = try world()
        try world.user("eve")
        #expect(try world.code(HideChannel(channel: "general"), as: "eve") == .notMember)
    }
}
