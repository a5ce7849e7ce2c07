import RoostAPI
import RoostTestSupport

/// Actions, as far as the ledger distinguishes them.
enum Right: String, CaseIterable, Sendable {
    /// Nothing that depends on a channel.
    case nothing
    /// Explaining permissions: allowed to all who may know of the channel, and about others to the app's staff among them.
    case explain, explainOther
    case find, listMembers
    /// Reading one member: a deleted channel has none.
    case seeMember
    /// Listing members by states that only moderators see (D-28).
    case listRestricted
    case join, leave, accept, decline, listInvitations
    case add, remove, removeOperator, invite, withdrawOthers
    case readHistory, watch
    /// Sending with a mention, and adding one by an edit: to the caller's own message, and to another's.
    case mention, mentionByEdit, mentionInOthers
    /// Sending as the app itself.
    case sendAdmin
    case send, editOwn, editOthers, deleteOwn, deleteOthers
    /// Purging and undeleting the caller's own message that another user has deleted.
    case purgeRemoved, undeleteRemoved
    case update, moderate
    /// Removing an operator's role, making a member the owner, and making a member an operator.
    case demote, crown, appoint
    /// Making the channel differ from its type.
    case setPolicy
    case delete
    /// Changes of the caller's own membership: reading, hiding.
    case own

    /// The right checked before mentioning; nil for actions without mentions.
    var writing: Right? {
        switch self {
        case .mention: .send
        case .mentionByEdit: .editOwn
        case .mentionInOthers: .editOthers
        default: nil
        }
    }
}

/// The outcome of a right for ordinary users in an active channel, by their relation to it; then for an app's moderator and for an admin who
/// aren't in the channel.
struct Line: Sendable {
    private var byRelation: [Relation: Outcome]
    let moderator: Outcome
    let admin: Outcome

    /// - Parameter text: A letter for each of stranger, left, invited, member, muted, banned, guide, operator, owner; moderator, admin.
    init(_ text: String) {
        let outcomes = text.compactMap { Self.letters[$0] }
        precondition(outcomes.count == Relation.allCases.count + 2, "A line of the table has another length: \(text)")
        byRelation = Dictionary(uniqueKeysWithValues: zip(Relation.allCases, outcomes))
        moderator = outcomes[outcomes.count - 2]
        admin = outcomes[outcomes.count - 1]
    }

    subscript(relation: Relation) -> Outcome { byRelation[relation] ?? .allowed }

    mutating func replace(_ relations: [Relation], with outcome: Outcome) {
        for relation in relations { byRelation[relation] = outcome }
    }

    private static let letters: [Character: Outcome] = [
        "y": .allowed, "n": .refused(.notFound), "m": .refused(.notMember), "p": .refused(.notPermitted),
        "k": .refused(.kindForbids), "b": .refused(.banned), "i": .refused(.inviteRequired), "v": .refused(.notInvited),
        "s": .refused(.sendNotAllowed), "o": .refused(.notMessageOwner), "u": .refused(.muted),
    ]
}

/// A kind of channel, as in the ledger's table: written by hand, to compare the product's own table with it.
struct Kind: Sendable {
    let name: String
    let type: ChannelType
    /// The stored value: `everyone`, `members` and so on.
    let discovery: String
    let joining: String
    /// Whether users may create a channel of the type: `y`, or the refusal.
    let createdByUsers: Outcome
    let createdByAdmins: Outcome
    let lines: [Right: Line]

    /// Nobody is invited to a conversation or banned from one (AM-18).
    var relations: [Relation] {
        Relation.allCases.filter { type != .conversation || ($0 != .invited && $0 != .banned) }
    }

    init(
        _ name: String, _ type: ChannelType, discovery: String, joining: String, createdByUsers: Outcome = .allowed,
        createdByAdmins: Outcome = .allowed, _ lines: [Right: Line]
    ) {
        self.name = name
        self.type = type
        self.discovery = discovery
        self.joining = joining
        self.createdByUsers = createdByUsers
        self.createdByAdmins = createdByAdmins
        self.lines = lines
    }
}

/// The ledger's permissions (§8.2, §8.3, §8.4, AM-14 to AM-19): a table for ordinary users in an active channel, and how a role in the app
/// and a state of the channel change it. Written independently of the rules that it judges.
enum Ledger {
    private static let insiders: Set<Right> = [.find, .listMembers, .listRestricted, .leave, .readHistory, .delete]
    /// Guests' rights where anybody has them: reading, and leaving.
    private static let ofGuests: Set<Right> = [.find, .listMembers, .listInvitations, .readHistory, .watch, .leave]

    static func outcome(
        of right: Right, in kind: Kind, _ role: AppRole, _ relation: Relation, _ state: ChannelState
    ) -> Outcome {
        switch right {
        case .nothing: return .allowed
        case .explainOther where !isAdmin(role): return .refused(.notPermitted)
        case .explain, .explainOther:
            let found = outcome(of: .find, in: kind, role, relation, state)
            return found == .refused(.notFound) ? found : .allowed
        case .seeMember:
            let listed = outcome(of: .listMembers, in: kind, role, relation, state)
            return state == .deleted ? .refused(.notFound) : listed
        case .purgeRemoved, .undeleteRemoved:
            // Users who may delete anybody's messages decide about messages deleted by another user (SB-59).
            let own = outcome(of: right == .purgeRemoved ? .deleteOwn : .editOwn, in: kind, role, relation, state)
            guard own == .allowed else { return own }
            let others = outcome(of: .deleteOthers, in: kind, role, relation, state)
            return others == .allowed ? .allowed : .refused(.notMessageOwner)
        default: break
        }
        switch state {
        case .active: return whenActive(right, kind, role, relation)
        case .deleted: return whenDeleted(right, kind, role, relation)
        case .frozen: return whileHeld(.frozen, right, kind, role, relation)
        case .silenced: return whileHeld(.channelMuted, right, kind, role, relation)
        }
    }

    private static func isAdmin(_ role: AppRole) -> Bool { role == .admin || role == .service }

    /// A frozen or silenced channel prevents writing by all but its moderators (SB-21, AM-07).
    private static func whileHeld(
        _ code: RoostError.Code, _ right: Right, _ kind: Kind, _ role: AppRole, _ relation: Relation
    ) -> Outcome {
        // Sending and editing are checked before mentioning.
        if let first = right.writing {
            let writing = whileHeld(code, first, kind, role, relation)
            return writing == .allowed ? whenActive(right, kind, role, relation) : writing
        }
        let outcome = whenActive(right, kind, role, relation)
        guard right == .send || right == .editOwn, outcome == .allowed || outcome == .refused(.muted) else {
            return outcome
        }
        return whenActive(.moderate, kind, role, relation) == .allowed ? outcome : .refused(code)
    }

    /// A deleted channel can still be read, left and deleted again by those who were in it, and by admins; for others it doesn't exist (AM-34).
    private static func whenDeleted(_ right: Right, _ kind: Kind, _ role: AppRole, _ relation: Relation) -> Outcome {
        guard relation.isInside || (isAdmin(role) && kind.type != .conversation) else {
            // A user whose invitation was withdrawn with the channel gets the same answer as without the deletion (ledger §8.3).
            let isAnswer = right == .accept || right == .decline
            return .refused(relation == .invited && isAnswer ? .notInvited : .notFound)
        }
        guard insiders.contains(right) else { return .refused(.notPermitted) }
        // The channel's invitations and bans are deleted with it.
        return whenActive(right, kind, role, relation.isInside ? relation : .left)
    }

    private static func whenActive(_ right: Right, _ kind: Kind, _ role: AppRole, _ relation: Relation) -> Outcome {
        if let first = right.writing {
            // Users who may send or edit may mention, if the kind has mentions at all (MN-02, D-31).
            let writing = whenActive(first, kind, role, relation)
            return writing == .allowed && Kind.withoutMentions.contains(kind.type) ? .refused(.kindForbids) : writing
        }
        guard let line = kind.lines[right] else { preconditionFailure("\(kind.name) says nothing of \(right.rawValue).") }
        switch role {
        case .user: return line[relation]
        case .guest: return forGuest(right, line, kind, relation)
        case .moderator:
            // The app's moderators have an operator's rights, and can be banned and muted like anybody.
            if line[relation] == .refused(.banned) { return .refused(.banned) }
            let outcome = better(line.moderator, line[relation], relation)
            let isWriting = right == .send || right == .editOwn
            return isWriting && relation == .muted && outcome == .allowed ? .refused(.muted) : outcome
        case .admin, .service:
            // Admins are exempt from moderation (§8.4).
            let standing: Relation = relation == .banned ? .left : relation == .muted ? .member : relation
            return better(line.admin, line[standing], standing)
        }
    }

    /// The grants of the app and those of the channel add up (§8.4). Without either, users in the channel learn what they lack there.
    private static func better(_ ofApp: Outcome, _ ofChannel: Outcome, _ relation: Relation) -> Outcome {
        if ofApp == .allowed || ofChannel == .allowed { return .allowed }
        return relation.isInside ? ofChannel : ofApp
    }

    /// Guests read what anybody in their place may read, leave where anybody may, and do nothing else.
    private static func forGuest(_ right: Right, _ line: Line, _ kind: Kind, _ relation: Relation) -> Outcome {
        if ofGuests.contains(right) || line[relation] == .refused(.notFound) { return line[relation] }
        // Joining says what it requires to users who know the id (D-33, SB-19); guests can't join in any case.
        if right == .join, kind.lines[.find]?[relation] == .refused(.notFound) { return .refused(.notFound) }
        // The first check is the first refusal.
        let first: Right? =
            switch right {
            case .listRestricted: .listMembers
            case .editOwn, .editOthers, .deleteOwn, .deleteOthers: .readHistory
            default: nil
            }
        if let first, let seen = kind.lines[first]?[relation], seen != .allowed { return seen }
        return .refused(right == .editOthers || right == .deleteOthers ? .notMessageOwner : .notPermitted)
    }
}
