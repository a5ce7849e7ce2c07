public import RoostAPI

extension AddMembers: Handled {
    /// Added users may hold an invitation, whose sender is notified of the acceptance.
    public func scope(for caller: Caller) -> Scope { .channel(channel, users: Set(users)).findingUsers }

    public func handle(in context: inout Context) throws -> MemberResults {
        var access = try context.require(.memberAdd, in: channel)
        var room = access.policy.maxMembers - access.counters.memberCount
        var results: [MemberResult] = []
        var newcomers: [Newcomer] = []
        for user in users {
            guard let candidate = try context.transaction.candidate(user, for: access) else {
                results.append(.refused(user, .noSuchUser))
                continue
            }
            if candidate.isMember {
                results.append(MemberResult(userId: user, outcome: .alreadyMember))
            } else if let refusal = try context.refusal(of: .memberAdd, for: candidate, in: access, room: room) {
                results.append(.refused(user, refusal))
            } else {
                var newcomer = candidate.newcomer
                newcomer.hidesHistory = hideHistory ?? false
                newcomers.append(newcomer)
                room -= 1
                results.append(MemberResult(userId: user, outcome: .added))
            }
        }
        try context.admit(newcomers, to: &access)
        return MemberResults(results: results)
    }
}

extension RemoveMembers: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel, users: Set(users)) }

    public func handle(in context: inout Context) throws -> MemberResults {
        var access = try context.require(.memberRemove, in: channel)
        var results: [MemberResult] = []
        var leavers: [AffectedMember] = []
        for user in users {
            guard let member = try context.transaction.member(user, of: access) else {
                results.append(MemberResult(userId: user, outcome: .notMember))
                continue
            }
            // Removing oneself is leaving, which requires no rank.
            if user == context.caller.user {
                results.append(.refused(user, .invalidArgument("users", "can't contain yourself: leave the channel instead")))
            } else if let refusal = context.refusal(of: .memberRemove, in: access, towards: member.definition.rank) {
                results.append(.refused(user, refusal))
            } else {
                leavers.append(AffectedMember(user: user, before: member))
                results.append(MemberResult(userId: user, outcome: .removed))
            }
        }
        try context.endMemberships(of: leavers, in: &access, .memberRemoved)
        return MemberResults(results: results)
    }
}

extension Context {
    /// Returns the refusal if a non-member can't become a member now; nil if they can.
    ///
    /// - Parameter permission: The caller's, by which they would become one: its rule is the one that refuses.
    func refusal(
        of permission: Permission, for candidate: Candidate, in access: ChannelAccess, room: Int
    ) throws -> RoostError? {
        if candidate.isBanned(at: now) {
            return RoostError(
                .banned, "The user is banned from the channel.", rule: "\(permission.rawValue): not while banned",
                until: candidate.member?.row.bannedUntil
            ).withRest(at: now)
        }
        if room <= 0 { return .memberLimit(access.policy.maxMembers) }
        guard try transaction.hasRoomForChannel(candidate.user, max: options.channelsPerUser) else {
            return .channelLimit(of: candidate.user, options.channelsPerUser)
        }
        return nil
    }
}

extension MemberResult {
    static func refused(_ user: UserID, _ error: RoostError) -> MemberResult {
        MemberResult(userId: user, outcome: .refused, error: error)
    }
}

extension RoostError {
    static let noSuchUser = RoostError.notFound("user", field: "users")
}
