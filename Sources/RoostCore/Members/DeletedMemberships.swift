import RoostAPI

/// The memberships of deleted channels. A deletion ends them all at once, without writing any of them: there may be a million.
/// Their rows stay, since former members find the channel by them (`includeDeleted`) and learn of the deletion after an
/// absence. But each of a user's lists, totals and connections would have to pass them from then on. So they are marked in
/// batches, and then skipped.

extension EffectKind.Name {
    /// Stored effects have this value, so it stays.
    static let markMemberships = Self(rawValue: "memberships.pass")
}

extension EffectKind {
    /// Marks the memberships of a deleted channel, a batch of users at a time. It is never given up: nothing else would mark the rest.
    static let markMemberships = EffectKind(
        .markMemberships, attemptsMax: .max,
        scope: { effect in .channel(ChannelID(effect.key)) },
        run: { effect, _, context in try context.markMemberships(of: ChannelID(effect.key), after: effect.payload) })
}

extension Context {
    /// The maximum number of rows per transaction.
    private static let rowsAtOnce: Int64 = 1000

    /// Schedules the marking of a deleted channel's memberships after this transaction.
    mutating func scheduleMarking(ofMembershipsIn channel: ChannelID) throws {
        try schedule(.markMemberships, key: channel.rawValue, at: now)
    }

    /// Marks a batch of a deleted channel's memberships, and schedules the next batch.
    ///
    /// - Parameter user: The last user of the previous batch; empty for the first.
    fileprivate mutating func markMemberships(of channel: ChannelID, after user: String) throws {
        let next: SQL = """
            SELECT MAX(user_id), COUNT(*) FROM (
                SELECT user_id FROM members WHERE channel_id = \(channel) AND user_id > \(user)
                ORDER BY user_id LIMIT \(Self.rowsAtOnce)) AS part
            """
        let (last, count) = try transaction.first(next) { ($0.optionalString(), $0.int64()) } ?? (nil, 0)
        guard let last else { return }
        try transaction.perform(
            """
            UPDATE members SET is_channel_deleted = 1
            WHERE channel_id = \(channel) AND user_id > \(user) AND user_id <= \(last) AND state = \(MembershipState.member)
            """)
        guard count == Self.rowsAtOnce else { return }
        try schedule(.markMemberships, key: channel.rawValue, payload: last, at: now)
    }
}
