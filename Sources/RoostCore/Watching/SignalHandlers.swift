public import RoostAPI

extension StartTyping: Handled {
    public static var isSignal: Bool { true }
    public static var userRate: UserRate? { .signals }

    public func handle(in context: inout Context) throws -> Done {
        let access = try context.require(.messageSend, in: channel)
        guard access.policy.typingEvents else {
            throw RoostError(.featureDisabled, "This channel doesn't share who is typing.", rule: PolicyName.typingEvents.rawValue)
        }
        // Not sharing it is no error.
        guard try context.transaction.preferences(of: context.caller.user).sharesTyping else { return Done() }
        context.notify(.typing(context.caller.user, access.channelId))
        return Done()
    }
}

extension StopTyping: Handled {
    public static var isSignal: Bool { true }
    public static var userRate: UserRate? { .signals }

    public func handle(in context: inout Context) throws -> Done {
        try context.require(.streamRead)
        // A user who may no longer send can still stop. Nobody types in a nonexistent channel, so no node is notified.
        guard let access = try context.transaction.access(to: channel, of: context.caller.user) else { return Done() }
        context.notify(.stoppedTyping(context.caller.user, access.channelId))
        return Done()
    }
}

extension SendSignal: Handled {
    public static var isSignal: Bool { true }
    public static var userRate: UserRate? { .signals }

    public func handle(in context: inout Context) throws -> Done {
        let access = try context.require(.messageSend, in: channel)
        let signal = Signal(
            kind: .custom, channel: access.channelId, sender: context.caller.user,
            custom: CustomSignal(type: type, metadata: metadata))
        try context.notify(signal)
        return Done()
    }
}

extension Context {
    /// Sends a user's current profile to each channel that they are a member of, or have recently left after sending something.
    ///
    /// - Parameter formerMax: The number of channels, the most recently changed for the user first, that are checked for having
    ///   been left and sent to. A user can join and leave any number.
    /// - Returns: The number of channels.
    @discardableResult
    public mutating func reportProfile(of user: UserID, formerMax: Int = 2500) throws -> Int {
        guard let shown = try transaction.summaries(of: [user]).first else { return 0 }
        let current: SQL = """
            SELECT m.channel_id FROM members m JOIN channel_heads h ON h.channel_id = m.channel_id
            WHERE m.user_id = \(user) AND m.state = \(MembershipState.member) AND m.is_channel_deleted = 0 AND h.is_deleted = 0
            """
        let former: SQL = """
            SELECT m.channel_id
            FROM (SELECT channel_id, state, last_sent_seq FROM members WHERE user_id = \(user)
                  ORDER BY user_seq DESC LIMIT \(formerMax)) m
                JOIN channel_heads h ON h.channel_id = m.channel_id
            WHERE m.state = \(MembershipState.none) AND m.last_sent_seq > 0 AND h.is_deleted = 0
            """
        let channels: [ChannelID] = try [current, former].flatMap { try transaction.rows($0) { $0.identifier() } }
        for channel in channels { notify(.profileShown(shown, channel)) }
        return channels.count
    }

    /// Sends a signal of a channel to its current readers; to nobody if the channel is gone.
    ///
    /// Typing is sent to all members, but in a large channel only to those watching: it would be a write to every socket. Read
    /// positions change with each message, and are sent to all members only in a small channel. So are new names, which lists
    /// of small channels show. Other signals are for watchers.
    public mutating func notify(_ signal: Signal) throws {
        // No user's id is empty.
        guard let access = try transaction.access(to: signal.channel, of: ""), access.deletedAt == nil else { return }
        let readers = try transaction.readers(of: access.policy)
        switch signal.kind {
        case .typingChanged where !access.policy.typingEvents, .readUpdated where !access.policy.readEvents: return
        default: break
        }
        let membersMax =
            switch signal.kind {
            case .typingChanged: Limits.largeChannelMembers
            case .readUpdated, .usersChanged: Limits.receiptMembers
            default: 0
            }
        let isForAll = access.counters.memberCount <= membersMax
        var signal = signal
        // Users who no longer share it are left out from then on, on every node.
        if let typing = signal.typing?.users, !typing.isEmpty {
            let silent: SQL = "SELECT user_id FROM users WHERE user_id IN (\(list: typing.map(\.rawValue))) AND shares_typing = 0"
            let users: [UserID] = try transaction.rows(silent) { $0.identifier() }
            signal.typing?.users.removeAll { users.contains($0) }
        }
        if let read = signal.read, !read.readers.isEmpty {
            signal.read?.readers = try transaction.shown(read.readers, in: access, to: readers)
            if read.isWhole, signal.read?.readers.isEmpty == true { return }
        }
        notify(.signal(signal, isForAll ? .channel(signal.channel, readers) : .watchers(signal.channel, readers)))
    }
}

extension Transaction {
    /// Returns the positions that others may still know: those of members who may read the channel and share their positions.
    fileprivate func shown(_ positions: [ReadPosition], in access: ChannelAccess, to readers: Readers) throws -> [ReadPosition] {
        let sql: SQL = """
            SELECT m.user_id, u.shares_delivery FROM members m JOIN users u ON u.user_id = m.user_id AND u.shares_reading = 1
            WHERE m.channel_id = \(access.channelId) AND m.user_id IN (\(list: positions.map(\.userId.rawValue)))
                  AND m.state = \(MembershipState.member) AND \(readers.containing(role: "m.role"))
            """
        let sharesDelivery = Dictionary(
            try rows(sql) { (try $0.value() as UserID, $0.bool()) }, uniquingKeysWith: { first, _ in first })
        return positions.compactMap { position in
            guard let isDeliveryShown = sharesDelivery[position.userId] else { return nil }
            var position = position
            if !isDeliveryShown { (position.deliveredSeq, position.lastDeliveredAt) = (nil, nil) }
            return position
        }
    }
}
