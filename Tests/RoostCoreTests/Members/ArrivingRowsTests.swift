import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport
import Testing

/// What users see of a channel that they become members of while connected.
@Suite("First rows of a new membership")
struct ArrivingRowsTests {
    /// How ben becomes a member of a channel that already has messages.
    private static let ways: [(name: String, run: @Sendable (CoreWorld) throws -> Void)] = [
        ("joined", { try $0.perform(JoinChannel(channel: "room"), as: "ben") }),
        ("added", { try $0.perform(AddMembers(channel: "room", users: ["cid", "ben"]), as: "ann") }),
        (
            "accepted",
            { world in
                try world.perform(InviteMembers(channel: "room", users: ["ben"]), as: "ann")
                try world.perform(AcceptInvitation(channel: "room"), as: "ben")
            }
        ),
    ]

    /// A room with a channel's mention, and a message after it.
    private func world() throws -> (CoreWorld, mention: Message, newest: Message) {
        let world = try CoreWorld()
        try world.channel("room", owner: "ann")
        for user: UserID in ["ben", "cid"] { try world.user(user) }
        let mention = try world.perform(
            SendMessage(channel: "room", clientId: "all", text: "all", mentionees: [.channel]), as: "ann")
        return (world, mention, try world.send("newest", to: "room", as: "ann"))
    }

    /// The rows of the event with which ben becomes a member: as it is sent, and as a node that missed it makes it.
    private func rows(in world: CoreWorld, _ way: (CoreWorld) throws -> Void) throws -> [Rows] {
        try way(world)
        let event = try #require(world.events(to: .user("ben")).last { $0.rows.channel?.channelId == "room" })
        let missed = try world.database.read { try $0.missedEvents(of: .user("ben"), after: event.seq - 1, now: world.now) }
        let made = missed.notices.compactMap { if case .event(let event, _) = $0 { event } else { nil } }
        return [event.rows, try #require(made.last).rows]
    }

    @Test("AM-40 MN-12 the event brings the newest message and the mentions of the channel", arguments: ways.indices)
    func first(way: Int) throws {
        let (world, mention, newest) = try world()
        for rows in try rows(in: world, Self.ways[way].run) {
            #expect(rows.messages == [newest], "\(Self.ways[way].name)")
            #expect(rows.channelMentions?.map(\.seq) == [mention.seq], "\(Self.ways[way].name)")
            #expect(rows.memberships?.map(\.channelId) == ["room"])
        }
    }

    @Test("SB-14 D-11 the event brings nothing that the new member may not see")
    func concealed() throws {
        let hiding: [(String, (CoreWorld) throws -> Void)] = [
            ("without history", { try $0.perform(AddMembers(channel: "room", users: ["ben"], hideHistory: true), as: "ann") }),
            (
                "where history is off",
                { world in
                    world.options.showsHistoryToNewMembers = false
                    try world.perform(JoinChannel(channel: "room"), as: "ben")
                }
            ),
            (
                "where operators read",
                { world in
                    try world.perform(
                        UpdateChannel(channel: "room", policy: PolicyChanges(read: .operators)), as: "root", role: .admin)
                    try world.perform(JoinChannel(channel: "room"), as: "ben")
                }
            ),
            (
                // All of ben's devices get the event, whatever their tokens allow.
                "where operators read, with a moderator's token",
                { world in
                    try world.perform(
                        UpdateChannel(channel: "room", policy: PolicyChanges(read: .operators)), as: "root", role: .admin)
                    try world.perform(JoinChannel(channel: "room"), as: "ben", role: .moderator)
                }
            ),
        ]
        for (name, way) in hiding {
            let (world, _, _) = try world()
            for rows in try rows(in: world, way) {
                #expect(rows.messages == nil && rows.channelMentions == nil, "\(name)")
                #expect(rows.channel?.channelId == "room")
            }
        }
    }

    @Test("SB-59 a user who rejoins sees no content of messages that they deleted for themselves")
    func ownDeletion() throws {
        let (world, _, newest) = try world()
        try world.perform(JoinChannel(channel: "room"), as: "ben")
        try world.perform(DeleteMessagesForMe(channel: "room", messages: [newest.messageId]), as: "ben")
        try world.perform(LeaveChannel(channel: "room"), as: "ben")
        for rows in try rows(in: world, { try $0.perform(AddMembers(channel: "room", users: ["ben", "cid"]), as: "ann") }) {
            #expect(rows.messages?.map(\.seq) == [newest.seq])
            #expect(rows.messages?.first?.isDeletedForMe == true && rows.messages?.first?.text == "")
        }
        let others = world.events(to: .user("cid")).compactMap { $0.rows.messages }
        #expect(others == [[newest]])
    }
}
