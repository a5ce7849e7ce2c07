import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

/// Every operation × role in the app × relation to the channel × state of the channel × whose message × type of channel.
@Suite("Permission matrix")
struct PermissionMatrixTests {
    /// One place of the matrix.
    struct Cell: CustomStringConvertible {
        let row: Row
        let type: ChannelType
        let role: AppRole
        let relation: Relation
        let state: ChannelState
        let expected: Outcome

        var description: String {
            let message = row.message == .none ? "" : " of \(row.message.rawValue) message"
            return "\(row.name)\(message) by \(role.rawValue), \(relation.rawValue), in \(state.rawValue) \(type)"
        }
    }

    static var cells: [Cell] {
        var cells: [Cell] = []
        for row in Matrix.rows {
            for type in Matrix.types {
                for role in AppRole.allCases {
                    for state in ChannelState.allCases {
                        for relation in Relation.allCases {
                            guard let expected = row.lines[role]?[state]?.outcomes[relation] else { continue }
                            cells.append(
                                Cell(row: row, type: type, role: role, relation: relation, state: state, expected: expected))
                        }
                    }
                }
            }
        }
        return cells
    }

    @Test("X-01 every operation, every type and every role has its place in the table")
    func isComplete() {
        let missing = Set(Operations.all.map { $0.name }).symmetricDifference(Matrix.rows.map(\.name))
        #expect(missing == [])
        #expect(Set(ChannelPolicy.presets.map(\.type)) == Set(Matrix.types))
        #expect(Set(Relation.allCases.map(\.rawValue)).isSuperset(of: ChannelRole.allCases.map(\.rawValue)))
        let combinations = AppRole.allCases.count * ChannelState.allCases.count * Relation.allCases.count
        #expect(Self.cells.count == Matrix.rows.count * Matrix.types.count * combinations)
    }

    @Test("X-01 operations about a message stand in the table for one's own and for another's")
    func knowsWhoseMessage() throws {
        let about = try Operations.all.filter { try Schema.of($0).fields.contains { $0.name == "message" } }.map { $0.name }
        let rows = Set(Matrix.rows.map { "\($0.name) \($0.message.rawValue)" })
        #expect(about.filter { !rows.contains("\($0) own") || !rows.contains("\($0) others") } == [])
    }

    @Test(
        "X-01 every operation is allowed and refused as the table says, and a refusal changes nothing",
        arguments: Matrix.rows.indices)
    func holds(row index: Int) throws {
        let row = Matrix.rows[index]
        let cells = Self.cells.filter { $0.row.name == row.name && $0.row.message == row.message }
        var wrong: [String] = []
        for cell in cells {
            let (world, fixture) = try prepare(cell)
            let before = try world.dump()
            let told = world.notices.count
            let code = try world.code(row.make(fixture), as: "me", role: cell.role, connection: 1)
            let outcome = code.map(Outcome.refused) ?? .allowed
            if outcome != cell.expected { wrong.append("\(cell): \(outcome) instead of \(cell.expected)") }
            if outcome != .allowed, try world.dump() != before || world.notices.count != told {
                wrong.append("\(cell): was refused and yet changed")
            }
        }
        #expect(wrong == [])
        print(
            "Permission matrix: \(cells.count) cells of \(row.name)\(row.message == .none ? "" : " (\(row.message.rawValue))"), "
                + "of \(Self.cells.count)")
    }

    private func prepare(_ cell: Cell) throws -> (CoreWorld, Fixture) {
        let world = try CoreWorld()
        var fixture = Fixture()
        let channel = fixture.channel
        for user in ["me", "someone", "other"] as [UserID] { try world.user(user) }
        let owner: UserID = cell.relation == .owner ? "me" : "someone"
        try world.perform(CreateChannel(channel: channel, type: cell.type, users: ["other"]), as: owner)
        let others = try world.send("theirs", to: channel, as: "other")
        // A stranger's own message can only be an admin's, or one whose sender isn't a member any more.
        if cell.relation != .owner { try world.perform(JoinChannel(channel: channel), as: "me") }
        let own = try world.send("mine", to: channel, as: "me")
        switch cell.relation {
        case .stranger: try world.execute("DELETE FROM members WHERE user_id = 'me'")
        case .left: try world.perform(LeaveChannel(channel: channel), as: "me")
        case .member, .owner: break
        case .operator: try world.setRole(.operator, of: "me", in: channel)
        }
        fixture.message = cell.row.message == .own ? own.messageId : others.messageId
        if cell.state == .deleted { try world.perform(DeleteChannel(channel: channel), as: "root", role: .admin) }
        return (world, fixture)
    }
}

/// What doesn't exist and what may not be known of can't be told apart (RELIABILITY §4, enumeration).
@Suite("Hidden channels")
struct HiddenChannelTests {
    private static let inChannels = Matrix.rows.indices.filter {
        Matrix.rows[$0].lines[.user]?[.deleted]?.outcomes[.stranger] == .refused(.notFound)
    }

    /// The bytes of the answer, refused or not.
    private func answer<O: Handled>(_ operation: O, in world: CoreWorld, as user: UserID) throws -> String {
        do {
            return String(decoding: try JSONWriter.bytes(of: world.perform(operation, as: user, connection: 1)), as: UTF8.self)
        } catch let error as RoostError {
            return String(decoding: try JSONWriter.bytes(of: error), as: UTF8.self)
        }
    }

    @Test("X-01 a deleted channel that one wasn't in answers byte for byte as one that never was", arguments: inChannels)
    func deletedIsUnknown(row index: Int) throws {
        let world = try CoreWorld()
        try world.channel("general", owner: "ann", members: ["left"])
        try world.user("eve")
        let message = try world.send("x", to: "general", as: "ann").messageId
        try world.perform(LeaveChannel(channel: "general"), as: "left")
        try world.perform(DeleteChannel(channel: "general"), as: "ann")
        let row = Matrix.rows[index]
        var answers: Set<String> = []
        for user in ["eve", "left"] as [UserID] {
            for (channel, message) in [("general", message), ("unknown", message), ("unknown", MessageID(rawValue: 1))] {
                answers.insert(try answer(row.make(Fixture(channel: ChannelID(channel), message: message)), in: world, as: user))
            }
        }
        #expect(answers == [#"{"code":"not_found","message":"There is no such channel.","field":"channel"}"#])
    }

    @Test("X-01 a resume and an unwatch tell nothing of a channel that one isn't in")
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
