public import RoostAPI

/// Calls that are made once, however often they are sent: a key is kept in the transaction of its call's changes.
///
/// - A kept key answers for its call: nothing is done or checked again. The answer only says that the caller's own call was
///   carried out, as the lost answer did. It has none of the call's result, which a caller who has lost the right may no longer
///   see.
/// - A refused call keeps no key.
/// - A key older than the retention, or too far ahead, is refused before anything else: it isn't known whether its call was carried out.
extension Handled {
    /// Runs the rule, unless it has already run for the caller with the same key. In that case, returns nil.
    ///
    /// - Parameter field: The key's place in the request, for errors.
    /// - Throws: The rule's own errors; `key_reused` if the key was used for another call, `key_expired`, `limit_exceeded` if
    ///   the caller has too many keys; `invalid_argument` if the operation takes none.
    public func handle(
        once key: IdempotencyKey?, field: String = IdempotencyKey.member, in context: inout Context
    ) throws -> Response? {
        guard let key else { return try handle(in: &context) }
        try Self.requireTakingKey(field: field)
        try context.requireCurrent(key, field: field)
        let request = Fingerprint.of("\(Self.name) \(String(decoding: try JSONWriter.bytes(of: self), as: UTF8.self))")
        if let known = try context.request(of: key) {
            guard known == request else {
                throw RoostError(.keyReused, "This key was used for another request.", field: field)
            }
            return nil
        }
        try context.requireRoom(field: field)
        let response = try handle(in: &context)
        try context.keep(key, of: request)
        return response
    }
}

extension Context {
    fileprivate static let keyLifetimeMilliseconds = Int64(Limits.idempotencyKeyHours) * 3_600_000

    /// Keys from this time or before have expired.
    var oldestKey: Int64 { now.milliseconds - Self.keyLifetimeMilliseconds }

    fileprivate func requireCurrent(_ key: IdempotencyKey, field: String) throws {
        guard key.madeAt.milliseconds > oldestKey else {
            throw RoostError(
                .keyExpired, "The key is older than \(Limits.idempotencyKeyHours) hours: whether it was used is no longer known.",
                field: field, limit: Int64(Limits.idempotencyKeyHours))
        }
        let ahead = Int64(Limits.idempotencyKeyAheadHours) * 3_600_000
        guard key.madeAt.milliseconds <= now.milliseconds + ahead else {
            throw RoostError.invalidArgument(
                field, "has a time that is more than \(Limits.idempotencyKeyAheadHours) hours ahead of the server's clock")
        }
    }

    fileprivate func request(of key: IdempotencyKey) throws -> String? {
        try transaction.bypassingBatchMemory {
            try transaction.first(
                """
                SELECT request FROM operation_keys WHERE user_id = \(caller.user) AND operation_key = \(key.rawValue)
                """
            ) { $0.string() }
        }
    }

    /// Throws if a user has the maximum number of keys. An app's backend may have any number. An expired key that waits for deletion doesn't count.
    fileprivate func requireRoom(field: String) throws {
        guard !caller.isAdmin else { return }
        let last: SQL = """
            SELECT made_at FROM operation_keys WHERE user_id = \(caller.user) AND made_at > \(oldestKey)
            ORDER BY operation_key LIMIT 1 OFFSET \(Int64(Limits.idempotencyKeysPerUser) - 1)
            """
        guard try transaction.bypassingBatchMemory({ try transaction.first(last) { $0.int64() } }) == nil else {
            throw RoostError.limitExceeded(field, limit: Limits.idempotencyKeysPerUser, unit: "keys of a user at a time")
        }
    }

    fileprivate mutating func keep(_ key: IdempotencyKey, of request: String) throws {
        let isNew = try transaction.bypassingBatchMemory {
            try transaction.execute(
                """
                INSERT INTO operation_keys (user_id, operation_key, request, made_at)
                VALUES (\(caller.user), \(key.rawValue), \(request), \(key.madeAt)) ON CONFLICT DO NOTHING
                """) == 1
        }
        // Another node has carried out a call with the key in the meantime: this transaction is rolled back, and a retry gets the answer.
        guard isNew else {
            throw RoostError(.unavailable, "A call with this key is in progress. Retry it.", retryAfterMilliseconds: 100)
        }
        try expireLater(key.madeAt)
    }
}

// MARK: Expiring keys

extension EffectKind.Name {
    static let expireIdempotencyKeys = Self(rawValue: "idempotencyKeys.expire")
}

extension EffectKind {
    /// Deletes idempotency keys, including those of creations, that were kept for ``Limits/idempotencyKeyHours``. Runs again
    /// when the next one is old enough, or could be if there is none.
    ///
    /// It is never given up: one row stands for all keys, and nothing would schedule it again.
    static let expireIdempotencyKeys = EffectKind(
        .expireIdempotencyKeys, attemptsMax: .max, run: { effect, _, context in try context.expireKeys(effect) })
}

extension Context {
    /// The most keys that one transaction deletes of each kind.
    private static let keysAtOnce: Int64 = 1000
    /// The pause between two runs: the keys of a minute are deleted together.
    private static let pauseMilliseconds: Int64 = 60_000

    /// Schedules the deletion of a key made at a time for its expiry, or for a pause from now if that is later.
    mutating func expireLater(_ madeAt: Timestamp) throws {
        let end = max(madeAt.milliseconds + Self.keyLifetimeMilliseconds, now.milliseconds + Self.pauseMilliseconds)
        guard transaction.dialect.rowLock == nil else {
            // Where several nodes write, every call that keeps a key would wait for the one that moves the only effect. So it isn't moved unless
            // it is later than the end of any key.
            let latest = now.after(seconds: 3600 * (Limits.idempotencyKeyHours + Limits.idempotencyKeyAheadHours) + 60)
            return try scheduleUnlessQueued(
                .expireIdempotencyKeys, key: "", at: Timestamp(milliseconds: end), movingFromAfter: latest)
        }
        // If the clock was ahead, the effect waits that much longer. Nothing is written unless it moves.
        try scheduleAtLatest(.expireIdempotencyKeys, key: "", at: Timestamp(milliseconds: end))
    }

    fileprivate mutating func expireKeys(_ effect: Effect) throws {
        let creations = try expireCreations(atOnce: Self.keysAtOnce)
        let others = try transaction.execute(
            """
            DELETE FROM operation_keys WHERE (user_id, operation_key) IN (
                SELECT user_id, operation_key FROM operation_keys WHERE made_at <= \(oldestKey)
                ORDER BY made_at LIMIT \(Self.keysAtOnce))
            """)
        let oldestOther = try transaction.first("SELECT MIN(made_at) FROM operation_keys") { $0.optionalInt64() } ?? nil
        let oldest = [creations.oldest, oldestOther].compactMap(\.self).min()
        guard let oldest else {
            // A transaction in progress on another node may keep a key that isn't visible here before its commit, and have
            // found this effect queued. So the effect stays queued, at a long interval. No transaction finds one with another
            // key.
            guard effect.key.isEmpty else { return }
            return try expireLater(now)
        }
        let isLimited = Int64(max(creations.count, others)) == Self.keysAtOnce
        let next = max(oldest + Self.keyLifetimeMilliseconds, now.milliseconds + (isLimited ? 0 : Self.pauseMilliseconds))
        try schedule(effect.kind, key: effect.key, at: Timestamp(milliseconds: next))
    }
}
