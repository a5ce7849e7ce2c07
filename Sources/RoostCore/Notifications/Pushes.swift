package import RoostAPI

/// What one effect hands over.
package struct Pushes: Sendable {
    package var notifications: [PushNotification] = []
    /// The channel's seq up to which they have everything.
    package var upTo: Seq = 0

    /// The most messages of one effect. Those after them are handed over by the next one.
    static let messagesMax = 100
}

extension Message {
    /// Whether members are pushed the message: what counts as unread for nobody is pushed to nobody.
    fileprivate var isPushed: Bool { deletedAt == nil && content.pushOption != .suppress && Unread.counts(self) }
}

// MARK: Asking for it

/// What an effect is to hand over: a channel's messages after a position, or one that isn't stored.
private struct PushRequest: Codable {
    var channel: ChannelID
    var after: Seq
    var unstored: Message?

    init(_ channel: ChannelID, after: Seq, unstored: Message? = nil) {
        (self.channel, self.after, self.unstored) = (channel, after, unstored)
    }

    init(of effect: Effect) throws { self = try StoredJSON.decode(Self.self, from: effect.payload) }
}

extension Context {
    /// Asks for the pushes of a new message. Messages that come before it is handed over go with it: one row waits for each channel.
    mutating func requestPush(of message: Message, in access: ChannelAccess) throws {
        try requestPush(of: message, mentionsNames: message.content.mentionees?.mentionedUsers.isEmpty == false, in: access)
    }

    /// Asks for the pushes of a message that was changed, if it mentions more than before.
    mutating func requestPush(ofChanged before: Message, to after: Message, in access: ChannelAccess) throws {
        guard handsOffPushes, let new = after.content.mentionees else { return }
        let old = before.content.mentionees
        let names = Set(new.mentionedUsers).subtracting(old?.mentionedUsers ?? [])
        guard !names.isEmpty || new.mentionsChannel && old?.mentionsChannel != true else { return }
        try requestPush(of: after, mentionsNames: !names.isEmpty, in: access)
    }

    /// - Parameter mentionsNames: Whether it newly mentions users by name: in a channel of very many members, they alone are pushed.
    private mutating func requestPush(of message: Message, mentionsNames: Bool, in access: ChannelAccess) throws {
        guard handsOffPushes, message.isPushed, access.counters.memberCount > 1,
            mentionsNames || access.counters.memberCount <= Limits.largeChannelMembers
        else { return }
        if access.isEphemeral {
            var place = message
            place.content = message.content.emptied
            place.content.mentionees = message.content.mentionees
            place.content.pushOption = message.content.pushOption
            return try push(PushRequest(access.channelId, after: message.seq - 1, unstored: place))
        }
        try push(PushRequest(access.channelId, after: message.changeSeq - 1))
    }

    fileprivate mutating func push(_ request: PushRequest) throws {
        let place = request.unstored.map { "\n\($0.seq)" } ?? ""
        try laterUnlessWaiting(
            .push, key: Fingerprint.of(request.channel.rawValue + place), payload: try StoredJSON.encode(request) ?? "", at: now)
    }
}

extension EffectKind.Name {
    public static let push = Self(rawValue: "message.push")
}

extension EffectKind {
    /// Hands pushes of a channel over. Its outcome is the position up to which that is done: what came meanwhile is the next effect's.
    static let push = EffectKind(
        .push,
        scope: { effect in (try? PushRequest(of: effect)).map { .channel($0.channel) } ?? Scope() },
        run: { effect, outcome, context in
            let request = try PushRequest(of: effect)
            guard request.unstored == nil, let done = Seq(outcome),
                let access = try context.transaction.access(to: request.channel, of: context.caller.user),
                access.deletedAt == nil, access.counters.seq > done
            else { return }
            try context.push(PushRequest(request.channel, after: done))
        })
}

// MARK: Handing it over

extension Context {
    /// Returns what an effect of the kind ``EffectKind/push`` is to hand over, and whom: members who may read the message, haven't read it and haven't muted
    /// the channel.
    package func pushes(for effect: Effect) throws -> Pushes {
        let request = try PushRequest(of: effect)
        guard let access = try transaction.access(to: request.channel, of: caller.user), access.deletedAt == nil else {
            return Pushes()
        }
        let (messages, upTo) = try pushed(request, in: access)
        guard !messages.isEmpty else { return Pushes(upTo: upTo) }
        let members = try transaction.pushedMembers(
            of: access,
            among: access.counters.memberCount > Limits.largeChannelMembers ? messages.flatMap(\.names) : nil, at: now)
        let name = try channel(access.channelId).displayName
        let senders = try transaction.summaries(of: Set(messages.map(\.message.sender)))
        let notifications = try messages.compactMap { pushed -> PushNotification? in
            let recipients = try members.filter { try isPushed(pushed, to: $0, in: access) }
            guard !recipients.isEmpty else { return nil }
            return PushNotification(
                message: pushed.message, channelName: name, sender: senders.first { $0.userId == pushed.message.sender },
                recipients: recipients.map { PushNotification.Recipient(user: $0.user, isMentioned: pushed.mentions($0.user)) })
        }
        return Pushes(notifications: notifications, upTo: upTo)
    }

    /// Returns the messages of a request, and the position that they reach.
    private func pushed(_ request: PushRequest, in access: ChannelAccess) throws -> ([PushedMessage], upTo: Seq) {
        let cap = options.mentionNotifyCap
        if let message = request.unstored { return ([PushedMessage(new: message, namesMax: cap)], message.seq) }
        let limit = Pushes.messagesMax
        let born = try transaction.messages(after: request.after, in: access.channelId, limit: limit)
        let changed = try transaction.messages(changedAfter: request.after, above: 0, in: access.channelId, limit: limit)
        let ends = [born.hasMore ? born.messages.last?.seq : nil, changed.hasMore ? changed.messages.last?.changeSeq : nil]
        let upTo = ends.compactMap(\.self).min() ?? access.counters.seq
        let new = born.messages.filter { $0.isPushed && $0.seq <= upTo }.map { PushedMessage(new: $0, namesMax: cap) }
        let edited = try changed.messages.filter { $0.isPushed && $0.changeSeq <= upTo }.compactMap { message in
            let (users, isOfChannel) = try transaction.mentioned(in: message, since: request.after)
            return users.isEmpty && !isOfChannel
                ? nil : PushedMessage(edited: message, mentioning: Array(users.prefix(cap)), channel: isOfChannel)
        }
        return (new + edited, upTo)
    }

    private func isPushed(_ pushed: PushedMessage, to member: PushedMember, in access: ChannelAccess) throws -> Bool {
        let message = pushed.message
        guard member.user != message.sender, message.seq > member.historyFloor, pushed.seq > member.joinedSeq,
            pushed.seq > member.readSeq, !member.isMuted || message.content.pushOption == .force,
            pushed.isForAll && access.counters.memberCount <= Limits.largeChannelMembers || pushed.names.contains(member.user),
            try transaction.readers(of: access.policy).contain(.user, as: member.role)
        else { return false }
        return try !isDeleted(message.seq, for: member.user, in: access)
    }
}

/// A message to be pushed, with those whom it newly mentions.
private struct PushedMessage {
    let message: Message
    /// Those mentioned by name, as many of them as are told.
    var names: [UserID]
    /// Whether it newly mentions the whole channel.
    var mentionsChannel: Bool
    /// Whether everybody is pushed, and not only those whom it mentions.
    var isForAll: Bool
    /// The position from which it is unread for those who are pushed.
    var seq: Seq

    init(new message: Message, namesMax: Int) {
        let mentionees = message.content.mentionees
        self.message = message
        names = Array((mentionees?.mentionedUsers ?? []).prefix(namesMax))
        mentionsChannel = mentionees?.mentionsChannel ?? false
        isForAll = true
        seq = message.seq
    }

    init(edited message: Message, mentioning names: [UserID], channel: Bool) {
        self.message = message
        self.names = names
        mentionsChannel = channel
        isForAll = channel
        seq = message.changeSeq
    }

    func mentions(_ user: UserID) -> Bool { mentionsChannel || names.contains(user) }
}

/// A member who may be pushed.
private struct PushedMember {
    let user: UserID
    let role: ChannelRole
    let joinedSeq: Seq
    let readSeq: Seq
    let historyFloor: Seq
    /// Whether they have muted the channel for themselves (D-29).
    let isMuted: Bool
}

extension Transaction {
    /// Returns the members of a channel who are neither banned nor deactivated.
    ///
    /// - Parameter users: Those in question; nil for all.
    fileprivate func pushedMembers(
        of access: ChannelAccess, among users: [UserID]?, at now: Timestamp
    ) throws -> [PushedMember] {
        let among: SQL = users.map { " AND m.user_id IN (\(list: Set($0.map(\.rawValue)).sorted()))" } ?? ""
        if users?.isEmpty == true { return [] }
        let sql: SQL = """
            SELECT m.user_id, m.role, m.joined_seq, m.read_seq, m.history_floor, m.notifications_muted_until, m.banned_until
            FROM members m JOIN users u ON u.user_id = m.user_id
            WHERE m.channel_id = \(access.channelId) AND m.state = \(MembershipState.member) AND u.deactivated_at IS NULL\(among)
            ORDER BY m.user_id LIMIT \(Int64(Limits.largeChannelMembers) + 1)
            """
        return try rows(sql) { row -> PushedMember? in
            let member = PushedMember(
                user: try row.value(), role: try row.value(), joinedSeq: row.int64(), readSeq: row.int64(),
                historyFloor: row.int64(), isMuted: row.optionalTimestamp() != nil)
            let isBanned = row.optionalTimestamp().map { $0 > now } ?? false
            return isBanned ? nil : member
        }.compactMap(\.self)
    }
}
