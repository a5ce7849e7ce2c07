public import RoostAPI

extension EditMessage: Handled {
    /// Users no longer mentioned are found in the message.
    public func scope(for caller: Caller) -> Scope {
        .channel(channel, users: Set(mentionees?.mentionedUsers ?? [])).findingUsers
    }

    public func handle(in context: inout Context) throws -> Message {
        var (access, before) = try context.requireEdit(of: message, in: channel)
        var after = before
        after.content.apply(self)
        let mentions = try mentionees.map { try context.mentions(of: $0, in: access, at: before.seq) }
        if let mentions { after.mentionees = mentions.mentionees }
        // The result must be a message that could be sent: with a text, say, unless it is the app's own.
        try after.content.validate()
        if try !StoredJSON.isSame(after, before) {
            after.editedAt = before.timeOfChange(at: context.now)
            try context.keepVersion(of: before, deleting: false)
            try context.change(before, to: &after, .messageUpdated, in: &access)
        }
        after.droppedMentions = mentions.flatMap { $0.dropped.isEmpty ? nil : $0.dropped }
        return after
    }
}

extension UpdateMetaArrays: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel) }

    public func handle(in context: inout Context) throws -> Message {
        var (access, before) = try context.requireEdit(of: message, in: channel)
        var after = before
        try after.content.apply(self)
        guard try !StoredJSON.isSame(after, before) else { return before }
        // The text is unchanged, so the message isn't marked as edited.
        try context.change(before, to: &after, .messageUpdated, in: &access)
        return after
    }
}

extension DeleteMessage: Handled {
    /// The mentioned users are found in the message.
    public func scope(for caller: Caller) -> Scope { .channel(channel).findingUsers }

    public func handle(in context: inout Context) throws -> Message {
        var (access, before) = try context.requireChange(
            of: message, in: channel, own: .messageDeleteOwn, any: .messageDeleteAny)
        return try context.shown(context.delete(before, in: &access), in: access)
    }
}

extension DeleteMessages: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel).findingUsers }

    /// Checks all messages before it changes the first one.
    public func handle(in context: inout Context) throws -> MessageResults {
        // An unreadable channel refuses the whole call, not one of its messages.
        _ = try context.require(.historyRead, in: channel)
        var found: [Message] = []
        var opened: ChannelAccess?
        var sizeBytes = 0
        for (index, message) in messages.enumerated() {
            do {
                let (access, before) = try context.requireChange(
                    of: message, in: channel, own: .messageDeleteOwn, any: .messageDeleteAny)
                found.append(before)
                opened = access
                sizeBytes += before.contentSizeBytes
            } catch let refusal as RoostError where refusal.isAboutMessage {
                throw refusal.about(message, at: index, of: messages)
            }
            let limit = Limits.deletedMessagesSizeBytes
            guard sizeBytes <= limit else {
                throw RoostError.limitExceeded("messages", limit: limit, unit: "bytes of content together")
            }
        }
        guard var access = opened else { throw ImpossibleState("A call to delete messages names none.") }
        try context.requireFewKeptBytes(of: found.filter { $0.deletedAt == nil }, besides: sizeBytes)
        let deleted = try found.map { try context.delete($0, in: &access) }
        return MessageResults(messages: try context.shown(deleted, in: access))
    }
}

extension PurgeMessage: Handled {
    /// The mentioned users and the sender are found in the message.
    public func scope(for caller: Caller) -> Scope { .channel(channel).findingUsers }

    public func handle(in context: inout Context) throws -> Done {
        let (access, before) = try context.requireChange(
            of: message, in: channel, own: .messageDeleteOwn, any: .messageDeleteAny)
        try context.requireDeleter(of: before, in: access)
        try context.purge(before, in: access)
        return Done()
    }
}

extension Context {
    /// Replaces a message at the next seq, and sends the change to its audience.
    mutating func change(
        _ before: Message, to after: inout Message, _ kind: Event.Kind, in access: inout ChannelAccess
    ) throws {
        after.changeSeq = access.counters.advance(at: now)
        let changed = after
        try transaction.bypassingBatchMemory { try transaction.write(changed) }
        var rows = Rows(counters: access.counters, [after])
        rows.channelMentions = try changedChannelMention(from: before, to: after, in: access)
        try moveStream(byChangeIn: access)
        try notify(kind, in: access, seq: after.changeSeq, rows)
        try moveMentions(from: before, to: after)
        try requestPush(ofChanged: before, to: after, in: access)
    }

    /// Empties a message. Its place stays, so the order has no gap. A deleted one stays as it is; but if an operator deletes a
    /// message that its author has deleted, the author can no longer undelete it.
    fileprivate mutating func delete(_ before: Message, in access: inout ChannelAccess) throws -> Message {
        guard before.deletedAt == nil else {
            try takeOverDeletion(of: before)
            return before
        }
        var after = before
        after.content = before.content.emptied
        after.deletedAt = before.timeOfChange(at: now)
        try keepVersion(of: before, deleting: true)
        try change(before, to: &after, .messageDeleted, in: &access)
        return after
    }

    /// Returns a message whose content the caller may change.
    fileprivate mutating func requireEdit(of id: MessageID, in channel: ChannelID) throws -> (ChannelAccess, Message) {
        let (access, message) = try requireChange(of: id, in: channel, own: .messageEditOwn, any: .messageEditAny)
        guard message.deletedAt == nil, try !isDeleted(message.seq, for: caller.user, in: access) else {
            throw RoostError.notFound("message")
        }
        guard message.kind != .system else {
            throw RoostError(.notPermitted, "The server's own messages can't be edited.", field: "message")
        }
        try requireMayChangeAdminMessage(message, in: access, "edit")
        return (access, message)
    }

    /// Throws if a message is the app's own and the caller may not send those: a user who may change others' messages could
    /// otherwise speak as the app (SB-33).
    ///
    /// - Parameter verb: The caller's intended action.
    func requireMayChangeAdminMessage(_ message: Message, in access: ChannelAccess, _ verb: String) throws {
        guard message.kind == .admin, var refusal = refusal(of: .messageSendAdmin, in: access) else { return }
        // The permission's own wording is about sending. Refusals about the channel stay.
        if refusal.code == .notPermitted, access.deletedAt == nil { refusal.message = "Only admins can \(verb) admin messages." }
        throw refusal
    }

    /// Returns a message that the caller may change: their own with one permission, anyone's with the other.
    mutating func requireChange(
        of id: MessageID, in channel: ChannelID, own: Permission, any: Permission
    ) throws
        -> (ChannelAccess, Message)
    {
        let access = try require(.historyRead, in: channel)
        let message = try storedMessage(id, in: access)
        // The server's messages about users' actions belong to no user.
        if message.sender == caller.user, message.kind != .system {
            try require(own, in: access)
        } else if let refusal = refusal(of: any, in: access) {
            // A deleted channel or a type that forbids it keeps its refusal; a missing role becomes a refusal about the message's owner.
            guard refusal.code == .notPermitted, access.deletedAt == nil else { throw refusal }
            let whose = message.kind == .system ? "The message is the server's own." : "The message is someone else's."
            throw RoostError(.notMessageOwner, whose, rule: refusal.rule)
        }
        return (access, message)
    }
}

extension RoostError {
    /// Whether it is about one message among several, and not about the channel.
    fileprivate var isAboutMessage: Bool { code == .notMessageOwner || code == .kindForbids || field == "message" }

    /// The same refusal for one of the messages that a call names. If there are several, the text says which.
    func about(_ message: MessageID, at index: Int, of messages: [MessageID]) -> RoostError {
        var refusal = self
        refusal.field = "messages[\(index)]"
        if messages.count > 1 { refusal.message = "Message \(message): \(self.message)" }
        return refusal
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

extension Message {
    /// The time of a change made now. It isn't before the message or its last edit, even if the clock was set back or another node's clock lags.
    func timeOfChange(at now: Timestamp) -> Timestamp { max(now, createdAt, editedAt ?? createdAt) }
}
