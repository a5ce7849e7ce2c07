import RoostAPI

/// The key of a set of members, unique among the distinct channels of a type.
enum DistinctKey {
    static func of(_ type: ChannelType, members: [UserID]) -> String {
        Fingerprint.of(([type.rawValue] + Set(members).map(\.rawValue).sorted()).joined(separator: "\n"))
    }
}

extension Transaction {
    /// Returns the distinct channel of a set of members.
    func distinctChannel(_ key: String) throws -> ChannelID? {
        try first("SELECT channel_id FROM channels WHERE distinct_key = \(key)") { $0.identifier() }
    }
}
