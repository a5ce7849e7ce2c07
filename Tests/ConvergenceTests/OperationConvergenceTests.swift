import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

/// For every operation: the state before it, plus its events, is the state after it; and so is a stale state plus the changes.
@Suite("Convergence of each operation")
struct OperationConvergenceTests {
    /// An operation in a world with ann, who owns `general` and `other`, and bob and cid, who are members of them; dan is in none.
    struct Case: CustomTestStringConvertible, Sendable {
        let name: String
        let what: String
        let user: UserID
        let role: AppRole
        let make: @Sendable ([Message]) -> any Handled
        var testDescription: String { "\(name) \(what)" }

        /// - Parameter make: gets the messages of `general`: the first two ann's, the third bob's.
        init(
            _ name: String, _ what: String, as user: UserID, role: AppRole = .user,
            _ make: @escaping @Sendable ([Message]) -> any Handled
        ) {
            self.name = name
            self.what = what
            self.user = user
            self.role = role
            self.make = make
        }
    }

    static let writes: [Case] = [
        Case("users.upsert", "of a member", as: "root", role: .admin) { _ in
            UpsertUser(user: "bob", displayName: "Bob", metadata: ["k": 1])
        },
        Case("users.upsert", "of a new user", as: "root", role: .admin) { _ in UpsertUser(user: "eve") },
        Case("users.updateMe", "by a member", as: "ann") { _ in UpdateMe(displayName: "Ann", avatarFileId: "f") },
        Case("channels.create", "with members", as: "dan") { _ in CreateChannel(channel: "new", tags: ["t"], users: ["ann", "bob"])
        },
        Case("channels.create", "alone", as: "ann") { _ in CreateChannel(channel: "alone", metadata: ["k": [:]]) },
        Case("channels.update", "of everything", as: "ann") { _ in
            UpdateChannel(channel: "general", displayName: "G", avatarFileId: "f", tags: ["a"], metadata: ["k": 1])
        },
        Case("channels.update", "of nothing", as: "ann") { _ in UpdateChannel(channel: "general") },
        Case("channels.update", "by an admin", as: "root", role: .admin) { _ in UpdateChannel(channel: "general", displayName: "R")
        },
        Case("channels.delete", "by the owner", as: "ann") { _ in DeleteChannel(channel: "general") },
        Case("members.join", "by a stranger", as: "dan") { _ in JoinChannel(channel: "general") },
        Case("members.join", "by one who left", as: "cid") { _ in JoinChannel(channel: "left") },
        Case("members.join", "by a member", as: "bob") { _ in JoinChannel(channel: "general") },
        Case("members.leave", "by a member", as: "bob") { _ in LeaveChannel(channel: "general") },
        Case("members.leave", "by the owner", as: "ann") { _ in LeaveChannel(channel: "general") },
        Case("members.leave", "by a stranger", as: "dan") { _ in LeaveChannel(channel: "general") },
        Case("messages.send", "by a member", as: "bob") { _ in
            SendMessage(channel: "general", clientId: "new", text: "x", customType: "t", data: "d", metadata: ["k": 1], tags: ["t"])
        },
        Case("messages.send", "a second time", as: "ann") { SendMessage(channel: "general", clientId: $0[0].clientId, text: "x") },
        Case("messages.send", "by an admin who isn't a member", as: "root", role: .admin) { _ in
            SendMessage(channel: "general", clientId: "new", text: "x")
        },
        Case("messages.edit", "of one's own", as: "ann") {
            EditMessage(channel: "general", message: $0[0].messageId, text: "edited")
        },
        Case("messages.edit", "of another's", as: "ann") {
            EditMessage(channel: "general", message: $0[2].messageId, text: "edited")
        },
        Case("messages.edit", "of nothing", as: "ann") { EditMessage(channel: "general", message: $0[0].messageId) },
        Case("messages.delete", "of one's own", as: "bob") { DeleteMessage(channel: "general", message: $0[2].messageId) },
        Case("messages.delete", "of another's", as: "ann") { DeleteMessage(channel: "general", message: $0[2].messageId) },
        Case("reading.mark", "of everything", as: "bob") { _ in MarkRead(channel: "general") },
        Case("reading.mark", "before an own message", as: "bob") { MarkRead(channel: "general", seq: $0[0].seq) },
        Case("reading.mark", "of the beginning", as: "bob") { _ in MarkRead(channel: "general", seq: 0) },
    ]

    static let reads: [Case] = [
        Case("users.get", "", as: "ann") { _ in GetUser(user: "bob") },
        Case("users.getMany", "", as: "ann") { _ in GetUsers(users: ["bob"]) },
        Case("users.me", "", as: "ann") { _ in GetMe() },
        Case("channels.get", "", as: "ann") { _ in GetChannel(channel: "general") },
        Case("channels.mine", "", as: "ann") { _ in ListMyChannels() },
        Case("members.list", "", as: "ann") { _ in ListMembers(channel: "general") },
        Case("messages.list", "", as: "ann") { _ in ListMessages(channel: "general") },
        Case("reading.unread", "", as: "ann") { _ in GetUnread(channel: "general") },
        Case("reading.total", "", as: "ann") { _ in GetTotalUnread() },
        Case("watching.watch", "", as: "ann") { _ in WatchChannel(channel: "general") },
        Case("watching.unwatch", "", as: "ann") { _ in UnwatchChannel(channel: "general") },
        Case("streams.channelChanges", "", as: "ann") { _ in GetChannelChanges(channel: "general", after: 0) },
        Case("streams.myChanges", "", as: "ann") { _ in GetMyChanges(after: 0) },
        Case("streams.resume", "", as: "ann") { _ in Resume(after: 0, channels: [:]) },
    ]

    @Test("I5 every operation stands in the tables of this test")
    func isComplete() {
        let names = Set(Operations.all.map { $0.name })
        #expect(names.symmetricDifference((Self.writes + Self.reads).map(\.name)) == [])
        #expect(Set(Self.writes.map(\.name)).intersection(Self.reads.map(\.name)) == [])
        #expect(Operations.all.filter { $0.isReadOnly && Self.writes.map(\.name).contains($0.name) }.isEmpty)
    }

    private func prepare() throws -> (room: Room, messages: [Message]) {
        let world = try CoreWorld()
        try world.user("dan")
        for channel in ["general", "other", "left"] as [ChannelID] {
            try world.channel(channel, owner: "ann", members: ["bob", "cid"])
        }
        let messages = try [
            world.send("one", to: "general", as: "ann"), world.send("two", to: "general", as: "ann"),
            world.send("three", to: "general", as: "bob"),
        ]
        try world.perform(LeaveChannel(channel: "left"), as: "cid")
        try world.perform(MarkRead(channel: "general", seq: 2), as: "cid")
        world.advance(milliseconds: 10)
        let room = Room(world)
        // Two devices of each, the second of which will miss the operation.
        for user in ["ann", "bob", "cid", "dan"] as [UserID] {
            for _ in 0..<2 {
                let seat = room.seat(user)
                try room.reconnect(seat, by: .resume)
            }
        }
        return (room, messages)
    }

    @Test("I5 live events, and a stale state with the changes, both lead to what a fetch gives", arguments: writes)
    func converges(case tried: Case) throws {
        for way in [Room.CatchUp.resume, .pages(1), .pages(2), .pages(1000), .missedEvents(1), .missedEvents(100)] {
            let (room, messages) = try prepare()
            for seat in room.seats.indices where !seat.isMultiple(of: 2) { try room.disconnect(seat) }
            #expect(try room.world.code(tried.make(messages), as: tried.user, role: tried.role, connection: 1) == nil)
            try room.deliver()
            for seat in room.seats.indices where !seat.isMultiple(of: 2) { try room.reconnect(seat, by: way) }
            let fresh = room.seat("bob")
            try room.reconnect(fresh, by: way)
            let wrong = try room.seats.indices.flatMap { seat in
                try room.differences(of: seat).map {
                    "\(room.seats[seat].client.user), \(seat.isMultiple(of: 2) ? "live" : "stale"): \($0)"
                }
            }
            #expect(wrong == [], "\(way.testDescription)")
        }
    }

    @Test("I5 an operation that only reads changes nothing", arguments: reads)
    func onlyReads(case tried: Case) throws {
        let (room, messages) = try prepare()
        let before = try room.world.dump()
        #expect(try room.world.code(tried.make(messages), as: tried.user, connection: 1) == nil)
        #expect(try room.world.dump() == before)
        try room.deliver()
        #expect(try room.seats.indices.flatMap { try room.differences(of: $0) } == [])
    }
}
