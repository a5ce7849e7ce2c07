package import RoostAPI

/// The pushes that one effect hands off.
package struct Pushes: Sendable {
    package var notifications: [PushNotification] = []
    /// The channel's seq up to which they are complete.
    package var upTo: Seq = 0

    /// The maximum number of messages per effect. The next effect hands off the following ones.
    static let messagesMax = 100
    /// The lifetime of a push for a message that isn't stored: an hour.
    static let unstoredMilliseconds: Int64 = 3_600_000
}

extension Message {
    /// Whether members are pushed the message: a message that never counts as unread isn't pushed.
    fileprivate var isPushed: Bool { deletedAt == nil && content.pushOption != .suppress && Unread.counts(self) }

    /// Whether it is pushed to users other than those it mentions by name (D-20).
    fileprivate func isPushedToAll(at level: AppOptions.PushLevel, mentioningChannel: Bool) -> Bool {
        switch level {
        case .all: true
        case .mentionsOnly: mentioningChannel || content.pushOption == .force
        case .none: false
        }
    }
}

// MARK: Requesting pushes

/// An effect's work: a channel's messages after a position, or one message, which has new mentions since a position or isn't stored.
private struct PushRequest: Codable {
    var channel: ChannelID
    var after: Seq
    var edited: MessageID?
    var unstored: Message?

    init(_ channel: ChannelID, after: Seq, edited: MessageID? = nil, unstored: Message? = nil) {
        (self.channel, self.after, self.edited, self.unstored) = (channel, after, edited, unstored)
    }

    init(of effect: Effect) throws { self = try StoredJSON.decode(Self.self, from: effect.payload) }

    /// The effect's subject: one effect is queued per subject.
    var subject: String {
        [channel.rawValue, edited.map { "\($0)" }, unstored.map { "\($0.seq)" }].compactMap(\.self).joined(separator: "\n")
    }
}

extension Context {
    /// Requests the pushes of a new message. Messages that follow before the hand-off are handed off with it: one row is queued per channel.
    mutating func requestPush(of message: Message, in access: ChannelAccess) throws {
        guard handsOffPushes else { return }
        let names = message.content.mentionees?.mentionedUsers ?? []
        guard isPushed(message, mentioning: names.isEmpty ? nil : names, in: access) else { return }
        var request = PushRequest(access.channelId, after: message.seq - 1)
        if access.isEphemeral {
            var place = message
            place.content = message.content.emptied
            place.content.mentionees = message.content.mentionees
            place.content.pushOption = message.content.pushOption
            request.unstored = place
        }
        try push(request)
    }

    /// Requests the pushes of a changed message, if it mentions more than before.
    mutating func requestPush(ofChanged before: Message, to after: Message, in access: ChannelAccess) throws {
        guard handsOffPushes, let new = after.content.mentionees else { return }
        let old = before.content.mentionees
        let names = new.mentionedUsers.filter { !(old?.mentionedUsers.contains($0) ?? false) }
        guard !names.isEmpty || new.mentionsChannel && old?.mentionsChannel != true,
            isPushed(after, mentioning: names.isEmpty ? nil : names, in: access)
        else { return }
        try push(PushRequest(access.channelId, after: after.changeSeq - 1, edited: after.messageId))
    }

    /// Whether a message is pushed at all. In a very large channel only users mentioned by name are pushed.
    private func isPushed(_ message: Message, mentioning names: [UserID]?, in access: ChannelAccess) -> Bool {
        let isForAll = message.isPushedToAll(
            at: options.pushLevel, mentioningChannel: message.content.mentionees?.mentionsChannel ?? false)
        // A sender who isn't a member, such as a backend, writes to all members.
        let sendersAmongMembers = access.isMember && message.sender == caller.user ? 1 : 0
        return message.isPushed && options.pushLevel != .none && access.counters.memberCount > sendersAmongMembers
            && (names != nil || isForAll && access.counters.memberCount <= Limits.largeChannelMembers)
    }

    fileprivate mutating func push(_ request: PushRequest) throws {
        // For no later than now: `effectsDue` relies on it.
        try scheduleUnlessQueued(
            .push, key: Fingerprint.of(request.subject), payload: try StoredJSON.encode(request) ?? "", at: now)
    }

    /// Requests the pushes of what arrived during a hand-off: those requests found the row queued.
    fileprivate mutating func pushRest(of request: PushRequest, after done: Seq) throws {
        guard request.unstored == nil, options.pushLevel != .none,
            let access = try transaction.access(to: request.channel, of: caller.user),
            access.deletedAt == nil, access.counters.seq > done
        else { return }
        if let edited = request.edited {
            guard let message = try transaction.message(edited, in: access.channelId), message.isPushed else { return }
            let (users, channelSeq) = try transaction.mentioned(in: message, since: done)
            guard !users.isEmpty || channelSeq != nil else { return }
        } else {
            let isLarge = access.counters.memberCount > Limits.largeChannelMembers
            guard try transaction.hasMessages(after: done, withMentionsOnly: isLarge, in: access.channelId) else { return }
        }
        try push(PushRequest(request.channel, after: done, edited: request.edited))
    }
}

extension EffectKind.Name {
    public static let push = Self(rawValue: "message.push")
}

extension EffectKind {
    /// Hands pushes off. Its outcome is the position up to which that is done: whatever arrived in the meantime is left to the next effect.
    ///
    /// It is never given up: one row stands for all messages queued behind it.
    static let push = EffectKind(
        .push, attemptsMax: .max,
        scope: { effect in (try? PushRequest(of: effect)).map { .channel($0.channel) } ?? Scope() },
        run: { effect, outcome, context in
            if let done = Seq(outcome) { try context.pushRest(of: try PushRequest(of: effect), after: done) }
        })
}

// MARK: Handing off pushes

extension Context {
    /// Returns the pushes that an effect of the kind ``EffectKind/push`` hands off, with their recipients: members who may read
    /// the message, haven't read it and haven't muted the channel.
    package func pushes(for effect: Effect) throws -> Pushes {
        let request = try PushRequest(of: effect)
        guard options.pushLevel != .none, let access = try transaction.access(to: request.channel, of: caller.user),
            access.deletedAt == nil
        else { return Pushes() }
        let (messages, upTo) = try pushed(request, in: access)
        guard let first = messages.first?.message.seq, let last = messages.last?.message.seq else { return Pushes(upTo: upTo) }
        let isLarge = access.counters.memberCount > Limits.largeChannelMembers
        let members = try transaction.pushedMembers(of: access, among: isLarge ? messages.flatMap(\.names) : nil, at: now)
        let room = PushedRoom(
            isLarge: isLarge, level: options.pushLevel, readers: try transaction.readers(of: access.policy),
            deletions: try transaction.ownDeletions(in: access, first...last))
        let name = try channel(access.channelId).displayName
        let senders = try transaction.summaries(of: Set(messages.map(\.message.sender)))
        let notifications = messages.compactMap { pushed -> PushNotification? in
            let recipients = members.filter { room.isPushed(pushed, to: $0) }
            guard !recipients.isEmpty else { return nil }
            return PushNotification(
                message: pushed.message, channelName: name, sender: senders.first { $0.userId == pushed.message.sender },
                recipients: recipients.map { PushNotification.Recipient(user: $0.user, isMentioned: pushed.mentions($0.user)) })
        }
        return Pushes(notifications: notifications, upTo: upTo)
    }

    /// Returns the messages of a request in the order of their seqs, and the position that they reach.
    private func pushed(_ request: PushRequest, in access: ChannelAccess) throws -> ([PushedMessage], upTo: Seq) {
        let (channel, cap) = (access.channelId, options.mentionNotifyCap)
        if let message = request.unstored {
            let isOver = now.milliseconds - message.createdAt.milliseconds > Pushes.unstoredMilliseconds
            return (isOver ? [] : [PushedMessage(new: message, namesMax: cap)], message.seq)
        }
        if let edited = request.edited {
            guard let message = try transaction.message(edited, in: channel), message.isPushed else {
                return ([], access.counters.seq)
            }
            let (users, channelSeq) = try transaction.mentioned(in: message, since: request.after)
            let notified = users.prefix(try notifiedMax(of: users.map(\.user), newIn: message))
            let pushed = PushedMessage(edited: message, mentioning: notified, channel: channelSeq)
            return (users.isEmpty && channelSeq == nil ? [] : [pushed], access.counters.seq)
        }
        let born = try transaction.messages(after: request.after, in: channel, limit: Pushes.messagesMax)
        let upTo = born.hasMore ? born.messages.last?.seq ?? access.counters.seq : access.counters.seq
        return (born.messages.filter(\.isPushed).map { PushedMessage(new: $0, namesMax: cap) }, upTo)
    }
}

/// The channel's part in choosing the recipients of its pushes.
private struct PushedRoom {
    let isLarge: Bool
    let level: AppOptions.PushLevel
    let readers: Readers
    /// The users who have deleted messages for themselves, by message.
    let deletions: [Seq: Set<UserID>]

    func isPushed(_ pushed: PushedMessage, to member: PushedMember) -> Bool {
        let message = pushed.message
        let isForAll = pushed.isForAll && !isLarge && message.isPushedToAll(at: level, mentioningChannel: pushed.mentionsChannel)
        let seq = pushed.seq(for: member.user)
        return member.user != message.sender && message.seq > member.historyFloor && seq > member.joinedSeq
            && seq > member.readSeq && (!member.isMuted || message.content.pushOption == .force)
            && (isForAll || pushed.names.contains(member.user))
            && readers.contain(.user, as: member.role) && !(deletions[message.seq]?.contains(member.user) ?? false)
    }
}

/// A message to be pushed, with its new mentions.
private struct PushedMessage {
    let message: Message
    /// The users mentioned by name, as many as are notified.
    var names: [UserID]
    /// Whether it newly mentions the whole channel.
    var mentionsChannel: Bool
    /// Whether it is pushed to everyone, and not only to the users it mentions.
    var isForAll: Bool
    /// The position from which it is unread for the recipients. For an edited message: that of the channel's mention, and those
    /// of the users mentioned by name.
    private let seq: Seq
    private var seqs: [UserID: Seq] = [:]

    init(new message: Message, namesMax: Int) {
        let mentionees = message.content.mentionees
        self.message = message
        names = Array((mentionees?.mentionedUsers ?? []).lazy.filter { $0 != message.sender }.prefix(namesMax))
        mentionsChannel = mentionees?.mentionsChannel ?? false
        isForAll = true
        seq = message.seq
    }

    /// - Parameters:
    ///   - names: The users mentioned by name, each with the position of the edit that mentioned them.
    ///   - channel: The position of the edit that mentioned the whole channel.
    init(edited message: Message, mentioning names: ArraySlice<(user: UserID, seq: Seq)>, channel: Seq?) {
        self.message = message
        self.names = names.map(\.user)
        mentionsChannel = channel != nil
        isForAll = channel != nil
        seq = channel ?? 0
        for (user, seq) in names { seqs[user] = max(seq, self.seq) }
    }

    func seq(for user: UserID) -> Seq { seqs[user] ?? seq }

    func mentions(_ user: UserID) -> Bool { mentionsChannel || names.contains(user) }
}

/// A possible recipient.
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
    /// Returns the members of a channel who are neither banned nor deactivated, in the order of their ids.
    ///
    /// - Parameter users: The users to consider; nil for all.
    fileprivate func pushedMembers(
        of access: ChannelAccess, among users: [UserID]?, at now: Timestamp
    ) throws -> [PushedMember] {
        let start: SQL = """
            SELECT m.user_id, m.role, m.joined_seq, m.read_seq, m.history_floor, m.notifications_muted_until, m.banned_until
            FROM members m JOIN users u ON u.user_id = m.user_id
            WHERE m.channel_id = \(access.channelId) AND m.state = \(MembershipState.member) AND u.deactivated_at IS NULL
            """
        let named: [SQL]? = users.map { users in
            Set(users).sorted().map(\.rawValue).chunked(by: 512).map { " AND m.user_id IN (\(list: $0)) ORDER BY m.user_id" as SQL }
        }
        // Along the index of current members: by their ids, rows of former ones would be passed too, of whom there may be any number.
        let parts = named ?? [" ORDER BY m.joined_seq, m.user_id"]
        let members: [PushedMember] = try parts.flatMap { part in
            try rows("\(start)\(part)") { row -> PushedMember? in
                let member = PushedMember(
                    user: try row.value(), role: try row.value(), joinedSeq: row.int64(), readSeq: row.int64(),
                    historyFloor: row.int64(), isMuted: row.optionalTimestamp() != nil)
                let isBanned = row.optionalTimestamp().map { $0 > now } ?? false
                return isBanned ? nil : member
            }.compactMap(\.self)
        }
        return members.sorted { $0.user < $1.user }
    }
}
