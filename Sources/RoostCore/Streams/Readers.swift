public import RoostAPI

/// The users who may read a channel, and so get its events with their messages, and the members who may watch it. Part of an event's audience.
///
/// Every event carries its own, from its commit. So the end of a right to read needs no event, whether the channel's policy,
/// its type's or a role ends it: the delivery of the next event compares its readers with those of the last one, and checks
/// each receiver again only if they differ. That also applies to the rows that a node reads from the database in place of
/// missed events.
public struct Readers: Hashable, Sendable {
    /// The lowest role in the app that is required.
    public enum Level: UInt8, Comparable, Sendable {
        case user, moderator, admin, nobody

        public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    }

    /// The level for members.
    public var members: Level = .user
    /// The level for non-members, who watch.
    public var others: Level = .moderator
    /// The channel roles with which members may read, whatever their role in the app, in the order of their names.
    public var roles: [ChannelRole] = []
    /// The channel roles with which members may watch, in the order of their names. An app's own role can grant just one of the two rights.
    public var watchRoles: [ChannelRole] = []

    /// The default is that of most channels: members may read, and the app's moderators.
    ///
    /// - Parameter watchRoles: Nil for the roles with which members may read.
    public init(
        members: Level = .user, others: Level = .moderator, roles: [ChannelRole] = [], watchRoles: [ChannelRole]? = nil
    ) {
        self.members = members
        self.others = others
        self.roles = roles
        self.watchRoles = watchRoles ?? roles
    }

    /// Whether every member is a reader.
    public var areAllMembers: Bool { members == .user }

    /// Returns whether a user is a reader.
    ///
    /// - Parameter role: A member's role in the channel; nil for non-members.
    public func contain(_ appRole: AppRole, as role: ChannelRole?) -> Bool {
        guard let role else { return appRole.level >= others && others != .nobody }
        return (appRole.level >= members && members != .nobody) || roles.contains(role)
    }

    /// Returns whether a user may watch. Only a member's role can grant that without reading, or the reverse.
    ///
    /// - Parameter role: A member's role in the channel; nil for non-members.
    public func letWatch(_ appRole: AppRole, as role: ChannelRole?) -> Bool {
        guard let role else { return contain(appRole, as: nil) }
        return (appRole.level >= members && members != .nobody) || watchRoles.contains(role)
    }

    /// The condition on a member's role in a channel that the member is a reader as an ordinary user of the app, which is all
    /// that an operation knows of others.
    func containing(role: SQL) -> SQL {
        if areAllMembers { return "1 = 1" }
        return roles.isEmpty ? "1 = 0" : "\(role) IN (\(list: roles.map(\.rawValue)))"
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
    /// Returns the readers of a channel with a policy: the users to whom ``Permissions`` grants `history.read`, and the roles
    /// with which it grants `channel.watch`. A test keeps the two in step.
    func readers(of policy: ChannelPolicy) throws -> Readers {
        let isHidden = policy.discovery == .membersOnly
        switch policy.read {
        case .everyone: return Readers(others: policy.discovery == .everyone ? .user : isHidden ? .nobody : .moderator)
        case .invited: return Readers(others: isHidden ? .nobody : .admin)
        case .members: return Readers(others: isHidden ? .nobody : .moderator)
        case .membersOnly: return Readers(others: .nobody)
        case .operators:
            let definitions = try roles()
            func granting(_ permission: Permission) -> [ChannelRole] {
                definitions.filter { $0.permissions.contains(permission) }.map(\.role).sorted()
            }
            return Readers(
                members: .moderator, others: isHidden ? .nobody : .moderator, roles: granting(.historyRead),
                watchRoles: granting(.channelWatch))
        case .owners: return Readers(members: .admin, others: isHidden ? .nobody : .admin, roles: [.owner])
        case .admins: return Readers(members: .admin, others: isHidden ? .nobody : .admin)
        case .nobody: return Readers(members: .nobody, others: .nobody)
        }
    }
}

extension Context {
    /// Sends a channel's current readers, for its receivers to be checked again (``Notice/rulesChanged``).
    package mutating func reportReaders(of channel: ChannelID) throws {
        guard let access = try transaction.access(to: channel, of: caller.user), access.deletedAt == nil else { return }
        notify(.readers(channel, try transaction.readers(of: access.policy)))
    }
}
