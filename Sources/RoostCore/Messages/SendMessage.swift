public import RoostAPI

extension SendMessage: Handled {
    /// A sender who may not read learns on their own stream that the message isn't unread.
    public func scope(for caller: Caller) -> Scope { .channel(channel).findingUsers }

    /// Checks in order: the channel, the membership and the type; then the parent; then writes one row with the next seq.
    public func handle(in context: inout Context) throws -> Message {
        var access: ChannelAccess
        do {
            access = try context.require(.messageSend, in: channel)
        } catch {
            // A client whose reply was lost sends again, maybe after the sender left: the stored message was acknowledged, whatever has
            // happened since.
            if let stored = try stored(in: context) { return try context.acknowledged(stored, sentAs: self) }
            throw error
        }
        let channel = access.channelId
        if let parentId = content.parentId { _ = try context.message(parentId, in: access, field: "parentId") }

        // The key of `messages` keeps a client id from being stored twice, except after the message was deleted for good.
        if access.purgedSeq > 0,
            let purged = try context.transaction.purgedMessage(clientId: clientId, of: context.caller.user, in: channel)
        {
            return try context.acknowledged(purged, sentAs: self)
        }

        let seq = access.counters.advance(at: context.now)
        // Times don't fall within a channel, whatever the clock does.
        let createdAt = access.counters.lastActivity
        let message = Message(
            messageId: context.ids.next(at: context.now), channelId: channel, seq: seq, changeSeq: seq, sender: context.caller.user,
            clientId: clientId, content: content, createdAt: createdAt)
        access.counters.add(message)
        // A message of an ephemeral channel is delivered to connected members and not stored (SB-04).
        if !access.isEphemeral {
            guard try insert(message, ordinal: access.counters.ordinal, in: context.transaction) else {
                guard let stored = try stored(in: context) else { throw DamagedDatabase(what: "a client id without its message") }
                return try context.acknowledged(stored, sentAs: self)
            }
        }
        try context.moveStream(to: access, byMessageThatCounts: Unread.counts(message))
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

    /// Stores the message. Returns false if one with the sender's client id exists.
    private func insert(_ message: Message, ordinal: Int, in transaction: any Transaction) throws -> Bool {
        try transaction.besideBatchMemory {
            let row = try NewRow(
                into: "messages (\(Message.columns), ordinal, counts)", "\(row: message), \(ordinal), \(Unread.counts(message))")
            return try transaction.insert(row, unlessTaken: "channel_id, sender_id, client_id")
        }
    }
}

extension Context {
    /// Tells a sender who may not read, and so gets no event with the message, that it isn't unread.
    fileprivate mutating func tellOwnMessage(_ message: Message, in access: ChannelAccess) throws {
        guard access.isMember, readingFloor(in: access) == .max, var own = access.own else { return }
        own.addMessage(at: message.seq, count: Unread.counts(message) ? 1 : 0)
        own.row.userSeq = try advanceStream(of: caller.user)
        try transaction.stampMember(caller.user, in: access.channelId, own.row.userSeq)
        var updated = access
        updated.own = own
        tell(.readingMarked, user: caller.user, seq: own.row.userSeq, Rows(updated.membership.map { [$0] }))
    }

    /// Returns the answer for a message stored by an earlier call: as it is now if the caller may read it, and otherwise as the caller sent
    /// it.
    ///
    /// An acknowledged message stays acknowledged. Its later changes are only for those who may read it.
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
