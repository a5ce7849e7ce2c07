import RoostAPI

/// The key of a set of members, unique among the distinct channels of a type.
enum DistinctKey {
    /// The ids are joined in the order of Swift's strings, as in keys stored before ids were compared by their bytes. The two orders differ for ids that
    /// aren't in form C.
    static func of(_ type: ChannelType, members: [UserID]) -> String {
        let ids = Set(members).sorted { $0.rawValue == $1.rawValue ? $0 < $1 : $0.rawValue < $1.rawValue }
        return Fingerprint.of(([type.rawValue] + ids.map(\.rawValue)).joined(separator: "\n"))
    }
}

extension Transaction {
    /// Returns the distinct channel of a set of members.
    func distinctChannel(_ key: String) throws -> ChannelID? {
        try first("SELECT channel_id FROM channels WHERE distinct_key = \(key)") { $0.identifier() }
    }
}

extension Context {
    /// Ends a channel's distinctness, as part of the change with this seq.
    ///
    /// - Returns: Whether it was distinct. If so, the whole channel has to be sent.
    func endDistinctness(of access: inout ChannelAccess, seq: Seq) throws -> Bool {
        guard access.isDistinct else { return false }
        access.isDistinct = false
        try transaction.perform(
            """
            UPDATE channels SET is_distinct = \(false), distinct_key = NULL, updated_at = \(now), change_seq = \(seq)
            WHERE channel_id = \(access.channelId)
            """)
        return true
    }
}
