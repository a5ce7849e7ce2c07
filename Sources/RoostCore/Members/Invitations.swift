public import RoostAPI

/// Invitations: a row of their own until they are answered (ledger §8.3).
///
/// What happens to one is told to the two whom it concerns, each on their own stream; where the type lets members hear of it, also on the
/// channel's. Between two people and a channel there is one row; of all rows of a user in a channel at most one waits for an answer.

extension InviteMembers: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel, users: Set(users).union([caller.user])).findingUsers }

    public func handle(in context: inout Context) throws -> MemberResults {
        var access = try context.require(.memberInvite, in: channel)
        var room = access.policy.maxMembers - access.counters.memberCount
        var waiting = try context.transaction.pendingInvitationCount(into: access.channelId)
        var results: [MemberResult] = []
        var entering: [Newcomer] = []
        var invited: [UserID] = []
        for user in users {
            guard var newcomer = try context.transaction.newcomer(user, to: access.channelId) else {
                results.append(.refused(user, .noSuchUser))
                continue
            }
            var outcome = MemberResult(userId: user, outcome: .invited)
            if newcomer.isMember {
                outcome.outcome = .alreadyMember
            } else if newcomer.invitation != nil {
                outcome.outcome = .alreadyInvited
            } else if let refusal = try context.refusal(ofEntering: newcomer, in: access, room: room) {
                outcome =
                    refusal.code == .channelLimit
                    ? MemberResult(userId: user, outcome: .autoDeclined) : .refused(user, refusal)
            } else if newcomer.acceptsAutomatically {
                newcomer.invitation = Invitation(
                    channelId: access.channelId, userId: user, inviter: context.caller.user, welcome: welcome, state: .accepted,
                    invitedAt: context.now, revision: 0)
                entering.append(newcomer)
                room -= 1
                outcome.outcome = .added
            } else if let refusal = try context.refusal(ofWaiting: user, waiting: waiting) {
                outcome = .refused(user, refusal)
            } else {
                invited.append(user)
                waiting += 1
            }
            results.append(outcome)
        }
        try context.admit(entering, to: &access)
        try context.invite(invited.map { ($0, .member) }, welcome: welcome, to: &access)
        return MemberResults(results: results)
    }
}

extension AcceptInvitation: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel, user: caller.user).findingUsers }

    public func handle(in context: inout Context) throws -> ChannelView {
        try context.admit(to: try context.require(.invitationAnswer, in: channel))
    }
}

extension DeclineInvitation: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel, user: caller.user).findingUsers }

    public func handle(in context: inout Context) throws -> Invitation {
        var access = try context.require(.invitationAnswer, in: channel)
        guard let invitation = access.invitation else {
            throw RoostError(.notInvited, "You are a member already: leave the channel instead.")
        }
        let ended = try context.end([invitation], as: .declined, in: &access)
        return ended.first ?? invitation
    }
}

extension WithdrawInvitations: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel, users: Set(users)).findingUsers }

    public func handle(in context: inout Context) throws -> MemberResults {
        var access = try context.require(.memberInvite, in: channel)
        var results: [MemberResult] = []
        var withdrawn: [Invitation] = []
        for user in users {
            guard let invitation = try context.transaction.invitation(of: user, to: access.channelId, .pending) else {
                results.append(MemberResult(userId: user, outcome: .notInvited))
                continue
            }
            if invitation.inviter != context.caller.user, let refusal = context.refusal(of: .memberRemove, in: access) {
                results.append(.refused(user, refusal))
            } else {
                withdrawn.append(invitation)
                results.append(MemberResult(userId: user, outcome: .withdrawn))
            }
        }
        _ = try context.end(withdrawn, as: .withdrawn, in: &access)
        return MemberResults(results: results)
    }
}

extension Context {
    /// Why an invitation of one more user can't wait for an answer; nil when it can.
    fileprivate func refusal(ofWaiting user: UserID, waiting: Int) throws -> RoostError? {
        guard waiting < Limits.pendingInvitationsPerChannel else {
            return .limitExceeded("users", limit: Limits.pendingInvitationsPerChannel, unit: "pending invitations in a channel")
        }
        guard try transaction.pendingInvitationCount(of: user) < Limits.pendingInvitationsPerUser else {
            return .limitExceeded("users", limit: Limits.pendingInvitationsPerUser, unit: "pending invitations of a user")
        }
        return nil
    }

    /// Invites users who have no invitation that waits. They are asked, and are not members yet.
    mutating func invite(
        _ users: [(user: UserID, role: ChannelRole)], welcome: String?, to access: inout ChannelAccess
    ) throws {
        guard !users.isEmpty else { return }
        let inviterSeq = try transaction.advanceStream(of: caller.user)
        var invitations: [(invitation: Invitation, userSeq: Seq)] = []
        let channelSeq = try tellsMembers(of: &access, endingDistinctness: true)
        for (user, role) in users {
            let userSeq = try transaction.advanceStream(of: user)
            let before = try transaction.lastRevision(of: user, from: caller.user, to: access.channelId)
            let invitation = Invitation(
                channelId: access.channelId, userId: user, inviter: caller.user, welcome: welcome, state: .pending, invitedAt: now,
                revision: before + 1)
            try transaction.write(
                invitation, role: role, invitedSeq: access.counters.seq,
                stamps: InvitationStamps(channel: channelSeq.seq, user: userSeq, inviter: inviterSeq))
            invitations.append((invitation, userSeq))
        }
        let all = invitations.map(\.invitation)
        try tellMembers(channelSeq, .invitationReceived, all, in: access)
        tell(.invitationSent, user: caller.user, seq: inviterSeq, Rows(all))
        let channel = try self.channel(access.channelId)
        for (invitation, userSeq) in invitations {
            tell(.invitationReceived, user: invitation.userId, seq: userSeq, Rows(channel: channel, [invitation]))
        }
    }

    /// Ends invitations that waited, and tells all whom it concerns.
    mutating func end(
        _ invitations: [Invitation], as state: InvitationState, in access: inout ChannelAccess
    ) throws -> [Invitation] {
        guard !invitations.isEmpty else { return [] }
        let channelSeq = try tellsMembers(of: &access, endingDistinctness: true)
        let kind: Event.Kind = state == .declined ? .invitationDeclined : .invitationWithdrawn
        var ended: [(invitation: Invitation, stamps: InvitationStamps)] = []
        for invitation in invitations {
            var after = invitation
            after.state = state
            after.endedAt = now
            after.revision += 1
            let stamps = InvitationStamps(
                channel: channelSeq.seq, user: try transaction.advanceStream(of: invitation.userId),
                inviter: try transaction.advanceStream(of: invitation.inviter))
            try transaction.write(after, invitedSeq: access.counters.seq, stamps: stamps)
            ended.append((after, stamps))
        }
        try tellMembers(channelSeq, kind, ended.map(\.invitation), in: access)
        for (invitation, stamps) in ended {
            tell(kind, user: invitation.userId, seq: stamps.user, Rows([invitation]))
            tell(kind, user: invitation.inviter, seq: stamps.inviter, Rows([invitation]))
        }
        return ended.map(\.invitation)
    }

    /// Writes that an invitation is accepted, as part of the change that makes its user a member. One that the user accepted automatically is
    /// written for the first time by it.
    ///
    /// - Parameters:
    ///   - seq: the seq of that change in the channel's stream.
    ///   - userSeq: that in the user's own.
    func accept(_ invitation: Invitation?, in access: ChannelAccess, seq: Seq, userSeq: Seq) throws -> Invitation? {
        guard var accepted = invitation else { return nil }
        let isNew = accepted.revision == 0
        if isNew {
            accepted.revision = try transaction.lastRevision(of: accepted.userId, from: accepted.inviter, to: accepted.channelId)
        }
        accepted.state = .accepted
        accepted.endedAt = now
        accepted.revision += 1
        let tellsMembers = access.policy.invitationAudience == .members
        try transaction.write(
            accepted, invitedSeq: seq,
            stamps: InvitationStamps(
                channel: tellsMembers ? seq : 0, user: userSeq, inviter: try transaction.advanceStream(of: accepted.inviter)))
        return accepted
    }

    /// Tells who invited how it ended (EM-25).
    mutating func tellInviter(of invitation: Invitation, _ kind: Event.Kind) throws {
        let seq = try transaction.inviterSeq(of: invitation)
        tell(kind, user: invitation.inviter, seq: seq, Rows([invitation]))
    }

    /// Whether an invitation moves the channel's stream: where members hear of it, and where it ends that the channel is distinct.
    private mutating func tellsMembers(
        of access: inout ChannelAccess, endingDistinctness: Bool
    ) throws -> (seq: Seq, hasMoved: Bool, wholeChannel: Bool) {
        let tellsMembers = access.policy.invitationAudience == .members
        guard tellsMembers || (endingDistinctness && access.isDistinct) else { return (0, false, false) }
        let seq = access.counters.advance(at: now)
        let wholeChannel = try endDistinctness(of: &access, seq: seq)
        try transaction.update(access.counters, of: access.channelId)
        return (tellsMembers ? seq : 0, true, wholeChannel)
    }

    private mutating func tellMembers(
        _ moved: (seq: Seq, hasMoved: Bool, wholeChannel: Bool), _ kind: Event.Kind, _ invitations: [Invitation],
        in access: ChannelAccess
    ) throws {
        guard moved.hasMoved else { return }
        let tellsMembers = access.policy.invitationAudience == .members
        try tell(
            tellsMembers ? kind : .channelUpdated, in: access, seq: access.counters.seq,
            Rows(
                channel: moved.wholeChannel ? try channel(access.channelId) : nil,
                counters: moved.wholeChannel ? nil : access.counters, tellsMembers ? invitations : nil))
    }
}
