import RoostAPI

/// The permission rules. No handler decides by itself.
///
/// `PermissionTable.swift` in `RoostAPI` has a row for each permission; here the rows are applied to a role in the app and, if there is
/// one, a channel. The answer is nil or the refusal to throw, which names the rule. A channel's rules apply in this order: whether the
/// caller may know of it, guests, a ban, its deletion, its policy and the caller's role, and last a freeze, a silence and a mute.
public enum Permissions {
    /// The facts for the table: a channel's state, and one user's place in it.
    struct Facts: Equatable {
        /// The channel's effective policy, with its type's name.
        var policy: ChannelPolicy
        var isDeleted = false
        var isFrozen = false
        var silencedUntil: Timestamp?
        /// The user's membership, current or former; nil for one who never was a member.
        var own: Own?
        /// Whether the user has a pending invitation.
        var isInvited = false
        /// Whether the user had one that was declined or withdrawn.
        var wasInvited = false

        /// A user's membership in a channel.
        struct Own: Equatable {
            /// What the role may do.
            var definition: RoleDefinition
            /// Of a deleted channel: whether the user was one when it was deleted.
            var isMember = true
            var mutedUntil: Timestamp?
            var bannedUntil: Timestamp?
        }

        var isMember: Bool { !isDeleted && wasMember }
        var wasMember: Bool { own?.isMember == true }
    }

    /// Returns the refusal of a permission that concerns no channel, or the creation of one; nil if it is granted.
    static func refusal(of permission: Permission, for role: AppRole, creating policy: ChannelPolicy? = nil) -> RoostError? {
        let row = permission.row
        if role == .guest, !row.forGuests { return notForGuests(permission) }
        return switch row.rule {
        case .anyone: nil
        case .admins: role.isAdmin ? nil : notPermitted(permission, "needs an admin's token")
        case .creators:
            switch policy?.create {
            case .everyone: nil
            // The right to create a channel can't depend on anything in it.
            case .invited, .members, .membersOnly, .operators, .owners, .admins:
                role.isAdmin ? nil : kindForbids(permission, policy?.type, "is for admins")
            case .nobody, nil: kindForbids(permission, policy?.type, "is for nobody")
            }
        case .policy, .always, .membership, .invitation: notPermitted(permission, "concerns a channel")
        }
    }

    /// Returns the refusal of a permission in a channel; nil if it is granted.
    static func refusal(of permission: Permission, for role: AppRole, in facts: Facts, now: Timestamp) -> RoostError? {
        let row = permission.row
        guard isVisible(facts, to: role, row, now: now) else {
            // Invited users knew of the channel then. The answer reveals nothing that has happened since.
            return row.traits.contains(.afterwards) && facts.wasInvited ? notInvited : .notFound("channel")
        }
        if role == .guest, !row.forGuests { return notForGuests(permission) }
        if let until = facts.own?.bannedUntil, until > now, !role.isAdmin, !row.traits.contains(.banned) {
            return RoostError(
                .banned, "You are banned from the channel.", rule: "\(permission.rawValue): not while banned", until: until)
        }
        if facts.isDeleted, !row.whenDeleted {
            return RoostError(.notPermitted, "The channel is deleted.", rule: "\(permission.rawValue): not in a deleted channel")
        }
        let refusal: RoostError? =
            switch row.rule {
            case .policy(let audience): self.refusal(of: permission, to: facts.policy[keyPath: audience], role, in: facts)
            case .always(let audience): self.refusal(of: permission, to: audience, role, in: facts)
            case .membership: facts.isMember ? nil : notMember(permission)
            case .invitation: facts.isMember || facts.isInvited ? nil : notInvited
            case .anyone, .admins, .creators: self.refusal(of: permission, for: role)
            }
        if let refusal { return refusal }
        return row.whileFrozen ? nil : restriction(of: permission, for: role, in: facts, now: now)
    }

    /// Returns the refusal of a permission to a user outside a policy's audience; nil for a user in it.
    static func refusal(
        of permission: Permission, to audience: ChannelPolicy.Audience, _ role: AppRole, in facts: Facts
    ) -> RoostError? {
        let row = permission.row
        let isReading = row.traits.contains(.reading)
        let isOfEveryMember = row.traits.contains(.members)
        let wasOrIsMember = facts.wasMember
        if row.traits.contains(.admins) {
            guard audience != .membersOnly, audience != .nobody else {
                return kindForbids(permission, facts.policy.type, "isn't for admins")
            }
            guard role.isAdmin else { return notPermitted(permission, "needs an admin's token") }
        }
        if isReading, !wasOrIsMember, facts.policy.discovery == .membersOnly { return notMember(permission) }
        switch audience {
        case .everyone:
            let isFound = facts.policy.discovery == .everyone || wasOrIsMember || role.actsAsOperator
            return isFound || !isReading ? nil : notMember(permission)
        case .invited:
            if wasOrIsMember || role.isAdmin { return nil }
            if isReading { return notMember(permission) }
            return facts.isInvited ? nil : inviteRequired
        case .members, .membersOnly:
            if wasOrIsMember || (audience == .members && role.actsAsOperator) { return nil }
            if row.traits.contains(.outside) || (row.traits.contains(.invited) && facts.isInvited) { return nil }
            return notMember(permission)
        case .operators:
            // The app's moderators do what operators do, and nothing beyond it.
            if role.isAdmin || (role.actsAsOperator && row.grantedBy != .owner) { return nil }
            guard wasOrIsMember, let own = facts.own else {
                return role.actsAsOperator ? notPermitted(permission, "needs a role that grants it") : notMember(permission)
            }
            if own.definition.permissions.contains(permission) || isOfEveryMember { return nil }
            return sendNotAllowed(row, "operators") ?? notPermitted(permission, "needs a role that grants it")
        case .owners:
            if role.isAdmin { return nil }
            guard wasOrIsMember, let own = facts.own else { return notMember(permission) }
            return own.definition.role == .owner || isOfEveryMember ? nil : notPermitted(permission, "needs the role owner")
        case .admins:
            if role.isAdmin || (wasOrIsMember && isOfEveryMember) { return nil }
            return sendNotAllowed(row, "admins") ?? kindForbids(permission, facts.policy.type, "is for admins")
        case .nobody:
            if wasOrIsMember, isOfEveryMember { return nil }
            return kindForbids(permission, facts.policy.type, "is for nobody")
        }
    }

    /// Returns the refusal by a temporary state of the channel or the member.
    private static func restriction(
        of permission: Permission, for role: AppRole, in facts: Facts, now: Timestamp
    ) -> RoostError? {
        let isSilenced = facts.silencedUntil.map { $0 > now } ?? false
        if facts.isFrozen || isSilenced, refusal(of: .messageSendWhileFrozen, for: role, in: facts, now: now) != nil {
            if facts.isFrozen {
                return RoostError(.frozen, "The channel is frozen.", rule: "\(permission.rawValue): not while frozen")
            }
            return RoostError(
                .channelMuted, "The channel is silenced.", rule: "\(permission.rawValue): not while silenced",
                until: facts.silencedUntil)
        }
        if let until = facts.own?.mutedUntil, until > now, !role.isAdmin {
            return RoostError(
                .muted, "You are muted in the channel.", rule: "\(permission.rawValue): not while muted", until: until)
        }
        return nil
    }

    /// Returns whether a user may know that a channel exists. If not, every answer is the one for a channel that doesn't.
    private static func isVisible(_ facts: Facts, to role: AppRole, _ row: PermissionRow, now: Timestamp) -> Bool {
        if facts.isMember { return true }
        let (discovery, join) = (facts.policy.discovery, facts.policy.join)
        if role.actsAsOperator, discovery != .membersOnly { return role.isAdmin || !facts.isDeleted || facts.wasMember }
        if facts.isDeleted { return facts.wasMember }
        if facts.isInvited || discovery == .everyone { return true }
        if let until = facts.own?.bannedUntil, until > now { return true }
        // Guests can't join, so the answer would tell them that the channel exists and nothing that helps.
        return row.traits.contains(.byID) && (join == .everyone || join == .invited) && (role != .guest || row.forGuests)
    }

    /// Returns the refusal if the caller's role isn't above a member's, for removing members and giving roles (ledger §8.3).
    static func refusal(of permission: Permission, for role: AppRole, in facts: Facts, towards rank: Int) -> RoostError? {
        if role.actsAsOperator || (facts.own?.definition.rank ?? -1) > rank { return nil }
        return notPermitted(permission, "needs a role above that one")
    }

    /// Returns a user's current permissions in a channel, in the order of `Permission.allCases`.
    static func capabilities(of role: AppRole, in facts: Facts, now: Timestamp) -> [Permission] {
        Permission.ofChannel.filter { refusal(of: $0, for: role, in: facts, now: now) == nil }
    }

    /// A user's capabilities in the channels of a page. Most of these are alike: the same policy, the same role and no restriction.
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

    // MARK: Refusals

    private static func notPermitted(_ permission: Permission, _ reason: String) -> RoostError {
        RoostError(.notPermitted, "\(permission.rawValue) \(reason).", rule: "\(permission.rawValue) \(reason)")
    }

    private static func notForGuests(_ permission: Permission) -> RoostError { notPermitted(permission, "isn't for guests") }

    private static func notMember(_ permission: Permission) -> RoostError {
        RoostError(
            .notMember, "\(permission.rawValue) is for members of the channel.", rule: "\(permission.rawValue) is for members")
    }

    private static let notInvited = RoostError(
        .notInvited, "You have no invitation to the channel.", rule: "invitation.answer needs an invitation")

    private static let inviteRequired = RoostError(
        .inviteRequired, "The channel is private: you need an invitation.", rule: "member.join needs an invitation")

    /// Returns the refusal of sending, which has a code of its own; nil for another permission.
    private static func sendNotAllowed(_ row: PermissionRow, _ who: String) -> RoostError? {
        guard row.traits.contains(.sending) else { return nil }
        return RoostError(.sendNotAllowed, "Only \(who) send in this channel.", rule: "message.send is for \(who)")
    }

    private static func kindForbids(_ permission: Permission, _ type: ChannelType?, _ reason: String) -> RoostError {
        let type = type?.rawValue ?? "this"
        return RoostError(
            .kindForbids, "Channels of the type \(type) don't allow \(permission.rawValue).",
            rule: "\(permission.rawValue) in \(type) \(reason)")
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

    /// Returns a channel as the caller sees it. Throws unless the caller has the permission in it.
    mutating func require(_ permission: Permission, in channel: ChannelID) throws -> ChannelAccess {
        guard let access = try transaction.access(to: channel, of: caller.user, for: permission) else {
            throw RoostError.notFound("channel")
        }
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
