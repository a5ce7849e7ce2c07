import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

/// Who hears of what (ledger §4).
@Suite("Audiences")
struct AudienceTests {
    struct Case: CustomTestStringConvertible, Sendable {
        let what: String
        let user: UserID
        let told: [String]
        let make: @Sendable (MessageID) -> any Handled
        var testDescription: String { what }

        init(_ what: String, _ user: UserID, _ told: [String], _ make: @escaping @Sendable (MessageID) -> any Handled) {
            self.what = what
            self.user = user
            self.told = told
            self.make = make
        }
    }

    static let cases: [Case] = [
        Case("AM-02 a message goes to all members", "bob", ["message.new to channel:general"]) { _ in
            SendMessage(channel: "general", clientId: "2", text: "x")
        },
        Case("SB-58 an edit goes to all members", "bob", ["message.updated to channel:general"]) { id in
            EditMessage(channel: "general", message: id, text: "y")
        },
        Case("SB-59 a deletion goes to all members", "bob", ["message.deleted to channel:general"]) { id in
            DeleteMessage(channel: "general", message: id)
        },
        Case(
            "EM-07 a new channel goes to its initial members", "ann",
            [
                "joined ann new", "channel.created to user:ann", "joined bob new", "channel.created to user:bob",
            ]
        ) { _ in CreateChannel(channel: "new", users: ["bob"]) },
        Case("EM-11 a channel's change goes to its members", "ann", ["channel.updated to channel:general"]) { _ in
            UpdateChannel(channel: "general", displayName: "x")
        },
        Case(
            "EM-13 a channel's end goes to its members, and is the last that they hear", "ann",
            ["channel.destroyed to channel:general", "destroyed general"]
        ) { _ in DeleteChannel(channel: "general") },
        Case(
            "EM-23 a joining goes to the members but the new one, and to the new one's own stream", "eve",
            ["member.joined to channel:general", "joined eve general", "member.joined to user:eve"]
        ) { _ in JoinChannel(channel: "general") },
        Case(
            "EM-28 a leaving goes to the remaining members, and to the own stream of the one who left", "bob",
            ["left bob general", "member.left to channel:general", "member.left to user:bob"]
        ) { _ in LeaveChannel(channel: "general") },
        Case("X-31 reading goes to the reader's own devices", "ann", ["mark_read to user:ann"]) { _ in MarkRead(channel: "general")
        },
        Case("X-01 a profile's change goes to the user's own devices", "ann", ["user.updated to user:ann"]) { _ in
            UpdateMe(displayName: "x")
        },
        Case("ST-01 watching is told to the hub only", "ann", ["watching ann general"]) { _ in WatchChannel(channel: "general") },
        Case("ST-10 the end of watching is told to the hub only", "ann", ["stopped watching ann general"]) { _ in
            UnwatchChannel(channel: "general")
        },
    ]

    private func text(_ notice: Notice) -> String {
        switch notice {
        case .event(let event, .channel(let channel)): "\(event.kind.rawValue) to channel:\(channel)"
        case .event(let event, .user(let user)): "\(event.kind.rawValue) to user:\(user)"
        case .joined(let user, let channel, _): "joined \(user) \(channel)"
        case .left(let user, let channel): "left \(user) \(channel)"
        case .destroyed(let channel): "destroyed \(channel)"
        case .connected(_, let user, _, let channels): "connected \(user) \(channels.keys.sorted())"
        case .watching(_, let user, let channel, _): "watching \(user) \(channel)"
        case .stoppedWatching(_, let user, let channel): "stopped watching \(user) \(channel)"
        }
    }

    @Test("§4 an operation tells its audience and nobody else, in this order", arguments: cases)
    func tells(case told: Case) throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["bob"])
        try world.user("eve")
        let message = try world.send("hi", to: "general", as: "bob").messageId
        let notices = try world.told { _ = try world.code(told.make(message), as: told.user, connection: 1) }
        #expect(notices.map(text) == told.told)
    }
}
