import RoostAPI

/// The permission rules. No handler decides by itself.
///
/// `PermissionTable.swift` in `RoostAPI` has a row for each permission; here the rows are applied to a role in the app and, if
/// there is one, a channel. The answer is nil or the refusal to throw, which names the rule. A channel's rules apply in this
/// order: whether the caller may know of it, guests, a ban, its deletion, its policy and the caller's role, and last a freeze,
/// a silence and a mute.
public enum Permissions {
    /// The facts for the table: a channel's state, and one user's place in it.
    struct Facts: Equatable {
        /// The channel's effective policy, with its type's name.
        var policy: ChannelPolicy
        var isDeleted = false
        var isFrozen = false
        var silencedUntil: Timestamp?
        /// The user's membership, current or former; nil if there was never one.
        var own: Own?
        /// Whether the user has a pending invitation.
        var isInvited = false
        /// Whether the user had an invitation that was declined or withdrawn.
        var wasInvited = false

        /// A user's membership in a channel.
        struct Own: Equatable {
            /// The role, with its permissions.
            var definition: RoleDefinition
            /// In a deleted channel: whether the user was a member when it was deleted.
            var isMember = true
            var mutedUntil: Timestamp?
            var bannedUntil: Timestamp?
        }

        var isMember: Bool { !isDeleted && wasMember }
        var wasMember: Bool { own?.isMember == true }
    }

    /// Returns the refusal of a permission that concerns no channel, or the creation of one; nil if it is granted.
    static func refusal(of permission: Permission, for role: AppRole, creating policy: ChannelPolicy? = nil) -> RoostError? {
        reason(against: permission, for: role, creating: policy).map { $0.error(of: permission, in: policy?.type) }
    }

    /// Returns the refusal of a permission in a channel; nil if it is granted. A user who may not read a message may not change
    /// it either, and gets that refusal.
    static func refusal(of permission: Permission, for role: AppRole, in facts: Facts, now: Timestamp) -> RoostError? {
        if permission.row.traits.contains(.changing),
            let refusal = refusal(of: .historyRead, for: role, in: facts, now: now)
        {
            return refusal
        }
        return reason(against: permission, for: role, in: facts, now: now).map {
            $0.error(of: permission, in: facts.policy.type).withRest(at: now)
        }
    }

    // MARK: The rules

    private static func reason(
        against permission: Permission, for role: AppRole, creating policy: ChannelPolicy? = nil
    ) -> Refusal? {
        let row = permission.row
        if role == .guest, !row.forGuests { return .notForGuests }
        return switch row.rule {
        case .anyone: nil
        case .admins: role.isAdmin ? nil : .needsAdmin
        case .creators:
            switch policy?.create {
            case .everyone: nil
            // The right to create a channel can't depend on anything in it.
            case .invited, .members, .membersOnly, .operators, .owners, .admins: role.isAdmin ? nil : .kindForbids("is for admins")
            case .nobody, nil: .kindForbids("is for nobody")
            }
        case .policy, .always, .membership, .invitation: .notPermitted("concerns a channel")
        }
    }

    private static func reason(
        against permission: Permission, for role: AppRole, in facts: Facts, now: Timestamp
    ) -> Refusal? {
        let row = permission.row
        guard isVisible(facts, to: role, row, now: now) else {
            // Invited users knew of the channel at the time. The answer reveals nothing that has happened since.
            return row.traits.contains(.afterwards) && facts.wasInvited ? .notInvited : .notFound
        }
        if role == .guest, !row.forGuests { return .notForGuests }
        if let until = facts.own?.bannedUntil, until > now, !role.isAdmin, !row.traits.contains(.banned) {
            return .banned(until: until)
        }
        if facts.isDeleted, !row.whenDeleted { return .deleted }
        let reason: Refusal? =
            switch row.rule {
            case .policy(let audience): self.reason(against: permission, to: facts.policy[keyPath: audience], role, in: facts)
            case .always(let audience): self.reason(against: permission, to: audience, role, in: facts)
            case .membership: facts.isMember ? nil : .notMember
            case .invitation: facts.isMember || facts.isInvited ? nil : .notInvited
            case .anyone, .admins, .creators: self.reason(against: permission, for: role)
            }
        if let reason { return reason }
        return row.whileFrozen ? nil : restriction(for: role, in: facts, now: now)
    }

    /// Returns why a policy refuses a permission to a user outside its audience; nil for a user in it.
    static func reason(
        against permission: Permission, to audience: ChannelPolicy.Audience, _ role: AppRole, in facts: Facts
    ) -> Refusal? {
        let row = permission.row
        let isReading = row.traits.contains(.reading)
        let isOfEveryMember = row.traits.contains(.members)
        let wasOrIsMember = facts.wasMember
        if row.traits.contains(.admins) {
            guard audience != .membersOnly, audience != .nobody else {
                return .kindForbids("isn't for admins")
            }
            guard role.isAdmin else { return .needsAdmin }
        }
        if isReading, !wasOrIsMember, facts.policy.discovery == .membersOnly { return .notMember }
        // Users an invitation lets in may look first, whoever else can find the channel.
        if row.traits.contains(.invited), facts.isInvited { return nil }
        switch audience {
        case .everyone:
            let isFound = facts.policy.discovery == .everyone || wasOrIsMember || role.actsAsOperator
            return isFound || !isReading ? nil : .notMember
        case .invited:
            if wasOrIsMember || role.isAdmin { return nil }
            if isReading { return .notMember }
            return facts.isInvited ? nil : .inviteRequired
        case .members, .membersOnly:
            if wasOrIsMember || (audience == .members && role.actsAsOperator) { return nil }
            if row.traits.contains(.outside) { return nil }
            return .notMember
        case .operators:
            // The app's moderators may do what operators may, and nothing beyond it.
            if role.isAdmin || (role.actsAsOperator && row.grantedBy != .owner) { return nil }
            guard wasOrIsMember, let own = facts.own else {
                return role.actsAsOperator ? .needsRole : .notMember
            }
            if own.definition.permissions.contains(permission) || isOfEveryMember { return nil }
            return row.traits.contains(.sending) ? .sendNotAllowed("operators") : .needsRole
        case .owners:
            if role.isAdmin { return nil }
            guard wasOrIsMember, let own = facts.own else { return .notMember }
            return own.definition.role == .owner || isOfEveryMember ? nil : .notPermitted("needs the role owner")
        case .admins:
            if role.isAdmin || (wasOrIsMember && isOfEveryMember) { return nil }
            return row.traits.contains(.sending) ? .sendNotAllowed("admins") : .kindForbids("is for admins")
        case .nobody:
            if wasOrIsMember, isOfEveryMember { return nil }
            return .kindForbids("is for nobody")
        }
    }

    /// Returns the temporary state of the channel or the member that rules it out.
    private static func restriction(for role: AppRole, in facts: Facts, now: Timestamp) -> Refusal? {
        let isSilenced = facts.silencedUntil.map { $0 > now } ?? false
        if facts.isFrozen || isSilenced, reason(against: .messageSendWhileFrozen, for: role, in: facts, now: now) != nil {
            return facts.isFrozen ? .frozen : .silenced(until: facts.silencedUntil)
        }
        if let until = facts.own?.mutedUntil, until > now, !role.isAdmin { return .muted(until: until) }
        return nil
    }

    /// Returns whether a user may know that a channel exists. If not, every answer is that for a nonexistent channel.
    private static func isVisible(_ facts: Facts, to role: AppRole, _ row: PermissionRow, now: Timestamp) -> Bool {
        if facts.isMember { return true }
        let (discovery, join) = (facts.policy.discovery, facts.policy.join)
        if role.actsAsOperator, discovery != .membersOnly { return role.isAdmin || !facts.isDeleted || facts.wasMember }
        if facts.isDeleted { return facts.wasMember }
        if facts.isInvited || discovery == .everyone { return true }
        if let until = facts.own?.bannedUntil, until > now { return true }
        // Guests can't join: the answer would only reveal to them that the channel exists.
        return row.traits.contains(.byID) && (join == .everyone || join == .invited) && (role != .guest || row.forGuests)
    }

    /// Returns the refusal if the caller's role isn't above a member's, for removing members and giving roles (ledger §8.3).
    /// The app's moderators rank above operators too, but not above owners.
    static func refusal(of permission: Permission, for role: AppRole, in facts: Facts, towards rank: Int) -> RoostError? {
        if role.isAdmin || (facts.own?.definition.rank ?? -1) > rank { return nil }
        if role.actsAsOperator, rank <= RoleDefinition.operatorRank { return nil }
        return Refusal.notPermitted("needs a role above that one").error(of: permission, in: facts.policy.type)
    }

    /// Returns a user's current permissions in a channel, in the order of `Permission.allCases`.
    static func capabilities(of role: AppRole, in facts: Facts, now: Timestamp) -> [Permission] {
        let mayRead = reason(against: .historyRead, for: role, in: facts, now: now) == nil
        return Permission.ofChannel.filter { permission in
            if !mayRead, permission.row.traits.contains(.changing) { return false }
            return reason(against: permission, for: role, in: facts, now: now) == nil
        }
    }

    /// A user's capabilities in the channels of a page. Most are alike: the same policy, the same role and no restriction.
    struct CapabilityCache {
        let role: AppRole
        let now: Timestamp
        private var known: [(facts: Facts, capabilities: [Permission])] = []

        init(of role: AppRole, now: Timestamp) {
            self.role = role
            self.now = now
        }

        mutating func capabilities(in facts: Facts) -> [Permission] {
            if let same = known.first(where: { $0.facts == facts }) { return same.capabilities }
            let capabilities = Permissions.capabilities(of: role, in: facts, now: now)
            known.append((facts, capabilities))
            return capabilities
        }
    }
}

extension AppRole {
    /// Whether it is the console or the app's own backend: they may do everything that a channel type doesn't forbid to all.
    var isAdmin: Bool { self == .admin || self == .service }

    /// Whether it acts as an operator in every channel.
    var actsAsOperator: Bool { isAdmin || self == .moderator }
}

extension Context {
    /// Throws unless the caller has a permission that concerns no channel.
    func require(_ permission: Permission) throws {
        if let refusal = Permissions.refusal(of: permission, for: caller.role) { throw refusal }
    }

    /// Throws unless the caller may create channels of a type.
    func require(_ permission: Permission, creating policy: ChannelPolicy) throws {
        if let refusal = Permissions.refusal(of: permission, for: caller.role, creating: policy) { throw refusal }
    }

    /// Throws unless the caller will have a permission in a channel that they are about to create.
    ///
    /// - Parameter role: Their future role there; nil if they don't become a member.
    func require(_ permission: Permission, inNewChannelWith policy: ChannelPolicy, as role: ChannelRole?) throws {
        let own = try role.map { Permissions.Facts.Own(definition: try transaction.role($0)) }
        let facts = Permissions.Facts(policy: policy, own: own)
        if let refusal = Permissions.refusal(of: permission, for: caller.role, in: facts, now: now) { throw refusal }
    }

    /// Returns a channel as the caller sees it. Throws unless the caller has the permission in it.
    ///
    /// A channel of the scope is locked from here on: decisions based on it, and writes that concern only the caller, hold until the commit.
    mutating func require(_ permission: Permission, in channel: ChannelID) throws -> ChannelAccess {
        guard let access = try transaction.access(to: channel, of: caller.user, for: permission) else {
            throw RoostError.notFound("channel")
        }
        if scope.channels.contains(access.channelId) { try requireHeld(access.channelId) }
        recordCallerSeq(of: access)
        try require(permission, in: access)
        return access
    }

    /// Throws unless the caller has a permission in a channel already looked up.
    func require(_ permission: Permission, in access: ChannelAccess) throws {
        if let refusal = refusal(of: permission, in: access) { throw refusal }
    }

    /// Returns the refusal of a permission in a channel already looked up; nil if it is granted.
    func refusal(of permission: Permission, in access: ChannelAccess) -> RoostError? {
        Permissions.refusal(of: permission, for: caller.role, in: access.facts, now: now)
    }

    /// Returns whether a channel's member may read it with every token, as an ordinary user of the app. What a user's own stream carries
    /// reaches all of their connections, and the caller's role in the app is only that of one.
    func mayReadAsUser(_ access: ChannelAccess) -> Bool {
        Permissions.refusal(of: .historyRead, for: .user, in: access.facts, now: now) == nil
    }

    /// Returns the refusal of acting on a member whose role has a rank; nil if the caller's role is above it.
    func refusal(of permission: Permission, in access: ChannelAccess, towards rank: Int) -> RoostError? {
        Permissions.refusal(of: permission, for: caller.role, in: access.facts, towards: rank)
    }

    /// Returns the caller's current permissions in a channel.
    func capabilities(in access: ChannelAccess) -> [Permission] {
        Permissions.capabilities(of: caller.role, in: access.facts, now: now)
    }

    /// Returns ordinary users' permissions in a channel by their role there, for events that change them for all.
    func capabilitiesByRole(in access: ChannelAccess) throws -> [String: [Permission]] {
        var facts = access.facts
        var byRole: [String: [Permission]] = [:]
        for definition in try transaction.roles() {
            facts.own = Permissions.Facts.Own(definition: definition)
            byRole[definition.role.rawValue] = Permissions.capabilities(of: .user, in: facts, now: now)
        }
        return byRole
    }
}
