public import RoostAPI

/// A subject of access: a user, a single token, or a user's device.
public enum AccessSubject: Hashable, Sendable {
    case user(UserID)
    case token(String)
    case device(UserID, DeviceID)
}

/// The access of a user, or of a token's holder, after a change.
public enum AccessChange: Hashable, Sendable {
    /// Tokens issued before ``validFrom`` are revoked.
    case user(UserID, isDeactivated: Bool, validFrom: Timestamp?)
    case revoked(token: String, until: Timestamp)
    /// A device's sign-ins up to and including this one have ended.
    case signedOut(UserID, device: DeviceID, upTo: Int64)

    public var subject: AccessSubject {
        switch self {
        case .user(let user, _, _): .user(user)
        case .revoked(let token, _): .token(token)
        case .signedOut(let user, let device, _): .device(user, device)
        }
    }

    /// Returns the refusal if it shuts a caller out; nil if it doesn't.
    public func refusal(of caller: Caller) -> RoostError? {
        switch self {
        case .user(let user, let isDeactivated, let validFrom):
            if isDeactivated, caller.user == user || caller.token?.user == user { return .userDeactivated }
            guard let validFrom, let token = caller.token, token.user == user else { return nil }
            return token.issuedAt.map { $0 >= validFrom } ?? false ? nil : .tokenRevoked
        case .revoked(let token, _): return caller.token?.id == token ? .tokenRevoked : nil
        case .signedOut(let user, let device, let last):
            guard caller.user == user, let own = caller.device, own.id == device, own.signIn <= last else { return nil }
            return .deviceSignedOut
        }
    }
}

extension RoostError {
    /// The same for the user's own token and for a backend that acts for them.
    static let userDeactivated = RoostError(.userDeactivated, "The user is deactivated.")
    static let tokenRevoked = RoostError(.tokenRevoked, "The token was revoked. Get another.")
    static let deviceSignedOut = RoostError(.tokenRevoked, "This device was signed out. Get another token.")
}

extension Caller {
    /// The subjects that the caller's access depends on.
    public var accessSubjects: [AccessSubject] {
        var subjects = [AccessSubject.user(user)]
        if let device { subjects.append(.device(user, device.id)) }
        guard let token else { return subjects }
        if token.user != user { subjects.append(.user(token.user)) }
        if let id = token.id { subjects.append(.token(id)) }
        return subjects
    }
}

extension Transaction {
    /// Returns a subject's access; nil if it has never changed.
    public func access(of subject: AccessSubject) throws -> AccessChange? {
        switch subject {
        case .user(let user):
            let sql: SQL =
                "SELECT deactivated_at, tokens_valid_from FROM users WHERE user_id = \(user) AND access_revision > 0"
            return try first(sql) { row in
                .user(user, isDeactivated: row.optionalInt64() != nil, validFrom: row.optionalTimestamp())
            }
        case .token(let token):
            return try first("SELECT expires_at FROM revoked_tokens WHERE token_id = \(token)") { row in
                .revoked(token: token, until: row.timestamp())
            }
        case .device(let user, let device): return try signOut(of: device, of: user)
        }
    }

    /// Returns the refusal for a caller who is shut out; nil if they aren't.
    public func accessRefusal(of caller: Caller) throws -> RoostError? {
        for subject in caller.accessSubjects {
            if let refusal = try access(of: subject)?.refusal(of: caller) { return refusal }
        }
        return nil
    }

    /// Returns the number of the newest change of any subject's access, and the epoch, in one statement.
    public func accessRevisionAndEpoch() throws -> (revision: Int64, epoch: String?) {
        let sql: SQL = "SELECT (SELECT revision FROM access_revisions WHERE id = 1), (\(SQL.epochSelection))"
        return try first(sql) { ($0.optionalInt64() ?? 0, $0.optionalString()) } ?? (0, nil)
    }

    /// Calls the body with the changes after a number, each subject with its current access.
    public func eachAccessChange(after revision: Int64, _ body: (AccessChange) -> Void) throws {
        let users: SQL = """
            SELECT user_id, deactivated_at, tokens_valid_from FROM users
            WHERE access_revision > 0 AND access_revision > \(revision)
            """
        try each(users) { row in
            body(.user(row.identifier(), isDeactivated: row.optionalInt64() != nil, validFrom: row.optionalTimestamp()))
        }
        try each("SELECT token_id, expires_at FROM revoked_tokens WHERE revision > \(revision)") { row in
            body(.revoked(token: row.string(), until: row.timestamp()))
        }
    }

    func deactivation(of user: UserID) throws -> Timestamp? {
        try first("SELECT deactivated_at FROM users WHERE user_id = \(user)") { $0.optionalTimestamp() } ?? nil
    }

    func nextAccessRevision() throws -> Int64 {
        let sql: SQL = """
            INSERT INTO access_revisions (id, revision) VALUES (1, 1)
            ON CONFLICT (id) DO UPDATE SET revision = access_revisions.revision + 1 RETURNING revision
            """
        guard let revision = try first(sql, { $0.int64() }) else { throw DamagedDatabase(what: "access without a number") }
        return revision
    }
}

extension Caller {
    /// The scope of an operation that changes a subject's access. It is empty if the rule refuses the caller, since all others
    /// wait for such an operation, and the changes it might have made are recorded.
    fileprivate func scope(toChange subject: AccessSubject) -> Scope {
        Permissions.refusal(of: .userManage, for: role) == nil ? .access(subject) : Scope()
    }
}

extension DeactivateUser: Handled {
    public func scope(for caller: Caller) -> Scope { caller.scope(toChange: .user(user)) }

    public func handle(in context: inout Context) throws -> User { try context.setDeactivation(of: user, to: context.now) }
}

extension ReactivateUser: Handled {
    public func scope(for caller: Caller) -> Scope { caller.scope(toChange: .user(user)) }

    public func handle(in context: inout Context) throws -> User { try context.setDeactivation(of: user, to: nil) }
}

extension RevokeUserTokens: Handled {
    public func scope(for caller: Caller) -> Scope { caller.scope(toChange: .user(user)) }

    public func handle(in context: inout Context) throws -> TokenRevocation {
        try context.require(.userManage)
        // Times of issue aren't by the database's clock. If that is behind, a token issued just now must be revoked too.
        let now = max(context.now, context.machineNow ?? context.now)
        let before = before ?? now
        // A token whose issuer's clock is ahead by the leeway is accepted, so it must be revocable too.
        guard before <= now.after(seconds: TokenLeeway.seconds) else {
            throw RoostError.invalidArgument("before", "must not be later than \(TokenLeeway.seconds) seconds from now")
        }
        guard try context.transaction.userExists(user) else { throw RoostError.notFound("user") }
        var isDeactivated = false
        if case .user(_, let deactivated, let validFrom) = try context.transaction.access(of: .user(user)) {
            if let validFrom, validFrom >= before { return TokenRevocation(userId: user, before: validFrom) }
            isDeactivated = deactivated
        }
        try context.transaction.perform(
            """
            UPDATE users SET tokens_valid_from = \(before), access_revision = \(try context.transaction.nextAccessRevision())
            WHERE user_id = \(user)
            """)
        context.notify(.accessChanged([.user(user, isDeactivated: isDeactivated, validFrom: before)]))
        return TokenRevocation(userId: user, before: before)
    }
}

extension RevokeToken: Handled {
    public func scope(for caller: Caller) -> Scope { caller.scope(toChange: .token(tokenId)) }

    public func handle(in context: inout Context) throws -> RevokedToken {
        try context.require(.userManage)
        // A token accepted now expires within the longest lifetime; its issuer's clock may be ahead by the leeway.
        let longest = context.now.after(seconds: context.options.tokenLifetimeSecondsMax + TokenLeeway.seconds)
        let end = expiresAt ?? longest
        // The clock of a node that still accepts the token may be behind.
        guard end > context.now.minusClockSkew else {
            throw RoostError.invalidArgument("expiresAt", "must not be more than 60 seconds ago")
        }
        guard let (until, change) = try context.revoke(token: tokenId, until: end) else {
            throw RoostError(
                .limitExceeded,
                "At most \(Limits.revokedTokens) single tokens can be revoked at the same time. Revoke all of a user's tokens instead.",
                field: "tokenId", limit: Int64(Limits.revokedTokens))
        }
        if let change { context.notify(.accessChanged([change])) }
        return RevokedToken(tokenId: tokenId, expiresAt: until)
    }
}

/// The maximum lead of a token issuer's clock over the server's.
public enum TokenLeeway {
    public static let seconds = 60
}

extension Scope {
    fileprivate static func access(_ subject: AccessSubject) -> Scope {
        var scope = Scope()
        scope.access = [subject]
        return scope
    }
}

/// How long a revocation is kept beyond the expiry of its token.
public enum RevocationMargin {
    /// A node decides by its own clock whether a token has expired, and the revocations are deleted by the database's. If that is ahead, after
    /// a failover or for a moment, a revocation that it deletes too early is gone, and its token is accepted again until the nodes find it expired. A
    /// day covers every wrong clock that isn't noticed otherwise, and wrong time zones. Of more than ``Limits/revokedTokens`` expired ones, those that
    /// expired first are deleted sooner.
    public static let seconds = 86_400
}

extension Timestamp {
    /// A token that expired before this moment has expired for every node while the clocks are about right: one may be a minute behind, and its
    /// node accepts a token that much longer. A start warns of a difference of half a minute.
    public var minusClockSkew: Timestamp { Timestamp(milliseconds: milliseconds - 60_000) }

    /// The revocation of a token that expired before this moment may be forgotten.
    fileprivate var minusRevocationMargin: Timestamp {
        Timestamp(milliseconds: milliseconds - Int64(RevocationMargin.seconds) * 1000)
    }
}

extension Context {
    /// Throws if the caller is shut out. Checked in the operation's transaction, so no change of access can intervene.
    public func requireAccess() throws {
        if let refusal = try transaction.bypassingBatchMemory({ try transaction.accessRefusal(of: caller) }) { throw refusal }
    }

    /// Revokes a single token, unless the list is full.
    ///
    /// - Parameter countMax: The maximum number of revoked tokens at a time, not counting those that have expired.
    /// - Returns: The end of the revocation, and the change to broadcast, which is nil if the token was already revoked for at
    ///   least as long. Nil if there is no room.
    func revoke(
        token: String, until end: Timestamp, countMax: Int = Limits.revokedTokens
    ) throws -> (until: Timestamp, change: AccessChange?)? {
        if case .revoked(_, let until) = try transaction.access(of: .token(token)), until >= end { return (until, nil) }
        try transaction.perform("DELETE FROM revoked_tokens WHERE expires_at <= \(now.minusRevocationMargin)")
        let others: SQL = "SELECT COUNT(*) FROM revoked_tokens WHERE token_id <> \(token)"
        let count = try transaction.first("\(others) AND expires_at > \(now.minusClockSkew)", { $0.int() }) ?? 0
        guard count < countMax else { return nil }
        // The expired ones are kept only in case a clock is wrong, and mustn't grow without limit within their day. Those that expired last stay: by
        // a clock that is right they may be valid.
        let expiredCount = try transaction.first("\(others) AND expires_at <= \(now.minusClockSkew)", { $0.int() }) ?? 0
        let excess = expiredCount + 1 - Limits.revokedTokens
        if excess > 0 {
            try transaction.perform(
                """
                DELETE FROM revoked_tokens WHERE token_id IN (
                    SELECT token_id FROM revoked_tokens WHERE token_id <> \(token) AND expires_at <= \(now.minusClockSkew)
                    ORDER BY expires_at LIMIT \(excess))
                """)
        }
        try transaction.perform(
            """
            INSERT INTO revoked_tokens (token_id, expires_at, revision)
            VALUES (\(token), \(end), \(try transaction.nextAccessRevision()))
            ON CONFLICT (token_id) DO UPDATE SET expires_at = excluded.expires_at, revision = excluded.revision
            """)
        return (end, .revoked(token: token, until: end))
    }

    /// Deactivates or reactivates a user. Repeating it changes nothing.
    fileprivate mutating func setDeactivation(of id: UserID, to deactivatedAt: Timestamp?) throws -> User {
        try require(.userManage)
        guard var user = try transaction.user(id) else { throw RoostError.notFound("user") }
        user.deactivatedAt = try transaction.deactivation(of: id)
        guard (user.deactivatedAt == nil) != (deactivatedAt == nil) else { return user }
        var validFrom: Timestamp?
        if case .user(_, _, let from) = try transaction.access(of: .user(id)) { validFrom = from }
        try transaction.perform(
            """
            UPDATE users SET deactivated_at = \(deactivatedAt), access_revision = \(try transaction.nextAccessRevision())
            WHERE user_id = \(id)
            """)
        user.deactivatedAt = deactivatedAt
        notify(.accessChanged([.user(id, isDeactivated: deactivatedAt != nil, validFrom: validFrom)]))
        return user
    }
}
