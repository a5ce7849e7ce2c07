import RoostAPI

/// Who may do what: the one table. No handler decides by itself.
///
/// A rule is looked up by permission and asked about a caller and, where there is one, a channel. The answer is either nothing or the
/// refusal to throw, which names the rule.
public enum Permissions {
    /// What a permission takes.
    enum Rule {
        /// Any authenticated user.
        case anyone
        /// The app's admins.
        case admins
        /// Whom the channel's type names for this.
        case policy(any KeyPath<ChannelPolicy, ChannelPolicy.Audience> & Sendable)
        /// Members with one of these roles in the channel, and admins.
        case roles(Set<ChannelRole>)
        /// Members, and nobody else: it is about the caller's own membership.
        case membership
    }

    private static let moderators: Set<ChannelRole> = [.owner, .operator]

    /// The table. `whenDeleted` says whether it still holds in a deleted channel, for those who can see one.
    private static func entry(_ permission: Permission) -> (rule: Rule, whenDeleted: Bool) {
        switch permission {
        case .userRead: (.anyone, true)
        case .userUpdateSelf: (.anyone, true)
        case .userManage: (.admins, true)
        case .streamRead: (.anyone, true)
        case .channelCreate: (.policy(\.create), false)
        case .channelRead: (.policy(\.discovery), true)
        case .channelWatch: (.policy(\.read), false)
        case .channelUpdate: (.roles(moderators), false)
        case .channelDelete: (.roles([.owner]), true)
        case .memberJoin: (.policy(\.join), false)
        case .memberLeave: (.policy(\.leave), true)
        case .memberList: (.policy(\.discovery), true)
        case .messageSend: (.policy(\.send), false)
        case .messageEditOwn: (.policy(\.send), false)
        case .messageEditAny: (.roles(moderators), false)
        case .messageDeleteOwn: (.policy(\.read), false)
        case .messageDeleteAny: (.roles(moderators), false)
        case .historyRead: (.policy(\.read), true)
        case .readMark: (.membership, false)
        }
    }

    /// The refusal of a permission that concerns no channel, or the creation of one; nil when it is granted.
    static func refusal(of permission: Permission, for caller: Caller, creating policy: ChannelPolicy? = nil) -> RoostError? {
        switch entry(permission).rule {
        case .anyone: nil
        case .admins: caller.isAdmin ? nil : notPermitted(permission, "needs an admin's token")
        case .policy(let audience):
            switch policy?[keyPath: audience] {
            case .everyone: nil
            case .members, .admins: caller.isAdmin ? nil : notPermitted(permission, "is for admins")
            case .nobody, nil: kindForbids(permission, policy?.type)
            }
        case .roles, .membership: notPermitted(permission, "concerns a channel")
        }
    }

    /// The refusal of a permission in a channel; nil when it is granted.
    static func refusal(of permission: Permission, for caller: Caller, in channel: ChannelAccess) -> RoostError? {
        guard isVisible(channel, to: caller) else { return .notFound("channel") }
        let (rule, whenDeleted) = entry(permission)
        if channel.deletedAt != nil, !whenDeleted {
            return RoostError(.notPermitted, "The channel is deleted.", rule: "\(permission.rawValue): not in a deleted channel")
        }
        let wasOrIsMember = channel.deletedAt == nil ? channel.isMember : channel.wasMember
        switch rule {
        case .anyone: return nil
        case .admins: return caller.isAdmin ? nil : notPermitted(permission, "needs an admin's token")
        case .policy(let audience):
            switch channel.policy[keyPath: audience] {
            case .everyone: return nil
            case .members:
                // Giving up a membership that isn't there changes nothing, so that leaving can be repeated.
                return wasOrIsMember || caller.isAdmin || permission == .memberLeave ? nil : notMember(permission)
            case .admins: return caller.isAdmin ? nil : notPermitted(permission, "is for admins")
            case .nobody: return kindForbids(permission, channel.policy.type)
            }
        case .roles(let roles):
            if caller.isAdmin { return nil }
            guard wasOrIsMember, let role = channel.role else { return notMember(permission) }
            let names = ChannelRole.allCases.filter(roles.contains).map(\.rawValue).joined(separator: " or ")
            return roles.contains(role) ? nil : notPermitted(permission, "needs the role \(names)")
        case .membership: return channel.isMember ? nil : notMember(permission)
        }
    }

    /// Whether the caller may know that a channel exists. Where not, every answer is the one for a channel that doesn't.
    private static func isVisible(_ channel: ChannelAccess, to caller: Caller) -> Bool {
        if caller.isAdmin || channel.isMember { return true }
        if channel.deletedAt != nil { return channel.wasMember }
        return channel.policy.discovery == .everyone
    }

    private static func notPermitted(_ permission: Permission, _ reason: String) -> RoostError {
        RoostError(.notPermitted, "\(permission.rawValue) \(reason).", rule: "\(permission.rawValue) \(reason)")
    }

    private static func notMember(_ permission: Permission) -> RoostError {
        RoostError(
            .notMember, "\(permission.rawValue) is for members of the channel.", rule: "\(permission.rawValue) is for members")
    }

    private static func kindForbids(_ permission: Permission, _ type: ChannelType?) -> RoostError {
        let type = type?.rawValue ?? "this"
        return RoostError(
            .kindForbids, "Channels of the type \(type) don't allow \(permission.rawValue).",
            rule: "\(permission.rawValue) in \(type) is for nobody")
    }
}

extension Context {
    /// Throws unless the caller has a permission that concerns no channel.
    func require(_ permission: Permission) throws {
        if let refusal = Permissions.refusal(of: permission, for: caller) { throw refusal }
    }

    /// Throws unless the caller may create channels of a type.
    func require(_ permission: Permission, creating policy: ChannelPolicy) throws {
        if let refusal = Permissions.refusal(of: permission, for: caller, creating: policy) { throw refusal }
    }

    /// Looks a channel up as the caller stands to it, and throws unless the caller has the permission in it.
    func require(_ permission: Permission, in channel: ChannelID) throws -> ChannelAccess {
        guard let access = try transaction.access(to: channel, of: caller.user) else { throw RoostError.notFound("channel") }
        if let refusal = Permissions.refusal(of: permission, for: caller, in: access) { throw refusal }
        return access
    }

    /// Throws unless the caller has a permission in a channel that was looked up before.
    func require(_ permission: Permission, in access: ChannelAccess) throws {
        if let refusal = Permissions.refusal(of: permission, for: caller, in: access) { throw refusal }
    }
}
