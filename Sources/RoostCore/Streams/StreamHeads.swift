public import RoostAPI

extension SQL {
    /// The position of a member `m`'s own stream, as a column; NULL before its first change.
    static let memberStreamHead: SQL = "(SELECT seq FROM user_heads WHERE user_id = m.user_id)"
}

/// The positions of streams, for a node that follows them for its sockets.
extension Transaction {
    /// Returns the seq of the newest change of each stream; 0 for one without changes.
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

    /// Returns the seq of the newest change of a user's own stream; 0 before the first.
    func streamHead(of user: UserID) throws -> Seq {
        try first("SELECT seq FROM user_heads WHERE user_id = \(user)") { $0.int64() } ?? 0
    }

    /// Returns the streams whose events a user gets: the user's own and those of the channels that the user is a member of.
    public func streams(of user: UserID) throws -> UserStreams {
        var streams = UserStreams(user: try streamHead(of: user))
        streams.sharesPresence = try sharesPresence(user)
        let own: SQL = """
            SELECT m.channel_id, h.seq, m.history_floor, m.role FROM members m
            JOIN channel_heads h ON h.channel_id = m.channel_id
            WHERE m.user_id = \(user) AND m.state = \(MembershipState.member) AND m.is_channel_deleted = 0 AND h.is_deleted = 0
            """
        try each(own) { row in
            let channel: ChannelID = row.identifier()
            streams.channels[channel] = row.int64()
            let floor = row.int64()
            let role = ChannelRole(rawValue: row.string())
            if role != .member { streams.roles[channel] = role }
            if floor > 0 { streams.floors[channel] = floor }
        }
        // A user can leave any number of channels. Replacements for missed events also carry floors: this covers the moment
        // between two nodes' commits.
        let former: SQL = """
            SELECT m.channel_id, m.history_floor FROM members m
            JOIN channel_heads h ON h.channel_id = m.channel_id
            WHERE m.user_id = \(user) AND m.user_seq > \(streams.user - Seq(UserStreams.formerFloorsMax)) AND m.state <> \(MembershipState.member)
                AND m.history_floor > 0 AND h.is_deleted = 0
            ORDER BY m.user_seq DESC LIMIT \(UserStreams.formerFloorsMax)
            """
        try each(former) { streams.floors[$0.identifier()] = $0.int64() }
        return streams
    }
}

/// The streams whose events a user gets, at one moment.
public struct UserStreams: Hashable, Sendable {
    /// The seq of the newest change of the user's own stream.
    public var user: Seq
    /// The channels that the user is a member of, each with the seq of its newest change.
    public var channels: [ChannelID: Seq] = [:]
    /// The seq up to which a channel's messages are hidden from the user (SB-14, SB-26); channels without a floor aren't listed.
    ///
    /// Channels that the user has left recently are listed, up to a thousand: a lagging node may still have to deliver events
    /// of a membership that has ended.
    public var floors: [ChannelID: Seq] = [:]
    /// The number of recently left channels listed.
    static let formerFloorsMax = 1000
    /// The user's role in a channel; channels in which it is `member` aren't listed.
    public var roles: [ChannelID: ChannelRole] = [:]
    /// The app role of the connection.
    public var appRole: AppRole = .user
    /// Whether others see that the user is online.
    public var sharesPresence: Bool = true

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        user: Seq, channels: [ChannelID: Seq] = [:], floors: [ChannelID: Seq] = [:], roles: [ChannelID: ChannelRole] = [:],
        appRole: AppRole = .user, sharesPresence: Bool = true
    ) {
        self.user = user
        self.channels = channels
        self.floors = floors
        self.roles = roles
        self.appRole = appRole
        self.sharesPresence = sharesPresence
    }
}
