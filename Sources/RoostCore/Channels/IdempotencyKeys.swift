import RoostAPI

/// Channels that are created once, however often the call is repeated: the answer is the channel, so the key is kept with it.
extension Context {
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
            throw RoostError(.keyReused, "This key was used for another request.", field: "idempotencyKey")
        }
        // A caller who may no longer see the channel learns nothing about it; a backend never was a member.
        if caller.role != .service { _ = try require(.channelRead, in: earlier.channel) }
        return try viewCreated(earlier.channel)
    }

    /// Throws if a user has the maximum number of creation keys. An app's backend may have any number.
    func requireRoomForKey(of operation: CreateChannel) throws {
        guard operation.idempotencyKey != nil, !caller.isAdmin else { return }
        // Uses the primary key: expired keys count until they are deleted.
        let last: SQL = """
            SELECT created_at FROM idempotency_keys WHERE user_id = \(caller.user)
            ORDER BY request_key LIMIT 1 OFFSET \(Int64(Limits.idempotencyKeysPerUser) - 1)
            """
        guard try transaction.first(last, { $0.int64() }) == nil else {
            throw RoostError.limitExceeded(
                "idempotencyKey", limit: Limits.idempotencyKeysPerUser, unit: "keys of a user at a time")
        }
    }

    /// Stores the channel that a call created, for a repeat with the same key.
    mutating func remember(_ operation: CreateChannel, _ channel: ChannelID) throws {
        guard let key = operation.idempotencyKey else { return }
        try transaction.perform(
            """
            INSERT INTO idempotency_keys (user_id, request_key, request, channel_id, created_at)
            VALUES (\(caller.user), \(key), \(try fingerprint(of: operation)), \(channel), \(now))
            ON CONFLICT (user_id, request_key) DO UPDATE
            SET request = excluded.request, channel_id = excluded.channel_id, created_at = excluded.created_at
            """)
        try expireLater(now)
    }

    /// Deletes expired keys, up to a limit.
    ///
    /// - Returns: How many, and the time of the oldest one left.
    mutating func expireCreations(atOnce limit: Int64) throws -> (count: Int, oldest: Int64?) {
        let count = try transaction.execute(
            """
            DELETE FROM idempotency_keys WHERE (user_id, request_key) IN (
                SELECT user_id, request_key FROM idempotency_keys WHERE created_at <= \(oldestKey) ORDER BY created_at LIMIT \(limit))
            """)
        let oldest: SQL = "SELECT MIN(created_at) FROM idempotency_keys"
        return (count, try transaction.first(oldest) { $0.optionalInt64() } ?? nil)
    }

    private func fingerprint(of operation: CreateChannel) throws -> String {
        Fingerprint.of(String(decoding: try JSONWriter.bytes(of: operation), as: UTF8.self))
    }
}
