import RoostAPI

/// Rules for changing a channel's policy and giving roles: callers can't give what they don't hold, nor take a right from a
/// role at or above their own. Admins are exempt; they manage types and roles anyway.
extension Permissions {
    /// Returns the refusal of giving a member a role: it must be one that the caller could have. Ownership is handed over by the owner.
    ///
    /// So operators make others operators, as in Sendbird, but can't take that back: ``refusal(of:for:in:towards:)``.
    static func refusal(ofGiving role: RoleDefinition, for appRole: AppRole, in facts: Facts) -> RoostError? {
        if appRole.isAdmin { return nil }
        if role.role == .owner, facts.wasMember, facts.own?.definition.role == .owner { return nil }
        let isWithinOwn = [facts.own?.definition, appRole.actsAsOperator ? RoleDefinition.builtIn(.operator) : nil].contains {
            own in
            guard let own else { return false }
            return role.rank <= own.rank && Set(role.permissions).isSubset(of: own.permissions)
        }
        if isWithinOwn, role.role != .owner { return nil }
        let reason = "can't give a role with a higher rank or more permissions than the caller's own"
        return RoostError(.notPermitted, "member.setRole \(reason).", field: "role", rule: "member.setRole \(reason)")
    }

    /// A subject of a policy: a non-member, or a member by role.
    private enum Subject {
        case outsider(AppRole)
        case member(RoleDefinition)
    }

    /// Returns the refusal of a new policy for a channel; nil if the caller may make the change.
    ///
    /// - Parameters:
    ///   - facts: The channel as the caller sees it, with the new policy.
    ///   - roles: Every role that members can have.
    ///   - field: The request's field, for the refusal.
    static func refusal(
        ofChanging before: ChannelPolicy, in facts: Facts, by role: AppRole, roles: [RoleDefinition], field: String
    ) -> RoostError? {
        if role.isAdmin || before == facts.policy { return nil }
        var own = facts
        // The app's moderators may do what an operator may.
        if role.actsAsOperator, facts.own.map({ $0.definition.rank < RoleDefinition.operatorRank }) ?? true {
            own.own = RoleDefinition.builtIn(.operator).map { Facts.Own(definition: $0) }
        }
        let rank = own.own?.definition.rank ?? 0
        let subjects = [.outsider(.user), .outsider(.moderator), .outsider(.admin)] + roles.map(Subject.member)
        for permission in Permission.ofChannel {
            guard case .policy(let audience) = permission.row.rule,
                before[keyPath: audience] != facts.policy[keyPath: audience]
            else { continue }
            let isHeld = reason(against: permission, to: before[keyPath: audience], role, in: own) == nil
            for subject in subjects {
                let had = holds(permission, by: before[keyPath: audience], subject, in: facts)
                let has = holds(permission, by: facts.policy[keyPath: audience], subject, in: facts)
                if has, !had, !isHeld { return notGiven(permission, field) }
                if had, !has, isAtOrAbove(rank, subject) { return notTaken(permission, field) }
            }
        }
        return nil
    }

    private static func holds(
        _ permission: Permission, by audience: ChannelPolicy.Audience, _ subject: Subject, in facts: Facts
    ) -> Bool {
        var facts = facts
        facts.isInvited = false
        switch subject {
        case .outsider(let role):
            facts.own = nil
            return reason(against: permission, to: audience, role, in: facts) == nil
        case .member(let definition):
            facts.own = Facts.Own(definition: definition)
            return reason(against: permission, to: audience, .user, in: facts) == nil
        }
    }

    /// Admins are above all roles of a channel. The app's moderators act as operators, and have no rank of their own.
    private static func isAtOrAbove(_ rank: Int, _ subject: Subject) -> Bool {
        switch subject {
        case .outsider(let role): role == .admin
        case .member(let definition): definition.rank >= rank
        }
    }

    private static func notGiven(_ permission: Permission, _ field: String) -> RoostError {
        RoostError(
            .notPermitted, "You can't give others \(permission.rawValue), which you don't hold yourself.", field: field,
            rule: "channel.updatePolicy: nobody can give \(permission.rawValue) without holding it")
    }

    private static func notTaken(_ permission: Permission, _ field: String) -> RoostError {
        RoostError(
            .notPermitted, "You can't take \(permission.rawValue) from admins, or from a role at or above your own.", field: field,
            rule: "channel.updatePolicy: nobody can take \(permission.rawValue) from a role at or above their own")
    }
}

extension RoleDefinition {
    static let operatorRank = builtIn(.operator)?.rank ?? 0
}

extension Context {
    /// Throws unless the caller may replace a channel's policy with this one.
    func requireGrantable(_ policy: ChannelPolicy, over before: ChannelPolicy, in facts: Permissions.Facts, field: String) throws {
        guard policy != before, !caller.isAdmin else { return }
        let roles = try transaction.roles()
        if let refusal = Permissions.refusal(ofChanging: before, in: facts, by: caller.role, roles: roles, field: field) {
            throw refusal
        }
    }

    /// Throws unless the caller, its future owner, may create a channel with a policy other than its type's.
    func requireGrantable(_ policy: ChannelPolicy, ofNewChannelOver typePolicy: ChannelPolicy, field: String) throws {
        guard policy != typePolicy, !caller.isAdmin else { return }
        let owner = RoleDefinition.builtIn(.owner).map { Permissions.Facts.Own(definition: $0) }
        try requireGrantable(policy, over: typePolicy, in: Permissions.Facts(policy: policy, own: owner), field: field)
    }
}
