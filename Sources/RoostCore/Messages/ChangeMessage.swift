public import RoostAPI

extension EditMessage: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel) }

    public func handle(in context: inout Context) throws -> Message {
        var (access, before) = try context.requireChange(
            of: message, in: channel, own: .messageEditOwn, any: .messageEditAny)
        guard before.deletedAt == nil else { throw RoostError.notFound("message") }
        var after = before
        after.content.apply(self)
        guard try !StoredJSON.isSame(after, before) else { return before }

        after.editedAt = context.now
        after.changeSeq = access.counters.advance(at: context.now)
        try context.transaction.write(after)
        try context.moveStream(of: access.channelId, to: access.counters)
        try context.tell(
            .messageUpdated, in: access, seq: after.changeSeq, Rows(counters: access.counters, [after]))
        return after
    }
}

extension DeleteMessage: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel) }

    public func handle(in context: inout Context) throws -> Message {
        var (access, before) = try context.requireChange(
            of: message, in: channel, own: .messageDeleteOwn, any: .messageDeleteAny)
        guard before.deletedAt == nil else { return before }

        // The place stays, so that the order has no hole; the content is removed.
        var after = before
        after.content = before.content.emptied
        after.changeSeq = access.counters.advance(at: context.now)
        after.deletedAt = context.now
        try context.transaction.write(after)
        try context.moveStream(of: access.channelId, to: access.counters)
        try context.tell(
            .messageDeleted, in: access, seq: after.changeSeq, Rows(counters: access.counters, [after]))
        return after
    }
}

extension Context {
    /// Returns a message that the caller may change: the caller's own with one permission, anyone's with the other.
    fileprivate mutating func requireChange(
        of id: MessageID, in channel: ChannelID, own: Permission, any: Permission
    ) throws
        -> (ChannelAccess, Message)
    {
        let access = try require(.historyRead, in: channel)
        let message = try message(id, in: access)
        if message.sender == caller.user {
            try require(own, in: access)
        } else if let refusal = refusal(of: any, in: access) {
            // A deleted channel or a type that forbids it keeps its refusal; a missing role becomes a refusal about the message's owner.
            guard refusal.code == .notPermitted, access.deletedAt == nil else { throw refusal }
            throw RoostError(.notMessageOwner, "The message is someone else's.", rule: refusal.rule)
        }
        return (access, message)
    }
}

extension Transaction {
    /// Writes the content of a message that exists.
    fileprivate func write(_ message: Message) throws {
        try perform(
            """
            UPDATE messages
            SET (\(MessageContent.columns)) = (\(row: message.content)), change_seq = \(message.changeSeq),
                edited_at = \(message.editedAt), deleted_at = \(message.deletedAt)
            WHERE channel_id = \(message.channelId) AND seq = \(message.seq)
            """)
    }
}
