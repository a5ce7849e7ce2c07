import RoostAPI
import RoostCore
import RoostTestSupport

/// A caller's relation to the channel.
enum Relation: String, CaseIterable, Sendable {
    /// Never was a member.
    case stranger
    /// Was a member and left while the channel existed.
    case left
    /// Has a pending invitation.
    case invited
    case member
    /// A member who temporarily may not send.
    case muted
    /// Was a member, and is temporarily kept out.
    case banned
    /// A member with one of the app's own roles, of rank 10, which grants changing the channel and removing members.
    case guide
    case `operator`, owner

    var user: UserID { UserID(rawValue) }
    /// Whether the caller is in the channel, or was when it was deleted.
    var isInside: Bool {
        switch self {
        case .stranger, .left, .invited, .banned: false
        case .member, .muted, .guide, .operator, .owner: true
        }
    }
}

enum ChannelState: String, CaseIterable, Sendable {
    case active, frozen, silenced, deleted
}

/// The outcome of an operation: the code of its refusal, or success.
enum Outcome: Hashable, Sendable, CustomStringConvertible {
    case allowed
    case refused(RoostError.Code)

    var description: String {
        switch self {
        case .allowed: "allowed"
        case .refused(let code): code.rawValue
        }
    }
}

/// One cell of the matrix.
struct Cell: Sendable, CustomStringConvertible {
    let row: Row
    let kind: Kind
    let role: AppRole
    let relation: Relation
    let state: ChannelState

    var description: String { "\(row.name) by \(role.rawValue), \(relation.rawValue), in \(state.rawValue) \(kind.name)" }

    var expected: Outcome { Ledger.outcome(of: row.right, in: kind, role, relation, state) }

    /// Every cell of a kind of channel, or a seeded sample if a cell takes several round trips to a database server.
    static func all(of kind: Kind) -> [Cell] {
        var cells: [Cell] = []
        for state in ChannelState.allCases {
            for relation in kind.relations {
                for role in AppRole.allCases {
                    for row in Rows.inChannels {
                        cells.append(Cell(row: row, kind: kind, role: role, relation: relation, state: state))
                    }
                }
            }
        }
        guard TestDatabase.Engine.chosen != .sqlite else { return cells }
        var random = SeededGenerator(seed: 4)
        return cells.filter { _ in random.once(in: 12) }
    }
}
