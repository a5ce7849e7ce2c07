import RoostAPI

/// The users a message mentions, out of those its sender named.
struct Mentions {
    /// The stored form: nil for none.
    var mentionees: [Mentionee]?
    /// The users mentioned by name, each once.
    var users: [UserID] = []
    /// Whether the whole channel is mentioned.
    var isOfChannel = false
    /// Named users who can't be mentioned.
    var dropped: [UserID] = []
}

extension Context {
    /// Returns the mentions of a message of the caller: the named users who are members, may read it and aren't banned (MN-17).
    ///
    /// - Parameter seq: The seq of an existing message. Users who joined after it and don't see earlier messages aren't mentioned.
    /// - Throws: The refusal of mentioning in this channel, `mention_limit`, `mention_all_disabled`.
    func mentions(of named: [Mentionee]?, in access: ChannelAccess, at seq: Seq? = nil) throws -> Mentions {
        guard let named, !named.isEmpty else { return Mentions() }
        try require(.messageMention, in: access)
        let users = named.mentionedUsers
        guard users.count <= options.mentionsPerMessage else {
            throw RoostError(
                .mentionLimit, "A message mentions at most \(options.mentionsPerMessage) users.", field: "mentionees",
                limit: Int64(options.mentionsPerMessage))
        }
        var mentions = Mentions(isOfChannel: named.mentionsChannel)
        if mentions.isOfChannel, !options.isMentionAllEnabled {
            throw RoostError(.mentionAllDisabled, "Mentioning a whole channel is disabled in this app.", field: "mentionees")
        }
        for user in users {
            if try canBeMentioned(user, in: access.channelId, at: seq) {
                mentions.users.append(user)
            } else {
                mentions.dropped.append(user)
            }
        }
        mentions.mentionees = .mentioning(mentions.users, channel: mentions.isOfChannel)
        return mentions
    }

    /// Returns the mentions of an undeleted message: its former ones that are possible now, if the caller may mention here.
    func mentionsAgain(_ mentionees: [Mentionee]?, in access: ChannelAccess, at seq: Seq) throws -> [Mentionee]? {
        guard let mentionees, refusal(of: .messageMention, in: access) == nil else { return nil }
        let users = try mentionees.mentionedUsers.filter { try canBeMentioned($0, in: access.channelId, at: seq) }
        return .mentioning(users, channel: mentionees.mentionsChannel && options.isMentionAllEnabled)
    }

    private func canBeMentioned(_ user: UserID, in channel: ChannelID, at seq: Seq?) throws -> Bool {
        guard let theirs = try transaction.access(to: channel, of: user), theirs.isMember, let member = theirs.member else {
            return false
        }
        // Other users mustn't learn what members have hidden from themselves: such a message still mentions them, without notifying them.
        if let seq, seq <= member.row.historyFloor, seq <= member.row.joinedSeq {
            let joinedFloor = try transaction.joinedFloor(of: user, in: channel) ?? member.row.historyFloor
            if seq <= joinedFloor { return false }
        }
        return Permissions.refusal(of: .historyRead, for: .user, in: theirs.facts, now: now) == nil
    }

    /// Returns how many of the users whom a message newly mentions by name are notified. Together with those it already
    /// mentions, and those it no longer mentions, they are at most the app's limit per message (SB-45). Otherwise edits could
    /// notify any number of users.
    func notifiedMax(of users: [UserID], newIn message: Message) throws -> Int {
        let known = (message.mentionees?.mentionedUsers ?? []).count { $0 != message.sender && !users.contains($0) }
        // An unchanged message has taken no mention back.
        let ended = users.isEmpty || message.changeSeq == message.seq ? 0 : try transaction.endedMentionCount(of: message)
        return max(0, options.mentionNotifyCap - known - ended)
    }

    /// Mentions users in a message from a seq on, and notifies some of them (``notifiedMax(of:newIn:)``). Senders don't mention themselves.
    mutating func mention(_ users: [UserID], in message: Message, at seq: Seq) throws {
        let notifiedMax = try notifiedMax(of: users, newIn: message)
        var notifiedCount = 0
        for user in users where user != message.sender {
            guard var theirs = try transaction.access(to: message.channelId, of: user), theirs.isMember, var member = theirs.member,
                message.seq > member.row.historyFloor, try !isDeleted(message.seq, for: user, in: theirs)
            else { continue }
            try transaction.bypassingBatchMemory {
                try transaction.perform(
                    """
                    INSERT INTO mentions (user_id, message_id, channel_id, seq, mention_seq)
                    VALUES (\(user), \(message.messageId), \(message.channelId), \(message.seq), \(seq))
                    """)
            }
            member.row.mentionSeq = seq
            member.row.mentionMessage = message.messageId
            theirs.member = member
            let isNotified = notifiedCount < notifiedMax
            if isNotified { notifiedCount += 1 }
            try reportMention(isNotified ? .mentionReceived : .readingMarked, user, &theirs, by: caller.actor)
        }
    }

    /// Ends mentions of users in a message that was edited or deleted. Users for whom it was the newest are sent their newest one now.
    ///
    /// - Parameter actor: The user who did it; nil if nobody is to know.
    mutating func endMentions(of users: [UserID], in message: Message, by actor: UserID?) throws {
        for user in users where user != message.sender {
            try transaction.deleteMention(of: user, in: message)
            guard var theirs = try transaction.access(to: message.channelId, of: user), theirs.isMember, var member = theirs.member,
                member.row.mentionMessage == message.messageId
            else { continue }
            try member.row.setMention(transaction.newestMention(of: user, in: message.channelId, above: member.row.historyFloor))
            theirs.member = member
            try reportMention(.readingMarked, user, &theirs, by: actor)
        }
    }

    /// Ends the caller's mentions in messages that the caller has deleted for themselves.
    ///
    /// - Returns: The membership to send, if the newest mention was among them.
    func endOwnMentions(in messages: [Message], _ access: inout ChannelAccess, at userSeq: Seq) throws -> Membership? {
        let user = caller.user
        for message in messages where message.mentionees?.mentionedUsers.contains(user) ?? false {
            try transaction.deleteMention(of: user, in: message)
        }
        guard var member = access.member, messages.contains(where: { $0.messageId == member.row.mentionMessage }) else {
            return nil
        }
        try member.row.setMention(transaction.newestMention(of: user, in: access.channelId, above: member.row.historyFloor))
        member.row.userSeq = userSeq
        access.member = member
        try transaction.writeMention(member, of: user, in: access.channelId)
        return access.membership
    }

    /// Sets a membership's newest mention to that of all messages that its user can see: mentions from before they left and
    /// rejoined may be unread again.
    func renewMention(of row: inout Membership) throws {
        try row.setMention(transaction.newestMention(of: caller.user, in: row.channelId, above: row.historyFloor))
    }

    /// Sends a user their newest mention. Users who may not read the channel don't learn the actor, as on the channel's stream.
    private mutating func reportMention(
        _ kind: Event.Kind, _ user: UserID, _ theirs: inout ChannelAccess, by actor: UserID?
    ) throws {
        guard var member = theirs.member else { return }
        member.row.userSeq = try advanceStream(of: user)
        theirs.member = member
        try transaction.writeMention(member, of: user, in: theirs.channelId)
        let mayRead = Permissions.refusal(of: .historyRead, for: .user, in: theirs.facts, now: now) == nil
        notify(kind, user: user, seq: member.row.userSeq, actor: mayRead ? actor : nil, Rows(theirs.membership.map { [$0] }))
    }

    /// Records that a message mentions its channel, or no longer does.
    func noteChannelMention(_ mention: ChannelMention, in access: ChannelAccess) throws -> ChannelMention {
        let channel = access.channelId
        if !access.rowKinds.mayContain(ChannelMention.self) { try noteRows(of: ChannelMention.self, in: channel) }
        let memory = transaction.batchMemory
        try transaction.bypassingBatchMemory {
            let other = try mention.mentionSeq.map { _ in
                try memory?.mention(of: channel)?.seq(byOthersThan: mention.sender)
                    ?? transaction.otherMention(than: mention.sender, in: channel)
            }
            try transaction.perform(
                """
                INSERT INTO channel_mentions (channel_id, seq, change_seq, mention_seq, sender_id, other_mention_seq)
                VALUES (\(channel), \(mention.seq), \(mention.changeSeq), \(mention.mentionSeq), \(mention.sender), \(other))
                ON CONFLICT (channel_id, seq) DO UPDATE SET change_seq = excluded.change_seq, mention_seq = excluded.mention_seq,
                    other_mention_seq = excluded.other_mention_seq
                """)
            // An ended one may have been the newest.
            let newest = mention.mentionSeq.map { WrittenChannelMention(sender: mention.sender, seq: $0, otherSeq: other ?? 0) }
            memory?.keep(newest, of: channel)
        }
        return mention
    }

    /// Records whether a changed message mentions its channel.
    ///
    /// - Returns: The row for the channel's event, with the newest remaining ones if the message no longer mentions it; nil if that hasn't changed.
    func changedChannelMention(from before: Message, to after: Message, in access: ChannelAccess) throws -> [ChannelMention]? {
        let isOfChannel = after.mentionees?.mentionsChannel ?? false
        guard isOfChannel != (before.mentionees?.mentionsChannel ?? false) else { return nil }
        let changed = try noteChannelMention(ChannelMention(of: after, from: isOfChannel ? after.changeSeq : nil), in: access)
        if isOfChannel { return [changed] }
        return [changed] + (try transaction.bypassingBatchMemory { try transaction.newestChannelMentions(in: access.channelId) })
    }

    /// Records which users a changed message mentions by name, and notifies those added or removed.
    mutating func moveMentions(from before: Message, to after: Message) throws {
        let (old, new) = (before.mentionees?.mentionedUsers ?? [], after.mentionees?.mentionedUsers ?? [])
        guard old != new else { return }
        let ended = old.filter { !new.contains($0) }
        try endMentions(of: ended, in: before, by: caller.actor)
        // A deleted message that can't be undeleted won't mention anyone again.
        if after.deletedAt == nil || options.undeletionSeconds > 0 {
            try transaction.countEndedMentions(ended.count { $0 != before.sender }, of: before)
        }
        try mention(new.filter { !old.contains($0) }, in: after, at: after.changeSeq)
    }

    /// Returns whether an unread message mentions the caller (``Unread/hasMention(in:_:as:)``). Messages that they may not read don't count.
    func hasMention(in access: ChannelAccess) throws -> Bool {
        guard let member = access.member, refusal(of: .historyRead, in: access) == nil else { return false }
        let mentions =
            access.rowKinds.mayContain(ChannelMention.self)
            ? try transaction.newestChannelMention(
                for: caller.user, in: access.channelId, above: member.row.historyFloor, since: member.row.readSeq,
                mayBeDeleted: access.rowKinds.mayContain(OwnDeletion.self)) : nil
        return Unread.hasMention(in: member.row, [mentions].compactMap(\.self), as: caller.user)
    }
}

extension [Mentionee]? {
    /// The stored form: nil for no mentions.
    fileprivate static func mentioning(_ users: [UserID], channel: Bool) -> [Mentionee]? {
        let stored = (users.isEmpty ? [] : [Mentionee.users(users)]) + (channel ? [.channel] : [])
        return stored.isEmpty ? nil : stored
    }
}

extension Membership {
    /// Sets the newest mention by name; nil for none.
    fileprivate mutating func setMention(_ newest: (seq: Seq, message: MessageID)?) {
        mentionSeq = newest?.seq ?? 0
        mentionMessage = newest?.message
    }
}

extension Transaction {
    fileprivate func deleteMention(of user: UserID, in message: Message) throws {
        try perform(
            """
            DELETE FROM mentions
            WHERE user_id = \(user) AND message_id = \(message.messageId) AND channel_id = \(message.channelId)
            """)
    }

    /// Counts mentions by name that a message has taken back, in a row of `mentions` that belongs to no user: its position is the count.
    fileprivate func countEndedMentions(_ count: Int, of message: Message) throws {
        guard count > 0 else { return }
        try bypassingBatchMemory {
            try perform(
                """
                INSERT INTO mentions (user_id, message_id, channel_id, seq, mention_seq)
                VALUES (\(nobody), \(message.messageId), \(message.channelId), \(message.seq), \(count))
                ON CONFLICT (user_id, message_id, channel_id) DO UPDATE SET mention_seq = mentions.mention_seq + excluded.mention_seq
                """)
        }
    }

    /// Returns how many mentions by name a message has taken back, by edits and deletions. A user mentioned again counts again.
    fileprivate func endedMentionCount(of message: Message) throws -> Int {
        let sql: SQL = """
            SELECT mention_seq FROM mentions
            WHERE user_id = \(nobody) AND message_id = \(message.messageId) AND channel_id = \(message.channelId)
            """
        return try bypassingBatchMemory { try first(sql) { $0.int() } } ?? 0
    }

    /// Deletes that count, for a message that is deleted for good.
    func forgetEndedMentions(of message: Message) throws { try deleteMention(of: nobody, in: message) }

    /// The owner of the row with that count: an id that no user can have.
    private var nobody: UserID { "" }

    /// Returns the mentions that a message has made since a position, by sending or by an edit: those by name, in the order of
    /// the message, and that of the whole channel, each with its position.
    func mentioned(in message: Message, since seq: Seq) throws -> (users: [(user: UserID, seq: Seq)], channel: Seq?) {
        guard let mentionees = message.mentionees else { return ([], nil) }
        var found: [UserID: Seq] = [:]
        if !mentionees.mentionedUsers.isEmpty {
            let sql: SQL = """
                SELECT user_id, mention_seq FROM mentions
                WHERE user_id IN (\(list: mentionees.mentionedUsers.map(\.rawValue).sorted())) AND message_id = \(message.messageId)
                      AND channel_id = \(message.channelId) AND mention_seq > \(seq)
                """
            try each(sql) { row in found[try row.value()] = row.int64() }
        }
        let ofChannel: SQL = """
            SELECT mention_seq FROM channel_mentions WHERE channel_id = \(message.channelId) AND seq = \(message.seq)
            """
        let channelSeq = try mentionees.mentionsChannel ? first(ofChannel) { $0.optionalInt64() ?? 0 } ?? 0 : 0
        return (
            mentionees.mentionedUsers.compactMap { user in found[user].map { (user, $0) } }, channelSeq > seq ? channelSeq : nil
        )
    }

    /// Returns whether a channel has messages after a position.
    ///
    /// - Parameter withMentionsOnly: Whether only messages with mentions count. The query scans all messages after the position.
    func hasMessages(after seq: Seq, withMentionsOnly: Bool, in channel: ChannelID) throws -> Bool {
        let mentioning: SQL = withMentionsOnly ? " AND mentionees IS NOT NULL" : ""
        let sql: SQL = "SELECT 1 FROM messages WHERE channel_id = \(channel) AND seq > \(seq)\(mentioning) ORDER BY seq LIMIT 1"
        return try first(sql) { _ in true } ?? false
    }

    /// Returns a member's newest mention by name, of a message above a floor.
    fileprivate func newestMention(
        of user: UserID, in channel: ChannelID, above floor: Seq
    ) throws -> (seq: Seq, message: MessageID)? {
        let sql: SQL = """
            SELECT mention_seq, message_id FROM mentions
            WHERE user_id = \(user) AND channel_id = \(channel) AND mention_seq > \(floor) AND seq > \(floor)
            ORDER BY mention_seq DESC LIMIT 1
            """
        return try first(sql) { ($0.int64(), MessageID(rawValue: $0.int64())) }
    }
}
