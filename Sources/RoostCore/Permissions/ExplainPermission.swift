public import RoostAPI

extension ExplainPermission: Handled {
    /// A channel that the subject may not know of is answered as if it didn't exist.
    public func handle(in context: inout Context) throws -> PermissionExplanation {
        try context.require(.streamRead)
        var subject = context.caller
        if let user, user != subject.user {
            // Callers that manage users may ask about any user, who then counts as having an ordinary token.
            try context.require(.userManage)
            guard try context.transaction.userExists(user) else {
                throw RoostError.notFound("user")
            }
            subject = Caller(user: user)
        }
        guard permission.row.concernsChannel else {
            throw RoostError.invalidArgument("permission", "must concern a channel")
        }
        if subject != context.caller { try requireKnown(to: context.caller, in: context) }
        guard let access = try context.transaction.access(to: channel, of: subject.user, for: permission) else {
            throw RoostError.notFound("channel")
        }
        let refusal = Permissions.refusal(of: permission, for: subject.role, in: access.facts, now: context.now)
        if let refusal, refusal.code == .notFound, subject == context.caller { throw refusal }
        return PermissionExplanation(permission: permission, isAllowed: refusal == nil, refusal: refusal)
    }

    /// Another user's permissions would reveal that the channel exists, and who is in it.
    private func requireKnown(to caller: Caller, in context: Context) throws {
        guard let access = try context.transaction.access(to: channel, of: caller.user, for: .channelRead),
            Permissions.refusal(of: .channelRead, for: caller.role, in: access.facts, now: context.now)?.code != .notFound
        else { throw RoostError.notFound("channel") }
    }
}
