import RoostAPI

extension EffectKind.Name {
    static let expireIdempotencyKeys = Self(rawValue: "idempotencyKeys.expire")
}

extension EffectKind {
    /// Deletes idempotency keys that were kept for ``Limits/idempotencyKeyHours``, and runs again when the next one is old enough.
    static let expireIdempotencyKeys = EffectKind(.expireIdempotencyKeys) { effect, _, context in
        try context.expireIdempotencyKeys(effect)
    }
}

extension Context {
    /// The most keys that one transaction deletes.
    private static let keysAtOnce: Int64 = 1000
    /// The pause between two runs: the keys of a minute are deleted together.
    private static let pauseMilliseconds: Int64 = 60_000

    private static let lifetimeMilliseconds = Int64(Limits.idempotencyKeyHours) * 3_600_000

    /// Keys from before this time have expired.
    private var oldestKey: Int64 { now.milliseconds - Self.lifetimeMilliseconds }

    /// Returns what an earlier call with the same key created (SB-12).
    mutating func channelCreated(by operation: CreateChannel) throws -> ChannelView? {
        guard let key = operation.idempotencyKey else { return nil }
        let sql: SQL = """
            SELECT request, channel_id FROM idempotency_keys
            WHERE user_id = \(caller.user) AND request_key = \(key) AND created_at > \(oldestKey)
            """
        guard let earlier = try transaction.first(sql, { (request: $0.string(), channel: $0.identifier(ChannelID.self)) }) else {
            return nil
        }
        guard earlier.request == (try fingerprint(of: operation)) else {
            throw RoostError(.keyReused, "Another request was made with this key.", field: "idempotencyKey")
        }
        // A caller who may no longer see the channel learns nothing about it; a backend never was a member.
        if caller.role != .service { _ = try require(.channelRead, in: earlier.channel) }
        return try viewCreated(earlier.channel)
    }

    /// Remembers what a call created, so that a repeat with the same key gets it.
    mutating func remember(_ operation: CreateChannel, _ channel: ChannelID) throws {
        guard let key = operation.idempotencyKey else { return }
        try transaction.perform(
            """
            INSERT INTO idempotency_keys (user_id, request_key, request, channel_id, created_at)
            VALUES (\(caller.user), \(key), \(try fingerprint(of: operation)), \(channel), \(now))
            ON CONFLICT (user_id, request_key) DO UPDATE
            SET request = excluded.request, channel_id = excluded.channel_id, created_at = excluded.created_at
            """)
        let end = Timestamp(milliseconds: now.milliseconds + Self.lifetimeMilliseconds)
        try laterUnlessWaiting(.expireIdempotencyKeys, key: "", at: end)
    }

    fileprivate mutating func expireIdempotencyKeys(_ effect: Effect) throws {
        let count = try transaction.execute(
            """
            DELETE FROM idempotency_keys WHERE (user_id, request_key) IN (
                SELECT user_id, request_key FROM idempotency_keys WHERE created_at <= \(oldestKey)
                ORDER BY created_at LIMIT \(Self.keysAtOnce))
            """)
        let sql: SQL = "SELECT MIN(created_at) FROM idempotency_keys"
        guard let oldest = try transaction.first(sql, { $0.optionalInt64() }) ?? nil else { return }
        let pause = Int64(count) == Self.keysAtOnce ? 0 : Self.pauseMilliseconds
        let next = max(oldest + Self.lifetimeMilliseconds, now.milliseconds + pause)
        try later(effect.kind, key: effect.key, at: Timestamp(milliseconds: next))
    }

    private func fingerprint(of operation: CreateChannel) throws -> String {
        Fingerprint.of(String(decoding: try JSONWriter.bytes(of: operation), as: UTF8.self))
    }
}
