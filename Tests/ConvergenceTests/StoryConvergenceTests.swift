import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

/// Several operations in a row, and for each range of them a device of each user that was away during it.
@Suite("Convergence of whole stories")
struct StoryConvergenceTests {
    /// The story of a channel, as steps in a ``PreparedRoom``.
    struct Story: CustomTestStringConvertible, Sendable {
        let testDescription: String
        /// Facts that differ for a known reason.
        var expected: Set<String> = []
        let steps: [Step]
    }

    struct Step: Sendable {
        let user: UserID
        let role: AppRole
        let operation: any Handled

        init(_ user: UserID, role: AppRole = .user, _ operation: any Handled) {
            self.user = user
            self.role = role
            self.operation = operation
        }
    }

    private static func send(_ number: Int, to channel: ChannelID, as user: UserID) -> Step {
        Step(user, SendMessage(channel: channel, clientId: ClientID("story-\(number)"), text: "\(number)"))
    }

    static let stories: [Story] = [
        Story(
            testDescription: "an invitation into a group is declined, sent again, accepted, and leads up to ownership",
            steps: [
                Step("dan", DeclineInvitation(channel: "team")),
                Step("ann", InviteMembers(channel: "team", users: ["dan"], welcome: "please")),
                send(1, to: "team", as: "bob"),
                Step("dan", AcceptInvitation(channel: "team")),
                Step("ann", SetMemberRole(channel: "team", users: ["dan"], role: .operator)),
                Step("ann", SilenceChannel(channel: "team")),
                Step("ann", SetMemberRole(channel: "team", users: ["dan"], role: .owner)),
                Step("dan", RemoveMembers(channel: "team", users: ["ann"])),
                send(2, to: "team", as: "dan"),
            ]),
        Story(
            testDescription: "an invitation into a community is withdrawn, sent by another, and accepted by joining",
            steps: [
                Step("ann", WithdrawInvitations(channel: "club", users: ["dan"])),
                Step("ann", InviteMembers(channel: "club", users: ["dan", "eve"])),
                send(1, to: "club", as: "eve"),
                Step("dan", JoinChannel(channel: "club")),
                Step("dan", HideChannel(channel: "club", hidePreviousMessages: true)),
                send(2, to: "club", as: "ann"),
                Step("dan", LeaveChannel(channel: "club")),
                send(3, to: "club", as: "ann"),
                Step("ann", AddMembers(channel: "club", users: ["dan"], hideHistory: true)),
                send(4, to: "club", as: "dan"),
            ]),
        Story(
            testDescription: "a member leaves and comes back, more than once",
            steps: [
                Step("bob", LeaveChannel(channel: "general")),
                send(1, to: "general", as: "ann"),
                Step("bob", JoinChannel(channel: "general")),
                send(2, to: "general", as: "bob"),
                Step("ann", RemoveMembers(channel: "general", users: ["bob", "cid"])),
                Step("ann", AddMembers(channel: "general", users: ["bob", "cid"], hideHistory: true)),
                Step("bob", MarkRead(channel: "general")),
                Step("ann", FreezeChannel(channel: "general")),
            ]),
        Story(
            testDescription: "a distinct channel stops being it, becomes it again, and ends",
            steps: [
                Step("ann", InviteMembers(channel: "pair", users: ["dan"])),
                Step("ann", WithdrawInvitations(channel: "pair", users: ["dan"])),
                Step("ann", UpdateChannel.distinct("pair", true)),
                Step("ann", AddMembers(channel: "pair", users: ["eve"])),
                Step("eve", LeaveChannel(channel: "pair")),
                Step("ann", UpdateChannel.distinct("pair", true)),
                Step("ann", InviteMembers(channel: "pair", users: ["dan", "cid"])),
                Step("ann", DeleteChannel(channel: "pair")),
            ]),
        Story(
            testDescription: "a channel ends in which a member has begun to write, who removes that",
            steps: [
                Step("cid", SetDraft(channel: "club", text: "so far")),
                Step("ann", DeleteChannel(channel: "club")),
                Step("bob", SetDraft(channel: "club", text: "")),
                Step("bob", SetDraft(channel: "general", text: "so far")),
            ]),
        Story(
            testDescription: "an ephemeral channel is written in, read, hidden and left",
            steps: [
                send(1, to: "echo", as: "ann"), send(2, to: "echo", as: "bob"),
                Step("bob", HideChannel(channel: "echo")),
                send(3, to: "echo", as: "ann"),
                Step("ann", MarkRead(channel: "echo")),
                Step("bob", UnhideChannel(channel: "echo")),
                send(4, to: "echo", as: "bob"),
                Step("ann", AddMembers(channel: "echo", users: ["eve"])),
                Step("bob", LeaveChannel(channel: "echo")),
            ]),
        Story(
            testDescription: "what members may do changes by state, by role and by policy",
            steps: [
                Step("ann", SetMemberRole(channel: "cold", users: ["bob"], role: .operator)),
                Step("ann", UnfreezeChannel(channel: "cold")),
                Step("bob", UnsilenceChannel(channel: "cold")),
                Step("ann", UpdateChannel.policy("cold", PolicyChanges(invite: .operators, send: .operators))),
                Step("ann", SetMemberRole(channel: "cold", users: ["bob"], role: .member)),
                Step("ann", FreezeChannel(channel: "cold")),
                Step("ann", UpdateChannel.policy("cold", PolicyChanges(send: .members))),
                Step("ann", UnfreezeChannel(channel: "cold")),
            ]),
        Story(
            testDescription: "a role that is deleted grants what any member has, from the next change of the channel on",
            expected: ["team: capabilities"],
            steps: [
                Step("root", role: .admin, DeleteRole(role: "scribe")),
                Step("ann", FreezeChannel(channel: "team")),
            ]),
        Story(
            testDescription: "preferences and the profile change in turn",
            steps: [
                Step("dan", UpdatePreferences(autoAcceptInvitations: true)),
                Step("dan", UpdateMe(displayName: "Dan")),
                Step("ann", InviteMembers(channel: "general", users: ["dan"])),
                Step("dan", UpdatePreferences(autoAcceptInvitations: false)),
            ]),
    ]

    @Test(
        "I5 SB-13 SB-15 SB-16 AM-40 AM-41 a user who was away during any part of a story ends with the state of a fetch",
        arguments: stories, [Room.CatchUp.resume, .pages(1), .missedEvents(1)])
    func anyAbsence(story: Story, way: Room.CatchUp) throws {
        let prepared = try PreparedRoom()
        let room = prepared.room
        for user in PreparedRoom.users { try room.reconnect(room.seat(user), by: .resume) }
        var away: [(seat: Int, until: Int)] = []
        for (number, step) in story.steps.enumerated() {
            try room.deliver()
            // From here on one device is away until each of the following steps.
            for live in PreparedRoom.users.indices {
                for until in number..<story.steps.count {
                    let seat = room.seat(like: live, withDevice: way == .resume)
                    try room.disconnect(seat)
                    away.append((seat, until))
                }
            }
            #expect(try room.world.refusal(step.operation, as: step.user, role: step.role) == nil, "step \(number)")
            try room.deliver()
            let back = away.filter { $0.until == number }.map(\.seat)
            for seat in back { try room.reconnect(seat, by: way) }
            let isOver = number == story.steps.count - 1
            let compared = isOver ? Array(room.seats.indices) : Array(PreparedRoom.users.indices) + back
            let wrong = try room.differences(of: compared) { !isOver && story.expected.contains($0) }
            #expect(wrong == [], "after step \(number)")
        }
    }

    @Test("AM-48 I5 a new role that arrives late doesn't restore permissions removed by a freeze", arguments: Room.Late.allCases)
    func lateRole(late: Room.Late) throws {
        let prepared = try PreparedRoom()
        let room = prepared.room
        let seat = room.seat("bob")
        try room.reconnect(seat, by: .resume)
        room.seats[seat].late = late
        // An operator sends while a channel is frozen, a member doesn't.
        try room.world.perform(SetMemberRole(channel: "team", users: ["bob"], role: .member), as: "ann")
        try room.world.perform(FreezeChannel(channel: "team"), as: "ann")
        try room.deliver()
        try room.arrive(seat)
        let wrong = try room.differences(of: [seat])
        #expect(wrong == [])
        #expect(room.seats[seat].client.channels["team"]?.capabilities.now(as: .member).contains(.messageSend) == false)
    }
}

extension UpdateChannel {
    fileprivate static func distinct(_ channel: ChannelID, _ isDistinct: Bool) -> UpdateChannel {
        var update = UpdateChannel(channel: channel)
        update.isDistinct = isDistinct
        return update
    }

    fileprivate static func policy(_ channel: ChannelID, _ policy: PolicyChanges) -> UpdateChannel {
        var update = UpdateChannel(channel: channel)
        update.policy = policy
        return update
    }
}
