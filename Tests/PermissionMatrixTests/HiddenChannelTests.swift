import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

/// Missing channels and hidden ones can't be distinguished (RELIABILITY §4, enumeration).
@Suite("Hidden channels")
struct HiddenChannelTests {
    /// The refusal of a row's operation for a missing channel. One of several channels is named by its place.
    private static func unknown(_ row: Row) -> String {
        let field = row.operationName == SendAdminMessage.name ? "channels[0]" : "channel"
        return #"{"code":"not_found","message":"There is no such channel.","field":"\#(field)"}"#
    }

    /// The rows for which a stranger gets `not_found` in a hidden channel.
    private static let hiding = Rows.inChannels.filter { Kind.private.outcome(of: $0) == .refused(.notFound) }

    /// The bytes of the answer, refused or not.
    private func answer<O: Handled>(
        _ operation: O, in world: CoreWorld, as user: UserID, _ role: AppRole = .user
    ) throws -> String {
        do {
            let result = try world.perform(operation, as: user, role: role, connection: 1)
            return String(decoding: try JSONWriter.bytes(of: result), as: UTF8.self)
        } catch let error as RoostError {
            return String(decoding: try JSONWriter.bytes(of: error), as: UTF8.self)
        }
    }

    @Test("AM-34 for non-members a deleted channel answers byte for byte like one that never existed", arguments: hiding)
    func deletedIsUnknown(row: Row) throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["left", "target"])
        try world.user("eve")
        let message = try world.send("x", to: "general", as: "ann").messageId
        try world.perform(LeaveChannel(channel: "general"), as: "left")
        try world.perform(DeleteChannel(channel: "general"), as: "ann")
        var answers: Set<String> = []
        for user in ["eve", "left"] as [UserID] {
            for channel in ["general", "unknown", "community:general", "community:unknown"] as [ChannelID] {
                for message in [message, MessageID(rawValue: 1)] {
                    let fixture = Fixture(channel: channel, own: message, others: message, invited: "target")
                    answers.insert(try answer(row.make(fixture), in: world, as: user))
                }
            }
        }
        #expect(answers == [Self.unknown(row)])
    }

    @Test("AM-15 AM-17 SB-03 a channel the caller may not find answers byte for byte like one that never was", arguments: hiding)
    func hiddenIsUnknown(row: Row) throws {
        let world = try CoreWorld()
        for user in ["ann", "eve", "left", "target"] as [UserID] { try world.user(user) }
        let types: [ChannelType] = [.live, .group, .messaging, .conversation]
        var answers: Set<String> = []
        for type in types {
            let channel = ChannelID(type.rawValue)
            let users: [UserID] = type == .conversation ? ["target"] : ["target", "left"]
            try world.perform(CreateChannel(channel: channel, type: type, users: users), as: "ann")
            let message = try world.send("x", to: channel, as: "ann").messageId
            if type != .conversation { try world.perform(LeaveChannel(channel: channel), as: "left") }
            // A user who knows the id may try to join, and learns what joining requires (D-33, SB-19): only a conversation stays unknown even then.
            // A guest can't join.
            let roles: [AppRole] = row.right == .join && type != .conversation ? [.guest] : [.user, .guest]
            for (user, role) in roles.flatMap({ [("eve", $0), ("left", $0)] as [(UserID, AppRole)] }) {
                for name in [channel, ChannelID("\(type):\(channel)"), "unknown", ChannelID("\(type):unknown")] {
                    let fixture = Fixture(channel: name, own: message, others: message, invited: "target")
                    answers.insert(try answer(row.make(fixture), in: world, as: user, role))
                }
            }
        }
        #expect(answers == [Self.unknown(row)])
    }

    @Test("SB-19 D-33 only joining reveals a hidden channel: a private group requires an invitation, and bans are reported")
    func joiningTells() throws {
        let world = try CoreWorld()
        for user in ["ann", "bob", "eve"] as [UserID] { try world.user(user) }
        try world.perform(CreateChannel(channel: "closed", type: .group, users: ["bob"]), as: "ann")
        try world.perform(LeaveChannel(channel: "closed"), as: "bob")
        let until = world.now.after(seconds: 60)
        try world.execute("UPDATE members SET banned_until = \(until) WHERE user_id = 'bob'")
        let refusals = try ["eve", "bob"].map { try world.refusal(JoinChannel(channel: "closed"), as: $0) }
        let found = refusals.map { [$0?.code.rawValue, $0?.rule, $0?.until.map { "\($0.milliseconds)" }] }
        let expected: [[String?]] = [
            ["invite_required", "member.join needs an invitation", nil],
            ["banned", "member.join: not while banned", "\(until.milliseconds)"],
        ]
        #expect(found == expected)
    }

    @Test("a resume and an unwatch reveal nothing about a channel to non-members")
    func resumeTellsNothing() throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann")
        try world.send("x", to: "general", as: "ann")
        try world.user("eve")
        let answers = try ["general", "unknown"].map { channel in
            [
                try answer(Resume(after: 0, channels: [channel: 0]), in: world, as: "eve"),
                try answer(UnwatchChannel(channel: ChannelID(channel)), in: world, as: "eve"),
            ]
        }
        #expect(answers[0] == answers[1])
    }
}

extension Kind {
    fileprivate func outcome(of row: Row) -> Outcome { Ledger.outcome(of: row.right, in: self, .user, .stranger, .active) }
}
