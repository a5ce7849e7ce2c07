public import RoostAPI

extension SetMemberRole: Handled {
    /// A new owner turns the former one into an operator.
    public func scope(for caller: Caller) -> Scope { .channel(channel, users: Set(users).union([caller.user])).findingUsers }

    public func handle(in context: inout Context) throws -> MemberResults {
        var access = try context.require(.memberSetRole, in: channel)
        guard let definition = try context.transaction.definedRole(role) else {
            throw RoostError(.notFound, "There is no role \(role).", field: "role")
        }
        if let refusal = Permissions.refusal(ofGiving: definition, for: context.caller.role, in: access.facts) { throw refusal }

        var results: [MemberResult] = []
        var changed: [AffectedMember] = []
        for user in users {
            guard let member = try context.transaction.member(user, of: access) else {
                results.append(MemberResult(userId: user, outcome: .notMember))
                continue
            }
            if member.row.role == role {
                results.append(MemberResult(userId: user, outcome: .unchanged))
                continue
            }
            let rank = member.definition.rank
            // Giving up one's own role requires no rank: it only lowers it.
            let isOwn = user == context.caller.user && definition.rank < rank
            if !isOwn, let refusal = context.refusal(of: .memberSetRole, in: access, towards: rank) {
                results.append(.refused(user, refusal))
            } else {
                changed.append(AffectedMember(user: user, before: member))
                results.append(MemberResult(userId: user, outcome: .changed))
            }
        }
        var roles = changed.map { (member: $0, role: definition) }
        if role == .owner, !changed.isEmpty, let below = RoleDefinition.builtIn(.operator) {
            for owner in try context.transaction.members(of: access, role: .owner) { roles.append((owner, below)) }
        }
        try context.setRoles(roles, in: &access)
        return MemberResults(results: results)
    }
}

extension Transaction {
    fileprivate func members(of access: ChannelAccess, role: ChannelRole) throws -> [AffectedMember] {
        let sql: SQL = """
            SELECT user_id FROM members WHERE channel_id = \(access.channelId) AND role = \(role) AND role <> 'member' ORDER BY user_id
            """
        let users: [UserID] = try rows(sql) { $0.identifier() }
        return try users.compactMap { user in try member(user, of: access).map { AffectedMember(user: user, before: $0) } }
    }
}

extension Context {
    /// Gives members roles in one change of the channel, and sends each member their capabilities.
    fileprivate mutating func setRoles(
        _ changes: [(member: AffectedMember, role: RoleDefinition)], in access: inout ChannelAccess
    ) throws {
        guard !changes.isEmpty else { return }
        let channel = access.channelId
        let seq = access.counters.advance(at: now)
        var members: [Member] = []
        var changed: [(user: UserID, updated: ChannelAccess)] = []
        for (member, definition) in changes {
            var after = member.before
            after.row.role = definition.role
            after.row.userSeq = try advanceStream(of: member.user)
            after.definition = definition
            try transaction.perform(
                """
                UPDATE members SET role = \(after.row.role), change_seq = \(seq), user_seq = \(after.row.userSeq)
                WHERE channel_id = \(channel) AND user_id = \(member.user)
                """)
            members.append(Member(member.user, after.row, changeSeq: seq))
            var updated = access
            updated.member = after
            changed.append((member.user, updated))
        }
        try moveStream(of: channel, to: access.counters)
        for (member, definition) in changes { notify(.role(member.user, channel, definition.role, at: seq)) }
        try notify(.memberRoleChanged, in: access, seq: seq, Rows(counters: access.counters, members))
        for (user, updated) in changed {
            guard let membership = updated.membership else { continue }
            notify(
                .memberRoleChanged, user: user, seq: membership.userSeq,
                Rows(ownCapabilities: [channel.rawValue: capabilities(of: user, in: updated)], [membership]))
        }
    }
}
