import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

/// What a member may see of a channel's messages is one definition, asked on every path.
@Suite("History floors")
struct FloorTests {
    /// A way to messages: the seqs of those that ben finds by it.
    private struct Path: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let seqs: @Sendable (CoreWorld, [Message]) throws -> Set<Seq>

        init(_ description: String, _ seqs: @escaping @Sendable (CoreWorld, [Message]) throws -> Set<Seq>) {
            (testDescription, self.seqs) = (description, seqs)
        }

        /// A path by a page of history.
        static func page(_ description: String, _ set: @escaping @Sendable (inout ListMessages, [Message]) -> Void) -> Path {
            Path(description) { world, all in
                var operation = ListMessages(channel: "general", limit: 100)
                set(&operation, all)
                do {
                    return Set(try world.perform(operation, as: "ben").messages.map(\.seq))
                } catch let error as RoostError where error.code == .notFound {
                    return []
                }
            }
        }
    }

    private static let paths: [Path] = [
        .page("the newest page") { _, _ in },
        .page("a page before a seq") { page, all in page.before = all.last.map { $0.seq + 1 } },
        .page("a page after a seq") { page, _ in page.after = 0 },
        .page("a page around a seq") { page, all in (page.around, page.newerLimit) = (all[3].seq, 100) },
        .page("a page before a time") { page, all in
            page.beforeTime = all.last.map { Timestamp(milliseconds: $0.createdAt.milliseconds + 1) }
        },
        .page("a page after a time") { page, all in page.afterTime = Timestamp(milliseconds: all[0].createdAt.milliseconds - 1) },
        .page("a page around a time") { page, all in (page.aroundTime, page.newerLimit) = (all[3].createdAt, 100) },
        .page("a page of some senders and kinds") { page, _ in (page.senders, page.kinds) = (["ann"], [.text]) },
        .page("a page of some senders, forward") { page, _ in (page.senders, page.after) = (["ann"], 0) },
        Path("pages around each message") { world, all in
            Set(
                try all.flatMap { message in
                    let page = ListMessages(channel: "general", aroundMessage: message.messageId, limit: 1)
                    return try world.refusal(page, as: "ben") == nil ? try world.perform(page, as: "ben").messages.map(\.seq) : []
                })
        },
        Path("each by its id") { world, all in
            Set(
                try all.filter { try world.refusal(GetMessage(channel: "general", message: $0.messageId), as: "ben") == nil }.map(
                    \.seq))
        },
        Path("each as a parent") { world, all in
            Set(
                try all.filter { message in
                    let reply = SendMessage(
                        channel: "general", clientId: ClientID("re \(message.seq)"), text: "x", parentId: message.messageId)
                    return try world.refusal(reply, as: "ben")?.field != "parentId"
                }.map(\.seq))
        },
        Path("own mentions") { world, _ in Set(try world.perform(ListMentions(limit: 100), as: "ben").items.map(\.seq)) },
        Path("mentions in the channel") { world, _ in
            Set(try world.perform(ListMentions(channel: "general", limit: 100), as: "ben").items.map(\.seq))
        },
        Path("changes") { world, _ in
            Set(try world.perform(GetChannelChanges(channel: "general", after: 0), as: "ben").rows.messages?.map(\.seq) ?? [])
        },
        Path("mentions of the channel in changes") { world, _ in
            Set(
                try world.perform(GetChannelChanges(channel: "general", after: 0), as: "ben").rows.channelMentions?.map(\.seq) ?? []
            )
        },
        Path("a resume") { world, _ in
            let resumed = try world.perform(Resume(after: 0, channels: [:]), as: "ben")
            return Set(resumed.channels.flatMap { $0.rows.messages ?? [] }.map(\.seq))
        },
        Path("a watch") { world, _ in
            let watched = try world.perform(WatchChannel(channel: "general", limit: 100), as: "ben", connection: 1)
            return Set(watched.messages.messages.map(\.seq))
        },
        Path("deletions for oneself") { world, all in
            Set(
                try all.filter {
                    let deletion = DeleteMessagesForMe(channel: "general", messages: [$0.messageId])
                    return try world.refusal(deletion, as: "ben") == nil
                }.map(\.seq))
        },
        Path("earlier versions, as an operator") { world, all in
            world.options.versionSeconds = 60
            try world.perform(SetMemberRole(channel: "general", users: ["ben"], role: .operator), as: "ann")
            return Set(
                try all.filter {
                    try world.refusal(ListMessageVersions(channel: "general", message: $0.messageId), as: "ben") == nil
                }.map(\.seq))
        },
        Path("edits and deletions, as an operator") { world, all in
            try world.perform(SetMemberRole(channel: "general", users: ["ben"], role: .operator), as: "ann")
            let edited = try all.filter {
                try world.refusal(EditMessage(channel: "general", message: $0.messageId, text: "x"), as: "ben")?.code != .notFound
            }
            let deleted = try all.filter {
                try world.refusal(DeleteMessage(channel: "general", message: $0.messageId), as: "ben") == nil
            }
            let purged = try all.filter {
                try world.refusal(PurgeMessage(channel: "general", message: $0.messageId), as: "ben") == nil
            }
            return deleted == purged && edited == deleted ? Set(deleted.map(\.seq)) : []
        },
        Path("live events of edits") { world, all in
            let membership = try world.perform(GetChannel(channel: "general"), as: "ben").membership
            return Set(
                try all.flatMap { message in
                    let events = world.events().count
                    try world.perform(EditMessage(channel: "general", message: message.messageId, text: "edited"), as: "ann")
                    return world.events().dropFirst(events).filter { $0.stream == .channel("general") }.flatMap {
                        $0.concealing(messagesUpTo: membership?.historyFloor ?? 0).rows.messages ?? []
                    }.map(\.seq)
                })
        },
    ]

    /// How the first messages come to be concealed from ben.
    private static let floors: [(name: String, make: @Sendable (CoreWorld) throws -> Void)] = [
        ("none", { _ in }), ("emptied by himself", { try $0.perform(ResetHistory(channel: "general"), as: "ben") }),
        (
            "hidden with the channel",
            { world in
                try world.perform(HideChannel(channel: "general", hidePreviousMessages: true), as: "ben")
                try world.perform(UnhideChannel(channel: "general"), as: "ben")
            }
        ),
        (
            "added without history",
            { world in
                try world.perform(LeaveChannel(channel: "general"), as: "ben")
                try world.perform(AddMembers(channel: "general", users: ["ben"], hideHistory: true), as: "ann")
            }
        ),
        (
            "joined where history is off",
            { world in
                try world.perform(LeaveChannel(channel: "general"), as: "ben")
                world.options.showsHistoryToNewMembers = false
                try world.perform(JoinChannel(channel: "general"), as: "ben")
            }
        ),
    ]

    @Test("SB-14 SB-26 SB-57 SB-60 R23 every path shows a member the messages above their floor, and no other", arguments: paths)
    private func walk(path: Path) throws {
        for floor in Self.floors {
            let world = try CoreWorld()
            try world.channel("general", owner: "ann", members: ["ben"])
            func send(_ number: Int) throws -> Message {
                world.advance(milliseconds: 1)
                return try world.perform(
                    SendMessage(
                        channel: "general", clientId: "\(number)", text: "\(number)", mentionees: [.users(["ben"]), .channel]),
                    as: "ann")
            }
            let old = try (1...3).map(send)
            try floor.make(world)
            let new = try (4...6).map(send)
            let expected = Set((floor.name == "none" ? old + new : new).map(\.seq))
            #expect(try path.seqs(world, old + new) == expected, "\(floor.name)")
        }
        print("\(path.testDescription) × \(Self.floors.count) floors")
    }

    @Test("SB-60 SB-26 the last message and what is unread are as if the concealed messages weren't there")
    func lastMessage() throws {
        for floor in Self.floors.dropFirst() {
            let world = try CoreWorld()
            try world.channel("general", owner: "ann", members: ["ben"])
            try world.send("old", to: "general", as: "ann")
            try floor.make(world)
            let view = try world.perform(GetChannel(channel: "general"), as: "ben")
            #expect(view.lastMessage == nil && view.unreadCount == 0 && !view.hasMention, "\(floor.name)")
            #expect(try world.perform(QueryChannels(), as: "ben").items.first?.lastMessage == nil, "\(floor.name)")
        }
    }

    @Test("SB-52 I10 a page by time tells nothing of when concealed messages were sent, with filters or without")
    func times() throws {
        for floor in Self.floors.dropFirst() {
            let world = try CoreWorld()
            try world.channel("general", owner: "ann", members: ["ben"])
            let start = world.now
            for number in 1...5 {
                world.advance(milliseconds: Int64(number * 100))
                try world.send("\(number)", to: "general", as: "ann")
            }
            world.advance(milliseconds: 100)
            try floor.make(world)
            for kinds in [nil, [.text]] as [[MessageKind]?] {
                for place in 0..<3 {
                    let pages = try stride(from: 0, through: 1500, by: 50).map { passed in
                        let time = Timestamp(milliseconds: start.milliseconds + Int64(passed))
                        var list = ListMessages(channel: "general", limit: 3)
                        list.kinds = kinds
                        switch place {
                        case 0: list.beforeTime = time
                        case 1: list.afterTime = time
                        default: list.aroundTime = time
                        }
                        return try world.perform(list, as: "ben")
                    }
                    #expect(pages.allSatisfy { $0 == pages[0] }, "\(floor.name), \(place)")
                }
            }
        }
    }
}
