public import RoostAPI

/// Invitations: separate rows until they are answered (ledger §8.3).
///
/// Changes of an invitation are sent to inviter and invited user, each on their own stream; if the type lets members see
/// invitations, also on the channel's. Two users and a channel have one row; of all rows of a user in a channel at most one is
/// pending.

extension InviteMembers: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel, users: Set(users).union([caller.user])).findingUsers }

    public func handle(in context: inout Context) throws -> MemberResults {
        var access = try context.require(.invitationSend, in: channel)
        var room = access.policy.maxMembers - access.counters.memberCount
        var waiting = try context.transaction.pendingInvitationCount(into: access.channelId)
        var results: [MemberResult] = []
        var entering: [Newcomer] = []
        var invited: [UserID] = []
        for user in users {
            guard let candidate = try context.transaction.candidate(user, for: access) else {
                results.append(.refused(user, .noSuchUser))
                continue
            }
            var outcome = MemberResult(userId: user, outcome: .invited)
            if candidate.isMember {
                outcome.outcome = .alreadyMember
            } else if candidate.invitation != nil {
                outcome.outcome = .alreadyInvited
            } else if let refusal = try context.refusal(of: .invitationSend, for: candidate, in: access, room: room) {
                outcome =
                    refusal.code == .channelLimit
                    ? MemberResult(userId: user, outcome: .autoDeclined) : .refused(user, refusal)
            } else if candidate.acceptsAutomatically {
                entering.append(Newcomer(user: user, invitation: .immediate(from: context.caller.user, welcome: welcome)))
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
            throw RoostError(.notInvited, "You are already a member: leave the channel instead.")
        }
        let ended = try context.end([invitation], as: .declined, in: &access)
        return ended.first ?? invitation
    }
}

extension WithdrawInvitations: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel, users: Set(users)).findingUsers }

    public func handle(in context: inout Context) throws -> MemberResults {
        var access = try context.require(.invitationSend, in: channel)
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
    /// Returns the refusal if another invitation can't be pending; nil if it can.
    fileprivate func refusal(ofWaiting user: UserID, waiting: Int) throws -> RoostError? {
        guard waiting < Limits.pendingInvitationsPerChannel else {
            return .limitExceeded("users", limit: Limits.pendingInvitationsPerChannel, unit: "pending invitations in a channel")
        }
        guard try transaction.pendingInvitationCount(of: user) < Limits.pendingInvitationsPerUser else {
            return .limitExceeded("users", limit: Limits.pendingInvitationsPerUser, unit: "pending invitations of a user")
        }
        return nil
    }

    /// Invites users without a pending invitation. They don't become members yet.
    mutating func invite(
        _ users: [(user: UserID, role: ChannelRole)], welcome: String?, to access: inout ChannelAccess
    ) throws {
        guard !users.isEmpty else { return }
        let inviterSeq = try advanceStream(of: caller.user)
        var invitations: [(invitation: Invitation, userSeq: Seq)] = []
        let move = try moveChannel(forInvitationsInto: &access)
        for (user, role) in users {
            let userSeq = try advanceStream(of: user)
            let before = try transaction.lastRevision(of: user, from: caller.user, to: access.channelId)
            let invitation = Invitation(
                channelId: access.channelId, userId: user, inviter: caller.user, welcome: welcome, state: .pending, invitedAt: now,
                revision: before + 1)
            // Ids grow with each invitation. The channel's seq only moves with those sent to its members.
            let place = ids.next(at: now).rawValue
            try write(
                invitation, in: access, role: role, place: place,
                stamps: InvitationStamps(channel: move?.stamp ?? 0, user: userSeq, inviter: inviterSeq))
            invitations.append((invitation, userSeq))
        }
        let all = invitations.map(\.invitation)
        try notifyMembers(move, .invitationReceived, all, in: access)
        notify(.invitationSent, user: caller.user, seq: inviterSeq, Rows(all))
        let channel = try self.channel(access.channelId)
        for (invitation, userSeq) in invitations {
            notify(.invitationReceived, user: invitation.userId, seq: userSeq, Rows(channel: channel, [invitation]))
        }
    }

    /// Ends pending invitations, and notifies all users concerned.
    mutating func end(
        _ invitations: [Invitation], as state: InvitationState, in access: inout ChannelAccess
    ) throws -> [Invitation] {
        guard !invitations.isEmpty else { return [] }
        let move = try moveChannel(forInvitationsInto: &access)
        let kind: Event.Kind = state == .declined ? .invitationDeclined : .invitationWithdrawn
        var ended: [(invitation: Invitation, stamps: InvitationStamps)] = []
        for invitation in invitations {
            var after = invitation
            after.state = state
            after.endedAt = now
            after.revision += 1
            let stamps = InvitationStamps(
                channel: move?.stamp ?? 0, user: try advanceStream(of: invitation.userId),
                inviter: try advanceStream(of: invitation.inviter))
            try write(after, in: access, stamps: stamps)
            ended.append((after, stamps))
        }
        try notifyMembers(move, kind, ended.map(\.invitation), in: access)
        for (invitation, stamps) in ended {
            notify(kind, user: invitation.userId, seq: stamps.user, Rows([invitation]))
            notify(kind, user: invitation.inviter, seq: stamps.inviter, Rows([invitation]))
        }
        return ended.map(\.invitation)
    }

    /// Marks an invitation as accepted, as part of the change that makes its user a member. One that the user accepts
    /// automatically is first written here.
    ///
    /// - Parameters:
    ///   - seq: The seq of that change in the channel's stream.
    ///   - userSeq: The one in the user's own stream.
    func accept(
        _ invitation: AcceptedInvitation, of user: UserID, in access: ChannelAccess, seq: Seq, userSeq: Seq
    ) throws -> Invitation {
        var accepted: Invitation
        switch invitation {
        case .pending(let waiting):
            accepted = waiting
            accepted.state = .accepted
            accepted.revision += 1
        case .immediate(let inviter, let welcome):
            let before = try transaction.lastRevision(of: user, from: inviter, to: access.channelId)
            accepted = Invitation(
                channelId: access.channelId, userId: user, inviter: inviter, welcome: welcome, state: .accepted, invitedAt: now,
                revision: before + 1)
        }
        accepted.endedAt = now
        let notifiesMembers = try notifiesMembersOfInvitations(in: access)
        try write(
            accepted, in: access,
            stamps: InvitationStamps(
                channel: notifiesMembers ? seq : 0, user: userSeq, inviter: try advanceStream(of: accepted.inviter)))
        return accepted
    }

    /// Notifies the inviter of the invitation's outcome (EM-25).
    mutating func notifyInviter(of invitation: Invitation, _ kind: Event.Kind) throws {
        let seq = try transaction.inviterSeq(of: invitation)
        notify(kind, user: invitation.inviter, seq: seq, Rows([invitation]))
    }

    /// Whether a channel's stream carries its invitations: its type must say so, and every follower must be allowed to list
    /// them. Watching non-members follow it too, where everyone may read.
    func notifiesMembersOfInvitations(in access: ChannelAccess) throws -> Bool {
        guard access.policy.invitationAudience == .members else { return false }
        return try transaction.readers(of: access.policy).others > .user
    }

    /// The effect of a change of invitations on the channel's stream.
    private struct ChannelMove {
        let seq: Seq
        let notifiesMembers: Bool
        let endsDistinctness: Bool

        /// The stamp of the invitations in the channel's stream: 0 if its members don't get them.
        var stamp: Seq { notifiesMembers ? seq : 0 }
    }

    /// Advances the channel's stream for a change of invitations, and ends the channel's distinctness. Does nothing and returns
    /// nil if members don't get invitations and the channel isn't distinct.
    private func moveChannel(forInvitationsInto access: inout ChannelAccess) throws -> ChannelMove? {
        let notifiesMembers = try notifiesMembersOfInvitations(in: access)
        guard notifiesMembers || access.isDistinct else { return nil }
        let seq = access.counters.advance(at: now)
        let endsDistinctness = try endDistinctness(of: &access, seq: seq)
        try moveStream(of: access.channelId, to: access.counters)
        return ChannelMove(seq: seq, notifiesMembers: notifiesMembers, endsDistinctness: endsDistinctness)
    }

    private mutating func notifyMembers(
        _ move: ChannelMove?, _ kind: Event.Kind, _ invitations: [Invitation], in access: ChannelAccess
    ) throws {
        guard let move else { return }
        try notify(
            move.notifiesMembers ? kind : .channelUpdated, in: access, seq: move.seq,
            Rows(
                channel: move.endsDistinctness ? try channel(access.channelId) : nil,
                counters: move.endsDistinctness ? nil : access.counters, move.notifiesMembers ? invitations : nil))
    }
}
