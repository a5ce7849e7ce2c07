public import RoostAPI

/// Where streams stand: what a node asks that follows them for its sockets.
extension Transaction {
    /// The seq of the newest change of each stream; 0 for one that has none.
    public func heads(of streams: some Collection<StreamID>) throws -> [StreamID: Seq] {
        var heads = Dictionary(streams.map { ($0, Seq(0)) }, uniquingKeysWith: max)
        var channels: [String] = []
        var users: [String] = []
        for stream in heads.keys {
            switch stream {
            case .channel(let id): channels.append(id.rawValue)
            case .user(let id): users.append(id.rawValue)
            }
        }
        for part in channels.chunked(by: 512) {
            try each("SELECT channel_id, seq FROM channel_heads WHERE channel_id IN (\(list: part))") { row in
                heads[.channel(row.identifier())] = row.int64()
            }
        }
        for part in users.chunked(by: 512) {
            try each("SELECT user_id, seq FROM user_heads WHERE user_id IN (\(list: part))") { row in
                heads[.user(row.identifier())] = row.int64()
            }
        }
        return heads
    }

    /// The streams whose events a user gets: the user's own and those of the channels that the user is a member of, each with its head.
    public func streams(of user: UserID) throws -> (user: Seq, channels: [ChannelID: Seq]) {
        let head = try streamHead(of: user)
        var channels: [ChannelID: Seq] = [:]
        let sql: SQL = """
            SELECT m.channel_id, h.seq FROM members m
            JOIN channels c ON c.channel_id = m.channel_id
            JOIN channel_heads h ON h.channel_id = m.channel_id
            WHERE m.user_id = \(user) AND m.state = \(MembershipState.member) AND c.deleted_at IS NULL
            """
        try each(sql) { row in channels[row.identifier()] = row.int64() }
        return (head, channels)
    }
}
