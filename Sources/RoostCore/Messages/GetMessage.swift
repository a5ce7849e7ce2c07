public import RoostAPI

extension GetMessage: Handled {
    public var isBrief: Bool { true }

    public func handle(in context: inout Context) throws -> Message {
        let access = try context.require(.historyRead, in: channel)
        return try context.message(message, in: access)
    }
}

extension Context {
    /// Returns a message by its id as the caller sees it, exactly as a page shows it.
    ///
    /// - Parameter field: The field that a refusal names.
    /// - Throws: `notFound`, whether there is no such message, the caller's history begins after it, or it was deleted for good.
    func message(_ id: MessageID, in access: ChannelAccess, field: String = "message") throws -> Message {
        try shown(storedMessage(id, in: access, field: field), in: access)
    }

    /// Throws if the caller can't answer a message: if they can't see it, or if it was deleted, for all or for themselves.
    func requireParent(_ id: MessageID, in access: ChannelAccess) throws {
        // The content isn't read: half a megabyte for each of many short answers would block all other writers.
        let sql: SQL = "SELECT seq, deleted_at FROM messages WHERE channel_id = \(access.channelId) AND message_id = \(id)"
        let transaction = transaction
        let parent = try transaction.bypassingBatchMemory {
            try transaction.first(sql) { (seq: $0.int64(), isDeleted: $0.optionalTimestamp() != nil) }
        }
        guard let parent, parent.seq > readingFloor(in: access) else { throw RoostError.notFound("message", field: "parentId") }
        guard !parent.isDeleted, try !isDeleted(parent.seq, for: caller.user, in: access) else {
            throw RoostError(.notFound, "The message was deleted.", field: "parentId")
        }
    }

    /// Returns a message that the caller can see as stored, even if the caller has deleted it for themselves.
    func storedMessage(_ id: MessageID, in access: ChannelAccess, field: String = "message") throws -> Message {
        let transaction = transaction
        let found = try transaction.bypassingBatchMemory { try transaction.message(id, in: access.channelId) }
        guard let found, found.seq > readingFloor(in: access) else { throw RoostError.notFound("message", field: field) }
        return found
    }

    /// Returns the seq of a message that the caller can see.
    ///
    /// - Throws: As ``message(_:in:field:)``.
    func seq(of id: MessageID, in access: ChannelAccess, field: String) throws -> Seq {
        let sql: SQL = "SELECT seq FROM messages WHERE channel_id = \(access.channelId) AND message_id = \(id)"
        guard let seq = try transaction.first(sql, { $0.int64() }), seq > readingFloor(in: access) else {
            throw RoostError.notFound("message", field: field)
        }
        return seq
    }

    /// Returns a message that the caller deletes for themselves. They must be able to see it, and it comes without the content
    /// that the deletion removes.
    ///
    /// - Throws: As ``message(_:in:field:)``.
    func messageToConceal(_ id: MessageID, in access: ChannelAccess) throws -> Message {
        let (transaction, channel) = (transaction, access.channelId)
        let sql: SQL = "SELECT \(Message.columnsToConceal) FROM messages WHERE channel_id = \(channel) AND message_id = \(id)"
        let found = try transaction.bypassingBatchMemory {
            try transaction.first(sql) { try Message(reading: &$0, channelId: channel) }
        }
        guard let found, found.seq > readingFloor(in: access) else { throw RoostError.notFound("message") }
        return try shown(found, in: access)
    }
}
