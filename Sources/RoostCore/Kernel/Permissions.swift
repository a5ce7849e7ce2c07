import RoostAPI

/// Who may do what: the one table. No handler decides by itself.
///
/// A rule is looked up by permission and asked about a caller and, where there is one, a channel. The answer is either nothing or the
/// refusal to throw, which names the rule. The order in which a channel's rules are asked: whether the caller may know of it, a ban, its deletion,
/// what its type and the caller's role allow, and for messages a freeze, a silence and a mute.
public enum Permissions {
    /// What a permission takes.
    enum Rule {
        /// Any authenticated user.
        case anyone
        /// The app's admins and backends.
        case admins
        /// Whom the channel's policy names for this.
        case policy(any KeyPath<ChannelPolicy, ChannelPolicy.Audience> & Sendable)
        /// The same in channels of every type.
        case always(ChannelPolicy.Audience)
        /// Members, and nobody else: it is about the caller's own membership.
        case membership
        /// Who holds an invitation, and members, for whom there is nothing left to answer.
        case invitation
    }

    /// The table. `whenDeleted` says whether it still holds in a deleted channel, for those who can see one.
    static func entry(_ permission: Permission) -> (rule: Rule, whenDeleted: Bool) {
        switch permission {
        case .configRead: (.anyone, true)
        case .configManage: (.admins, true)
        case .effectManage: (.admins, true)
        case .userRead: (.anyone, true)
        case .userUpdateSelf: (.anyone, true)
        case .userManage: (.admins, true)
        case .streamRead: (.anyone, true)
        case .channelCreate: (.policy(\.create), false)
        case .channelRead: (.policy(\.discovery), true)
        case .channelWatch: (.policy(\.read), false)
        case .channelUpdate: (.policy(\.update), false)
        case .channelUpdatePolicy: (.policy(\.updatePolicy), false)
        case .channelSetPublic: (.policy(\.updatePolicy), false)
        case .channelDelete: (.policy(\.delete), true)
        case .channelFreeze: (.policy(\.moderate), false)
        case .channelSilence: (.policy(\.moderate), false)
        case .channelRateLimit: (.policy(\.moderate), false)
        case .channelHide: (.membership, false)
        case .memberJoin: (.policy(\.join), false)
        case .memberLeave: (.policy(\.leave), true)
        case .memberList: (.policy(\.discovery), true)
        case .memberListMuted: (.policy(\.moderate), true)
        case .memberListBanned: (.policy(\.moderate), true)
        case .memberSearchBanned: (.policy(\.moderate), true)
        case .memberAdd: (.policy(\.add), false)
        case .memberRemove: (.policy(\.remove), false)
        case .memberSetRole: (.policy(\.moderate), false)
        case .memberInvite: (.policy(\.invite), false)
        case .invitationList: (.always(.members), false)
        case .invitationAnswer: (.invitation, false)
        case .messageSend: (.policy(\.send), false)
        case .messageSendWhileFrozen: (.policy(\.moderate), false)
        case .messageEditOwn: (.policy(\.send), false)
        case .messageEditAny: (.policy(\.moderate), false)
        case .messageDeleteOwn: (.policy(\.read), false)
        case .messageDeleteAny: (.policy(\.moderate), false)
        case .historyRead: (.policy(\.read), true)
        case .readMark: (.membership, false)
        }
    }

    /// What guests may do, as far as the rules allow it to everyone: they look, and change nothing but their own
    /// name and that they are somewhere.
    private static let ofGuests: Set<Permission> = [
        .configRead, .userRead, .userUpdateSelf, .streamRead, .channelRead, .channelWatch, .memberLeave, .memberList, .historyRead,
    ]

    /// The refusal of a permission that concerns no channel, or the creation of one; nil when it is granted.
    static func refusal(of permission: Permission, for caller: Caller, creating policy: ChannelPolicy? = nil) -> RoostError? {
        if caller.role == .guest, !ofGuests.contains(permission) { return notPermitted(permission, "isn't for guests") }
        return switch entry(permission).rule {
        case .anyone: nil
        case .admins: caller.isAdmin ? nil : notPermitted(permission, "needs an admin's token")
        case .policy(let audience):
            switch policy?[keyPath: audience] {
            case .everyone: nil
            // Whether somebody may create a channel can depend on nothing in it.
            case .invited, .members, .membersOnly, .operators, .owners, .admins:
                caller.isAdmin ? nil : kindForbids(permission, policy?.type, "is for admins")
            case .nobody, nil: kindForbids(permission, policy?.type, "is for nobody")
            }
        case .always, .membership, .invitation: notPermitted(permission, "concerns a channel")
        }
    }

    /// The refusal of a permission in a channel; nil when it is granted.
    static func refusal(
        of permission: Permission, for caller: Caller, in channel: ChannelAccess, now: Timestamp
    ) -> RoostError? {
        guard isVisible(channel, to: caller, for: permission, now: now) else {
            // Who was invited knew of the channel then. The answer tells nothing of what became of it since.
            return permission == .invitationAnswer && channel.hadInvitation ? notInvited : .notFound("channel")
        }
        if caller.role == .guest, !ofGuests.contains(permission) { return notPermitted(permission, "isn't for guests") }
        if let until = channel.own?.bannedUntil, until > now, !caller.isAdmin, permission != .memberLeave {
            return RoostError(
                .banned, "You are banned from the channel.", rule: "\(permission.rawValue): not while banned", until: until)
        }
        let (rule, whenDeleted) = entry(permission)
        if channel.deletedAt != nil, !whenDeleted {
            return RoostError(.notPermitted, "The channel is deleted.", rule: "\(permission.rawValue): not in a deleted channel")
        }
        let refusal: RoostError? =
            switch rule {
            case .anyone: nil
            case .admins: caller.isAdmin ? nil : notPermitted(permission, "needs an admin's token")
            case .policy(let audience): self.refusal(of: permission, to: channel.policy[keyPath: audience], caller, in: channel)
            case .always(let audience): self.refusal(of: permission, to: audience, caller, in: channel)
            case .membership: channel.isMember ? nil : notMember(permission)
            case .invitation: channel.isMember || channel.invitation != nil ? nil : notInvited
            }
        return refusal ?? restriction(of: permission, for: caller, in: channel, now: now)
    }

    /// Whether the audience that a policy names holds the caller.
    static func refusal(
        of permission: Permission, to audience: ChannelPolicy.Audience, _ caller: Caller, in channel: ChannelAccess
    ) -> RoostError? {
        let wasOrIsMember = channel.deletedAt == nil ? channel.isMember : channel.wasMember
        // An invitation, or knowing the id, shows that the channel exists, and none of its messages.
        if isReading(permission), !wasOrIsMember, channel.policy.discovery == .membersOnly { return notMember(permission) }
        switch audience {
        case .everyone:
            let isFound = channel.policy.discovery == .everyone || wasOrIsMember || caller.keepsOrder
            return isFound || !isReading(permission) ? nil : notMember(permission)
        case .invited:
            if wasOrIsMember || caller.isAdmin { return nil }
            if isReading(permission) { return notMember(permission) }
            return channel.invitation != nil ? nil : inviteRequired
        case .members, .membersOnly:
            if wasOrIsMember || (audience == .members && caller.keepsOrder) { return nil }
            // Giving up a membership that isn't there changes nothing, so that leaving can be repeated; the invited see what they are invited to.
            if permission == .memberLeave || (permission == .channelRead && channel.invitation != nil) { return nil }
            return notMember(permission)
        case .operators:
            if caller.isAdmin || (caller.keepsOrder && !RoleDefinition.beyondOperators.contains(permission)) { return nil }
            guard wasOrIsMember, let own = channel.own else {
                return caller.keepsOrder ? notPermitted(permission, "needs a role that grants it") : notMember(permission)
            }
            if own.definition.permissions.contains(permission) || isOfEveryMember(permission) { return nil }
            return permission == .messageSend
                ? sendNotAllowed("operators") : notPermitted(permission, "needs a role that grants it")
        case .owners:
            if caller.isAdmin { return nil }
            guard wasOrIsMember, let role = channel.role else { return notMember(permission) }
            return role == .owner || isOfEveryMember(permission) ? nil : notPermitted(permission, "needs the role owner")
        case .admins:
            if caller.isAdmin || (wasOrIsMember && isOfEveryMember(permission)) { return nil }
            return permission == .messageSend ? sendNotAllowed("admins") : kindForbids(permission, channel.type, "is for admins")
        case .nobody:
            if wasOrIsMember, isOfEveryMember(permission) { return nil }
            return kindForbids(permission, channel.type, "is for nobody")
        }
    }

    /// Whether a permission is about what messages say.
    private static func isReading(_ permission: Permission) -> Bool {
        permission == .historyRead || permission == .channelWatch || permission == .messageDeleteOwn
    }

    /// Members know their channel and who else is in it, whomever else the policy lets find it.
    private static func isOfEveryMember(_ permission: Permission) -> Bool {
        permission == .channelRead || permission == .memberList
    }

    /// What a channel's and a member's state takes away for a time: writing.
    private static func restriction(
        of permission: Permission, for caller: Caller, in channel: ChannelAccess, now: Timestamp
    ) -> RoostError? {
        guard permission == .messageSend || permission == .messageEditOwn else { return nil }
        let isSilenced = channel.mutedUntil.map { $0 > now } ?? false
        if channel.isFrozen || isSilenced,
            refusal(of: .messageSendWhileFrozen, for: caller, in: channel, now: now) != nil
        {
            if channel.isFrozen {
                return RoostError(.frozen, "The channel is frozen.", rule: "\(permission.rawValue): not while frozen")
            }
            return RoostError(
                .channelMuted, "The channel is silenced.", rule: "\(permission.rawValue): not while silenced",
                until: channel.mutedUntil)
        }
        if let until = channel.own?.mutedUntil, until > now, !caller.isAdmin {
            return RoostError(
                .muted, "You are muted in the channel.", rule: "\(permission.rawValue): not while muted", until: until)
        }
        return nil
    }

    /// Whether the caller may know that a channel exists. Where not, every answer is the one for a channel that doesn't.
    private static func isVisible(
        _ channel: ChannelAccess, to caller: Caller, for permission: Permission, now: Timestamp
    ) -> Bool {
        if channel.isMember { return true }
        let discovery = channel.policy.discovery
        if caller.keepsOrder, discovery != .membersOnly { return caller.isAdmin || channel.deletedAt == nil || channel.wasMember }
        if channel.deletedAt != nil { return channel.wasMember }
        if channel.invitation != nil || discovery == .everyone { return true }
        if let until = channel.own?.bannedUntil, until > now { return true }
        // Who knows the id of a channel may try to join it, and is told what that takes (D-33, SB-19).
        return permission == .memberJoin && (channel.policy.join == .everyone || channel.policy.join == .invited)
    }

    /// Whether the caller's role stands above another: who removes or gives a role to whom (ledger §8.3).
    static func refusal(
        of permission: Permission, for caller: Caller, in channel: ChannelAccess, towards rank: Int
    ) -> RoostError? {
        if caller.keepsOrder || (channel.own?.definition.rank ?? -1) > rank { return nil }
        return notPermitted(permission, "needs a role above that one")
    }

    /// What a caller may do in a channel now, in the order of `Permission.allCases`.
    static func capabilities(of caller: Caller, in channel: ChannelAccess, now: Timestamp) -> [Permission] {
        Permission.ofChannel.filter { refusal(of: $0, for: caller, in: channel, now: now) == nil }
    }

    // MARK: Refusals

    private static func notPermitted(_ permission: Permission, _ reason: String) -> RoostError {
        RoostError(.notPermitted, "\(permission.rawValue) \(reason).", rule: "\(permission.rawValue) \(reason)")
    }

    private static func notMember(_ permission: Permission) -> RoostError {
        RoostError(
            .notMember, "\(permission.rawValue) is for members of the channel.", rule: "\(permission.rawValue) is for members")
    }

    private static let notInvited = RoostError(
        .notInvited, "You have no invitation to the channel.", rule: "invitation.answer needs an invitation")

    private static let inviteRequired = RoostError(
        .inviteRequired, "The channel is private: it takes an invitation.", rule: "member.join needs an invitation")

    private static func sendNotAllowed(_ who: String) -> RoostError {
        RoostError(.sendNotAllowed, "Only \(who) send in this channel.", rule: "message.send is for \(who)")
    }

    private static func kindForbids(_ permission: Permission, _ type: ChannelType?, _ reason: String) -> RoostError {
        let type = type?.rawValue ?? "this"
        return RoostError(
            .kindForbids, "Channels of the type \(type) don't allow \(permission.rawValue).",
            rule: "\(permission.rawValue) in \(type) \(reason)")
    }
}

extension RoleDefinition {
    /// What a role can grant and an operator's doesn't. The app's moderators do what operators do, and lack it too.
    fileprivate static let beyondOperators = Set(Permission.grantable).subtracting(builtIn(.operator)?.permissions ?? [])
}

extension Caller {
    /// Whether the caller does in every channel what an operator does there.
    var keepsOrder: Bool { isAdmin || role == .moderator }
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
    mutating func require(_ permission: Permission, in channel: ChannelID) throws -> ChannelAccess {
        guard let access = try transaction.access(to: channel, of: caller.user, for: permission) else {
            throw RoostError.notFound("channel")
        }
        standsOn(access)
        try require(permission, in: access)
        return access
    }

    /// Throws unless the caller has a permission in a channel that was looked up before.
    func require(_ permission: Permission, in access: ChannelAccess) throws {
        if let refusal = refusal(of: permission, in: access) { throw refusal }
    }

    /// The refusal of a permission in a channel that was looked up before; nil when it is granted.
    func refusal(of permission: Permission, in access: ChannelAccess) -> RoostError? {
        Permissions.refusal(of: permission, for: caller, in: access, now: now)
    }

    /// What the caller may do in a channel now.
    func capabilities(in access: ChannelAccess) -> [Permission] {
        Permissions.capabilities(of: caller, in: access, now: now)
    }

    /// What ordinary users may do in a channel, by the role that they have there: what is told when a channel's change changes it for all.
    func capabilitiesByRole(in access: ChannelAccess) throws -> [String: [Permission]] {
        var byRole: [String: [Permission]] = [:]
        for definition in try transaction.roles() {
            var access = access
            access.own = ChannelAccess.OwnMember(role: definition.role, definition: definition)
            byRole[definition.role.rawValue] = Permissions.capabilities(of: Caller(user: caller.user), in: access, now: now)
        }
        return byRole
    }
}
