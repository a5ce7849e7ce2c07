import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

extension Kind: CustomTestStringConvertible { var testDescription: String { name } }
extension Row: CustomTestStringConvertible { var testDescription: String { name } }

/// Every operation × role in the app × relation to the channel × kind of channel × state of the channel × whose message.
///
/// For each cell: the outcome matches the ledger; a refusal names a permission that the operation requires; and if one permission
/// decides, explaining that permission gives the same refusal. So `Operation.permission` is what the handler requires.
@Suite("Permission matrix")
struct PermissionMatrixTests {
    @Test("R03 R33 every operation, every type and every role has its place in the table")
    func isComplete() {
        let rows = Set(Rows.inChannels.map(\.operationName) + Rows.elsewhere.map { type(of: $0.operation).name })
        #expect(Set(Operations.all.map { $0.name }).symmetricDifference(rows.union([CreateChannel.name])) == [])
        #expect(Set(ChannelPolicy.presets.map(\.type)).subtracting(Kind.all.map(\.type)) == [])
        #expect(Set(Relation.allCases.map(\.rawValue)).isSuperset(of: RoleDefinition.builtIn.map(\.role.rawValue)))
        let inChannels = Kind.all.map { Cell.all(of: $0).count }.reduce(0, +)
        let elsewhere = (Rows.elsewhere.count + Kind.all.count) * AppRole.allCases.count
        print("Permission matrix: \(inChannels + elsewhere) cells")
    }

    @Test("operations about a message are in the table for the caller's own and for another's")
    func knowsWhoseMessage() throws {
        let about = try Operations.all.filter { try Schema.of($0).fields.contains { $0.name == "message" } }.map { $0.name }
        let rows = Set(Rows.inChannels.map(\.name))
        #expect(about.filter { !rows.contains("\($0) (own)") || !rows.contains("\($0) (another's)") } == [])
    }

    @Test("AM-14 AM-22 AM-48 D-28 D-39 in a community the table holds, explain predicts it, and a refusal changes nothing")
    func community() throws { try check(.community) }

    @Test("AM-15 D-27 D-33 a live channel is a community that only members and admins find, and that anyone with its id can join")
    func live() throws { try check(.live) }

    @Test("AM-16 AM-22 in a broadcast channel only admins write and moderate")
    func broadcast() throws { try check(.broadcast) }

    @Test("AM-17 AM-18 a conversation is for its members only, and nobody joins, leaves or moderates")
    func conversation() throws { try check(.conversation) }

    @Test("AM-19 standard and private channels stay as stored", arguments: [Kind.standard, .private])
    func kept(kind: Kind) throws { try check(kind) }

    @Test(
        "SB-19 SB-21 a group is found by its members and joined by invitation, a public one by all",
        arguments: [Kind.group, .publicGroup])
    func groups(kind: Kind) throws { try check(kind) }

    @Test("ST-08 D-27 a messaging channel is for its members, a livestream for all", arguments: [Kind.messaging, .livestream])
    func ofStream(kind: Kind) throws { try check(kind) }

    @Test("R03 R33 a type of the operator's own is judged by its own policy")
    func ownType() throws { try check(.noticeboard) }

    /// Tries every cell of a kind, each from the same state of the database.
    private func check(_ kind: Kind) throws {
        let matrix = try MatrixWorld(kind)
        let (wrong, traces) = try matrix.trying { attempts in
            var wrong: [String] = []
            for cell in Cell.all(of: kind) {
                let fixture = matrix.fixture(cell.relation, cell.state)
                let refusal = try attempts.refusal(of: cell.row.make(fixture), as: cell.relation.user, cell.role)
                let outcome = refusal.map { Outcome.refused($0.code) } ?? .allowed
                let isOff = cell.row.isOff && cell.expected == .allowed
                let expected = isOff ? .refused(.featureDisabled) : cell.expected
                if outcome != expected { wrong.append("\(cell): \(outcome) instead of \(expected)") }
                if let refusal, !isOff, !cell.row.names(refusal) {
                    wrong.append("\(cell): \(refusal.rule ?? "no rule") isn't among its permissions")
                }
                if let decisive = cell.row.decisive {
                    let explain = ExplainPermission(channel: fixture.channel, permission: decisive)
                    let explained = try attempts.result(of: explain, as: cell.relation.user, cell.role).foretold
                    let isSame = cell.row.permissions == [decisive] ? explained == refusal : (explained == nil) == (refusal == nil)
                    if !isSame { wrong.append("\(cell): explained as \(explained?.rule ?? "allowed")") }
                }
            }
            return (wrong, attempts.traces)
        }
        #expect(wrong.count == 0, "\(wrong.prefix(40).joined(separator: "\n"))")
        #expect(traces == [])
    }

    @Test("AM-19 AM-22 R03 who may create a channel of which type")
    func creation() throws {
        let matrix = try MatrixWorld(.community)
        let wrong = try matrix.trying { attempts in
            var wrong: [String] = []
            for kind in Kind.all {
                for role in AppRole.allCases {
                    let create = CreateChannel(channel: "new", type: kind.type, users: [Rows.target, Rows.chief])
                    let refusal = try attempts.refusal(of: create, as: "stranger", role)
                    let outcome = refusal.map { Outcome.refused($0.code) } ?? .allowed
                    let expected: Outcome =
                        switch role {
                        case .guest: .refused(.notPermitted)
                        case .user, .moderator: kind.createdByUsers
                        case .admin, .service: kind.createdByAdmins
                        }
                    if outcome != expected { wrong.append("\(role) creates a \(kind.name): \(outcome) instead of \(expected)") }
                }
            }
            return wrong
        }
        #expect(wrong == [])
    }

    @Test("D-39 operations that concern no channel are for all, or for the app's staff")
    func elsewhere() throws {
        let matrix = try MatrixWorld(.community)
        let wrong = try matrix.trying { attempts in
            var wrong: [String] = []
            for (operation, isForAll) in Rows.elsewhere {
                for role in AppRole.allCases {
                    let code = try attempts.refusal(of: operation, as: "member", role)?.code
                    let expected: RoostError.Code? = isForAll || role == .admin || role == .service ? nil : .notPermitted
                    if code != expected { wrong.append("\(type(of: operation).name) by \(role): \(code?.rawValue ?? "allowed")") }
                }
            }
            return wrong
        }
        #expect(wrong == [])
    }

    @Test("AM-14 AM-15 AM-16 SB-03 R03 a channel of each type that can be created is stored as the table says")
    func storedAs() throws {
        let world = try CoreWorld()
        for user in ["ann", "bob"] as [UserID] { try world.user(user) }
        try world.perform(
            PutChannelType(type: "noticeboard", basedOn: .community, policy: Kind.noticeboardPolicy), as: "ann", role: .admin)
        let kinds = Kind.all.filter { $0.createdByAdmins == .allowed }
        for kind in kinds {
            var create = CreateChannel(channel: ChannelID(kind.name), type: kind.type, users: ["bob"])
            if kind.name == Kind.publicGroup.name { create.isPublic = true }
            try world.perform(create, as: "ann", role: .admin)
        }
        let stored = try world.rows("SELECT channel_id, type, discovery, joining FROM channels ORDER BY channel_id") { row in
            [row.string(), row.string(), row.string(), row.string()]
        }
        #expect(stored == kinds.map { [$0.name, $0.type.rawValue, $0.discovery, $0.joining] }.sorted { $0[0] < $1[0] })
    }
}
