public import RoostAPI

extension WatchChannel: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel) }
    public var presenceChannel: ChannelID? { channel }

    public func handle(in context: inout Context) throws -> WatchedChannel {
        let connection = try context.requireConnection()
        let access = try context.require(.channelWatch, in: channel)
        let (caller, channel) = (context.caller.user, access.channelId)
        context.tell(.watching(connection, caller, channel, at: access.counters.seq))

        let watchers = context.presence.watchers(of: channel).union([caller])
        let transaction = context.transaction
        let shown = try watchers.sorted().prefix(Limits.watchMembers).compactMap { try transaction.user($0) }
        let members = try context.someMembers(of: access)
        let limit = try Limits.page(limit, Limits.historyPage)
        let (messages, hasOlder) = try transaction.messages(
            before: .max, above: access.historyFloor, in: channel, limit: limit)
        return WatchedChannel(
            config: access.policy, channel: try context.channel(channel), membership: access.membership,
            online: context.presence.onlineMemberCount(of: channel), watcherCount: watchers.count,
            watchers: Dictionary(uniqueKeysWithValues: shown.map { ($0.userId.rawValue, $0) }),
            members: members.mapValues(\.member), read: members.mapValues(\.read),
            messages: MessagePage(
                messages: messages, hasOlder: hasOlder, hasNewer: false, seq: access.counters.seq,
                users: try context.summaries(for: messages)),
            ownCapabilities: context.capabilities(in: access))
    }
}

extension UnwatchChannel: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel) }

    public func handle(in context: inout Context) throws -> Done {
        let connection = try context.requireConnection()
        try context.require(.streamRead)
        let watched = try context.transaction.access(to: channel, of: context.caller.user)?.channelId ?? channel
        context.tell(.stoppedWatching(connection, context.caller.user, watched))
        return Done()
    }
}

extension Context {
    /// Watching is something that a connection does (ST-02).
    fileprivate func requireConnection() throws -> ConnectionID {
        guard let connection = caller.connection else {
            throw RoostError(.notConnected, "Watching needs a WebSocket: over HTTP there is no connection that could watch.")
        }
        return connection
    }

    fileprivate func someMembers(of access: ChannelAccess) throws -> [String: (member: Member, read: ReadState)] {
        let sql: SQL = """
            SELECT \(Member.columns), m.read_seq, m.last_read_at, \(Unread.readCount(of: "m", purgedSeq: "\(access.purgedSeq)")),
                (SELECT u.shares_reading FROM users u WHERE u.user_id = m.user_id)
            FROM members m
            WHERE m.channel_id = \(access.channelId) AND m.state = \(MembershipState.member)
            ORDER BY m.user_id LIMIT \(Limits.watchMembers)
            """
        let pairs = try transaction.rows(sql) { row in
            let member = try Member(reading: &row)
            let readSeq = row.int64()
            let lastReadAt = row.optionalTimestamp()
            let unread = max(0, access.counters.ordinal - row.int())
            return (
                member.userId.rawValue,
                (member: member, read: ReadState(readSeq: readSeq, lastReadAt: lastReadAt, unreadCount: unread))
            )
        }
        return Dictionary(uniqueKeysWithValues: pairs)
    }
}
