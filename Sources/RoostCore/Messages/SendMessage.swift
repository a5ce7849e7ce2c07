public import RoostAPI

extension SendMessage: Handled {
    /// A sender who may not read is told on their own stream that the message isn't unread.
    public func scope(for caller: Caller) -> Scope { .channel(channel).findingUsers }

    /// The policy of sending, in its order: the channel, the membership and the type; the parent; then one row with the next seq.
    public func handle(in context: inout Context) throws -> Message {
        var access: ChannelAccess
        do {
            access = try context.require(.messageSend, in: channel)
        } catch {
            // A reply that was lost is asked for again, maybe after the sender left: what is stored was acknowledged, whatever came since.
            if let stored = try stored(in: context) { return try context.acknowledged(stored, sentAs: self) }
            throw error
        }
        let channel = access.channelId
        if let parentId = content.parentId {
            let parent = try context.transaction.message(parentId, in: channel)
            guard let parent, parent.seq > context.readingFloor(in: access) else {
                throw RoostError(.notFound, "There is no such message.", field: "parentId")
            }
        }

        // The key of `messages` keeps a client id from being stored twice, but not where the message was deleted for good.
        if access.purgedSeq > 0,
            let purged = try context.transaction.purgedMessage(clientId: clientId, of: context.caller.user, in: channel)
        {
            return try context.acknowledged(purged, sentAs: self)
        }

        let seq = access.counters.advance(at: context.now)
        // Times don't fall within a channel, whatever becomes of the clock.
        let createdAt = access.counters.lastActivity
        access.counters.lastMessageAt = createdAt
        let message = Message(
            messageId: context.ids.next(at: context.now), channelId: channel, seq: seq, changeSeq: seq, sender: context.caller.user,
            clientId: clientId, content: content, createdAt: createdAt)
        access.counters.add(message)
        // What an ephemeral channel carries is told to who is there, and stored nowhere (SB-04).
        if !access.isEphemeral {
            guard try insert(message, ordinal: access.counters.ordinal, in: context.transaction) else {
                guard let stored = try stored(in: context) else { throw DamagedDatabase(what: "a client id without its message") }
                return try context.acknowledged(stored, sentAs: self)
            }
        }
        try context.moveStream(of: channel, to: access.counters)
        if access.isMember {
            // One's own message is never unread.
            try context.transaction.perform(
                """
                UPDATE members SET read_count = read_count + \(Unread.counts(message) ? 1 : 0), last_sent_seq = \(seq)
                WHERE channel_id = \(channel) AND user_id = \(context.caller.user)
                """)
        }
        try context.tell(.messageNew, in: access, seq: seq, Rows(counters: access.counters, [message]))
        try context.tellOwnMessage(message, in: access)
        return message
    }

    private func stored(in context: Context) throws -> Message? {
        let sender = context.caller.user
        for id in [channel, channel.alias?.channel].compactMap(\.self) {
            if let stored = try context.transaction.message(clientId: clientId, of: sender, in: id) { return stored }
            if let purged = try context.transaction.purgedMessage(clientId: clientId, of: sender, in: id) { return purged }
        }
        return nil
    }

    /// Whether the message was stored: not when one with the sender's client id is there.
    private func insert(_ message: Message, ordinal: Int, in transaction: any Transaction) throws -> Bool {
        try transaction.execute(
            """
            INSERT INTO messages (\(Message.columns), ordinal, counts)
            VALUES (\(row: message), \(ordinal), \(Unread.counts(message)))
            ON CONFLICT (channel_id, sender_id, client_id) DO NOTHING
            """) == 1
    }
}

extension ChannelCounters {
    /// Takes in a new message: as one of the channel's, and as one that counts if it does.
    fileprivate mutating func add(_ message: Message) {
        messageCount += 1
        if Unread.counts(message) { ordinal += 1 }
    }
}

extension Context {
    /// Tells a member who may not read, and so gets no event with the message, that it isn't unread.
    fileprivate mutating func tellOwnMessage(_ message: Message, in access: ChannelAccess) throws {
        guard access.isMember, readingFloor(in: access) == .max, var own = access.own else { return }
        if Unread.counts(message) { own.row.readCount += 1 }
        own.lastSentSeq = message.seq
        own.row.userSeq = try advanceStream(of: caller.user)
        try transaction.perform(
            "UPDATE members SET user_seq = \(own.row.userSeq) WHERE channel_id = \(access.channelId) AND user_id = \(caller.user)")
        var updated = access
        updated.own = own
        tell(.readingMarked, user: caller.user, seq: own.row.userSeq, Rows(updated.membership.map { [$0] }))
    }

    /// The answer to a message that was stored by an earlier call: as it is now if the caller may read it, and else as the caller sent it.
    ///
    /// What was acknowledged stays acknowledged, and what became of it later is for those who may read it.
    fileprivate func acknowledged(_ stored: Message, sentAs request: SendMessage) throws -> Message {
        if stored.changeSeq == stored.seq { return stored }
        if let access = try transaction.access(to: stored.channelId, of: caller.user), stored.seq > readingFloor(in: access) {
            return stored
        }
        var sent = Message(
            messageId: stored.messageId, channelId: stored.channelId, seq: stored.seq, changeSeq: stored.seq, sender: stored.sender,
            clientId: stored.clientId, content: request.content, createdAt: stored.createdAt)
        sent.parentId = stored.parentId
        return sent
    }
}
