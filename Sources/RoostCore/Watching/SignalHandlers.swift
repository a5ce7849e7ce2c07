public import RoostAPI

extension StartTyping: Handled {
    public static var isTold: Bool { true }
    public static var userRate: UserRate? { .ofSignals }

    public func handle(in context: inout Context) throws -> Done {
        let access = try context.require(.messageSend, in: channel)
        guard access.policy.typingEvents else {
            throw RoostError(.featureDisabled, "Nobody is told who types in this channel.", rule: PolicyName.typingEvents.rawValue)
        }
        // Whoever doesn't share it does nothing wrong.
        guard try context.transaction.preferences(of: context.caller.user).sharesTyping else { return Done() }
        context.tell(.typing(context.caller.user, access.channelId))
        return Done()
    }
}

extension StopTyping: Handled {
    public static var isTold: Bool { true }
    public static var userRate: UserRate? { .ofSignals }

    public func handle(in context: inout Context) throws -> Done {
        try context.require(.streamRead)
        // Whoever may not send any more still stops. In a channel that isn't there nobody types, and no node is told.
        guard let access = try context.transaction.access(to: channel, of: context.caller.user) else { return Done() }
        context.tell(.stoppedTyping(context.caller.user, access.channelId))
        return Done()
    }
}

extension SendSignal: Handled {
    public static var isTold: Bool { true }
    public static var userRate: UserRate? { .ofSignals }

    public func handle(in context: inout Context) throws -> Done {
        let access = try context.require(.messageSend, in: channel)
        let signal = Signal(
            kind: .custom, channel: access.channelId, sender: context.caller.user,
            custom: CustomSignal(type: type, metadata: metadata))
        try context.tell(signal)
        return Done()
    }
}

extension Context {
    /// Tells what is shown of a user by now, in each channel of which they are a member, or were one lately and have sent something.
    ///
    /// - Parameter formerMax: In how many channels, those first in which something changed last for the user, it is looked whether they have left it and sent
    ///   something there. One can join and leave any number.
    /// - Returns: In how many channels.
    @discardableResult
    public mutating func tellProfile(of user: UserID, formerMax: Int = 2500) throws -> Int {
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
        for channel in channels { tell(.profileShown(shown, channel)) }
        return channels.count
    }

    /// Sends a signal of a channel to those who may read it by now; to nobody if the channel is gone.
    ///
    /// Who types is told to all members, but in a large channel only to those who look at it: it would be a write to everybody's socket. Who has read is
    /// news with each message, and told to all members of a small channel alone, as are new names: lists show those of small channels. Other signals are for those who look.
    public mutating func tell(_ signal: Signal) throws {
        // Nobody's id is empty.
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
        // Who doesn't share it any more is left out from then on, on every node.
        if let typing = signal.typing?.users, !typing.isEmpty {
            let silent: SQL = "SELECT user_id FROM users WHERE user_id IN (\(list: typing.map(\.rawValue))) AND shares_typing = 0"
            let users: [UserID] = try transaction.rows(silent) { $0.identifier() }
            signal.typing?.users.removeAll { users.contains($0) }
        }
        if let read = signal.read, !read.readers.isEmpty {
            signal.read?.readers = try transaction.shown(read.readers, in: access, to: readers)
            if read.isWhole, signal.read?.readers.isEmpty == true { return }
        }
        tell(.signal(signal, isForAll ? .channel(signal.channel, readers) : .watchers(signal.channel, readers)))
    }
}

extension Transaction {
    /// Returns those of some positions that others may still know by now: of members who may read the channel and share how far they have.
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
