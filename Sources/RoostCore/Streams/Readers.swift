public import RoostAPI

/// Who may read a channel: what decides whether somebody gets an event of it with its messages. It is part of the event's audience.
///
/// Every event brings its own, as of its commit. So nothing has to be told when a right to read ends, be it by the channel's policy, its
/// type's or a role's: whoever delivers the next event compares them with those of the last one, and asks anew for each receiver only
/// where they differ. That holds for what a node reads from the database in the place of events that it missed, too.
public struct Readers: Hashable, Sendable {
    /// The least role in the app that it takes.
    public enum Level: UInt8, Comparable, Sendable {
        case user, moderator, admin, nobody

        public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    }

    /// What it takes a member.
    public var members: Level = .user
    /// What it takes those who aren't members: they watch.
    public var others: Level = .moderator
    /// The roles in the channel with which members read, whatever their role in the app is. In the order of their names.
    public var roles: [ChannelRole] = []

    // derived: init
    /// As most channels have it: members read, and the app's moderators.
    public init(members: Level = .user, others: Level = .moderator, roles: [ChannelRole] = []) {
        self.members = members
        self.others = others
        self.roles = roles
    }

    /// Whether every member is a reader.
    public var areAllMembers: Bool { members == .user }

    /// Whether somebody is one.
    ///
    /// - Parameter role: what a member is in the channel; nil for non-members.
    public func contain(_ appRole: AppRole, as role: ChannelRole?) -> Bool {
        guard let role else { return appRole.level >= others && others != .nobody }
        return (appRole.level >= members && members != .nobody) || roles.contains(role)
    }
}

extension AppRole {
    fileprivate var level: Readers.Level {
        switch self {
        case .guest, .user: .user
        case .moderator: .moderator
        case .admin, .service: .admin
        }
    }
}

extension Transaction {
    /// The readers of a channel with a policy: those to whom ``Permissions`` grants `history.read` by it. A test holds the two together.
    func readers(of policy: ChannelPolicy) throws -> Readers {
        let isHidden = policy.discovery == .membersOnly
        switch policy.read {
        case .everyone: return Readers(others: policy.discovery == .everyone ? .user : isHidden ? .nobody : .moderator)
        case .invited: return Readers(others: isHidden ? .nobody : .admin)
        case .members: return Readers(others: isHidden ? .nobody : .moderator)
        case .membersOnly: return Readers(others: .nobody)
        case .operators:
            let roles = try roles().filter { $0.permissions.contains(.historyRead) }.map(\.role).sorted()
            return Readers(members: .moderator, others: isHidden ? .nobody : .moderator, roles: roles)
        case .owners: return Readers(members: .admin, others: isHidden ? .nobody : .admin, roles: [.owner])
        case .admins: return Readers(members: .admin, others: isHidden ? .nobody : .admin)
        case .nobody: return Readers(members: .nobody, others: .nobody)
        }
    }
}
