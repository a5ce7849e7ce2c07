import RoostAPI

extension MessageContent {
    /// The streams that sending the content may move: the channel's, and those of the mentioned users. A sender who may not
    /// read learns on their own stream that the message isn't unread.
    func scope(in channel: ChannelID) -> Scope { .channel(channel, users: Set(mentionees?.mentionedUsers ?? [])).findingUsers }
}

extension Context {
    /// Stores a message of the caller in a channel, with the next seq, and sends it to its audience. All refusals must have been ruled out.
    ///
    /// - Parameters:
    ///   - access: The channel before the message, and afterwards with it.
    ///   - mentions: The mentions of the content, as ``mentions(of:in:)`` returned them.
    /// - Returns: The message; nil if the caller already has one with this client id there.
    mutating func add(
        _ content: MessageContent, _ clientId: ClientID, mentioning mentions: Mentions, in access: inout ChannelAccess
    ) throws -> Message? {
        let channel = access.channelId
        // The key of `messages` keeps a client id from being stored twice, except after the message was deleted for good.
        if access.purgedSeq > 0, try transaction.isPurged(clientId, of: caller.user, in: channel) {
            return nil
        }

        let seq = access.counters.advance(at: now)
        var content = content
        content.mentionees = mentions.mentionees
        content.metaArrays = content.metaArrays?.sortedMetaArrays
        // Times never decrease within a channel, whatever the clock does.
        var message = Message(
            messageId: ids.next(at: now), channelId: channel, seq: seq, changeSeq: seq, sender: caller.user, clientId: clientId,
            content: content, createdAt: access.counters.lastActivity)
        access.counters.add(message)
        // A message of an ephemeral channel is delivered to connected members and not stored (SB-04).
        if !access.isEphemeral, try !transaction.insert(message, ordinal: access.counters.ordinal) { return nil }

        var rows = Rows(counters: access.counters, [message])
        if mentions.isOfChannel, !access.isEphemeral {
            rows.channelMentions = [try noteChannelMention(ChannelMention(of: message, from: seq), in: access)]
        }
        try moveStream(to: access, byMessageThatCounts: Unread.counts(message))
        try notify(.messageNew, in: access, seq: seq, rows)
        try reportOwnMessage(message, in: access)
        if !access.isEphemeral { try mention(mentions.users, in: message, at: seq) }
        try requestPush(of: message, in: access)
        message.droppedMentions = mentions.dropped.isEmpty ? nil : mentions.dropped
        return message
    }

    /// Stores a message of the caller as ``add(_:_:mentioning:in:)`` does, or returns the answer for the one that the caller already has with this
    /// client id there. All refusals must have been ruled out.
    mutating func addOrAcknowledge(
        _ content: MessageContent, _ clientId: ClientID, mentioning mentions: Mentions, in access: inout ChannelAccess
    ) throws -> Message {
        if let sent = try add(content, clientId, mentioning: mentions, in: &access) { return sent }
        guard let known = try stored(clientId, in: access.channelId) else {
            throw DamagedDatabase(what: "a client id without its message")
        }
        return try acknowledged(known, sentAs: content)
    }

    /// Returns the caller's message stored with a client id, even one that was deleted for good.
    ///
    /// The channel is the one that a new message would go to, whether or not the caller may send there.
    func stored(_ clientId: ClientID, in channel: ChannelID) throws -> Message? {
        guard let id = try transaction.access(to: channel, of: caller.user)?.channelId else { return nil }
        return try transaction.message(clientId: clientId, of: caller.user, in: id)
            ?? transaction.purgedMessage(clientId: clientId, of: caller.user, in: id)
    }

    /// Notifies a sender who may not read, and so gets no event with the message, that it isn't unread. Connections on which the sender
    /// may read, with another role in the app, are notified as well.
    private mutating func reportOwnMessage(_ message: Message, in access: ChannelAccess) throws {
        guard message.kind != .system, access.isMember, !mayReadAsUser(access), var member = access.member else { return }
        member.addMessage(at: message.seq, count: Unread.counts(message) ? 1 : 0)
        member.row.userSeq = try advanceStream(of: caller.user)
        try transaction.stampMember(caller.user, in: access.channelId, member.row.userSeq)
        var updated = access
        updated.member = member
        notify(.readingMarked, user: caller.user, seq: member.row.userSeq, Rows(updated.membership.map { [$0] }))
    }

    /// Returns the answer for a message stored by an earlier call: its current state if the caller may read it, and otherwise the message as sent.
    ///
    /// An acknowledged message stays acknowledged. Its later changes are only for those who may read it.
    func acknowledged(_ stored: Message, sentAs content: MessageContent) throws -> Message {
        // The server's own messages once had ids that a call can have too. Given one as the answer, the sender would take their
        // own message for stored.
        guard stored.kind != .system else {
            throw RoostError.invalidArgument("clientId", "is the id of one of the server's own messages: use another")
        }
        if let access = try transaction.access(to: stored.channelId, of: caller.user), stored.seq > readingFloor(in: access) {
            return try shown(stored, in: access).namingDropped(of: content)
        }
        if stored.changeSeq == stored.seq { return stored.namingDropped(of: content) }
        var sent = Message(
            messageId: stored.messageId, channelId: stored.channelId, seq: stored.seq, changeSeq: stored.seq, sender: stored.sender,
            clientId: stored.clientId, content: content, createdAt: stored.createdAt)
        sent.parentId = stored.parentId
        return sent
    }
}

extension Message {
    /// The message with the users that the call named and it doesn't mention, as in the answer to its first call (MN-17). A
    /// message changed since then mentions the users of the change.
    fileprivate func namingDropped(of sent: MessageContent) -> Message {
        guard changeSeq == seq, deletedAt == nil, let named = sent.mentionees?.mentionedUsers else { return self }
        let mentioned = content.mentionees?.mentionedUsers ?? []
        let dropped = named.filter { !mentioned.contains($0) }
        guard !dropped.isEmpty else { return self }
        var message = self
        message.droppedMentions = dropped
        return message
    }
}

extension Transaction {
    /// Stores a message. Returns false if one with the sender's client id exists.
    fileprivate func insert(_ message: Message, ordinal: Int) throws -> Bool {
        try bypassingBatchMemory {
            try insert(
                NewRow(.message) { row in
                    try row.bind(message.channelId)
                    try row.bind(message)
                    try row.bind(ordinal)
                    try row.bind(Unread.counts(message))
                })
        }
    }
}

extension NewRow.Kind {
    fileprivate static let message = NewRow.Kind(
        into: "messages (channel_id, \(Message.columns), ordinal, counts)", unlessTaken: "channel_id, sender_id, client_id")
}
