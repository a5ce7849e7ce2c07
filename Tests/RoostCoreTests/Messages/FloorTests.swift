import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

/// One definition decides which of a channel's messages a member may see, on every path.
@Suite("History floors")
struct FloorTests {
    /// A path to messages: the seqs of those that ben finds by it.
    private struct Path: CustomTestStringConvertible, Sendable {
        let testDescription: String
        /// The fields of operations by which it names messages.
        let fields: [String]
        let seqs: @Sendable (CoreWorld, [Message]) throws -> Set<Seq>

        init(
            _ description: String, naming fields: [String] = [],
            _ seqs: @escaping @Sendable (CoreWorld, [Message]) throws -> Set<Seq>
        ) {
            (testDescription, self.fields, self.seqs) = (description, fields, seqs)
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

        /// A path by pages that begin at each message: the messages where a page can begin, and those on a page.
        static func pages(
            _ description: String, by field: String, _ make: @escaping @Sendable (MessageID) -> ListMessages
        ) -> Path {
            Path(description, naming: [Self.field(field, of: ListMessages.self)]) { world, all in
                var seqs: Set<Seq> = []
                for message in all {
                    let list = make(message.messageId)
                    guard try world.refusal(list, as: "ben") == nil else { continue }
                    seqs.insert(message.seq)
                    seqs.formUnion(try world.perform(list, as: "ben").messages.map(\.seq))
                }
                return seqs
            }
        }

        /// A path by calls about each message: the messages that the calls find.
        ///
        /// - Parameter prepare: Runs before.
        static func calls<O: Handled>(
            _ description: String, by field: String, as role: AppRole = .user, _ make: @escaping @Sendable (Message) -> O,
            after prepare: @escaping @Sendable (CoreWorld, [Message]) throws -> Void = { _, _ in }
        ) -> Path {
            Path(description, naming: [Self.field(field, of: O.self)]) { world, all in
                try prepare(world, all)
                let found = try all.filter { message in
                    guard let refusal = try world.refusal(make(message), as: "ben", role: role) else { return true }
                    // Any other refusal means that the message was found.
                    return refusal.code != .notFound
                }
                return Set(found.map(\.seq))
            }
        }

        static func field(_ name: String, of operation: any RoostAPI.Operation.Type) -> String { "\(operation.name) \(name)" }
    }

    /// Lets ben do with messages what their authors may.
    private static let makeOperator: @Sendable (CoreWorld, [Message]) throws -> Void = { world, _ in
        try world.perform(SetMemberRole(channel: "general", users: ["ben"], role: .operator), as: "ann")
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
        .pages("pages around each message", by: "aroundMessage") {
            ListMessages(channel: "general", aroundMessage: $0, limit: 1)
        },
        .pages("pages before each message", by: "beforeMessage") {
            ListMessages(channel: "general", beforeMessage: $0, limit: 100)
        },
        .pages("pages after each message", by: "afterMessage") { ListMessages(channel: "general", afterMessage: $0, limit: 100) },
        .calls("each by its id", by: "message") { GetMessage(channel: "general", message: $0.messageId) },
        .calls("each as a parent", by: "parentId") {
            SendMessage(channel: "general", clientId: ClientID("re \($0.seq)"), text: "x", parentId: $0.messageId)
        },
        .calls("each as the parent of an admin message", by: "parentId", as: .admin) {
            SendAdminMessage(channels: ["general"], clientId: ClientID("re \($0.seq)"), text: "x", parentId: $0.messageId)
        },
        .calls("who has read each", by: "message") { ListReaders(channel: "general", message: $0.messageId) },
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
        Path("missed events of a node") { world, _ in
            let (floor, now) = (try world.perform(GetChannel(channel: "general"), as: "ben").membership?.historyFloor, world.now)
            let missed = try world.database.read { try $0.missedEvents(of: .channel("general"), after: 0, now: now) }
            let rows = missed.notices.compactMap { notice -> Rows? in
                guard case .event(let event, _) = notice else { return nil }
                return event.concealing(messagesUpTo: floor ?? 0).rows
            }
            return Set(rows.flatMap { $0.messages ?? [] }.map(\.seq))
        },
        .calls("deletions for oneself", by: "messages") {
            DeleteMessagesForMe(channel: "general", messages: [$0.messageId])
        },
        .calls("earlier versions, as an operator", by: "message") {
            ListMessageVersions(channel: "general", message: $0.messageId)
        } after: { world, all in
            world.options.versionSeconds = 60
            try makeOperator(world, all)
        },
        .calls(
            "edits, as an operator", by: "message", { EditMessage(channel: "general", message: $0.messageId, text: "x") },
            after: makeOperator),
        .calls(
            "changes of lists, as an operator", by: "message",
            { UpdateMetaArrays(channel: "general", message: $0.messageId, create: ["votes"]) }, after: makeOperator),
        .calls(
            "deletions, as an operator", by: "message", { DeleteMessage(channel: "general", message: $0.messageId) },
            after: makeOperator),
        .calls(
            "deletions of several, as an operator", by: "messages",
            { DeleteMessages(channel: "general", messages: [$0.messageId]) }, after: makeOperator),
        .calls(
            "deletions for good, as an operator", by: "message", { PurgeMessage(channel: "general", message: $0.messageId) },
            after: makeOperator),
        .calls("undeletions, as an operator", by: "message") {
            UndeleteMessage(channel: "general", message: $0.messageId)
        } after: { world, all in
            world.options.undeletionSeconds = 60
            try makeOperator(world, all)
            for message in all { try world.perform(DeleteMessage(channel: "general", message: message.messageId), as: "ann") }
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

    /// Ways in which the first messages are hidden from ben.
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

    @Test("R23 each field of an operation that names messages is on a path")
    func isComplete() throws {
        let ids = [MessageID.schema, .array(MessageID.schema)]
        var naming: Set<String> = []
        for operation in Operations.all {
            for field in try Schema.of(operation).fields where ids.contains(field.schema) {
                naming.insert(Path.field(field.name, of: operation))
            }
        }
        #expect(naming.symmetricDifference(Self.paths.flatMap(\.fields)) == [])
        // A schema that no longer names messages would have nothing to compare.
        #expect(naming.isSuperset(of: ["message.get message", "message.deleteMany messages", "message.send parentId"]))
    }

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

    @Test("SB-60 SB-26 the last message and unread counts are as if the concealed messages didn't exist")
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

    @Test("SB-52 I10 a page by time doesn't reveal when concealed messages were sent, with filters or without")
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
