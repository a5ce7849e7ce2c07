public import RoostAPI

extension GetMessage: Handled {
    public var isBrief: Bool { true }

    public func handle(in context: inout Context) throws -> Message {
        let access = try context.require(.historyRead, in: channel)
        return try context.message(message, in: access)
    }
}

extension Context {
    /// Returns a message by its id as the caller sees it: what a page shows, and nothing else.
    ///
    /// - Parameter field: The field that a refusal names.
    /// - Throws: `notFound`, whether there is no such message, the caller's history begins after it, or it was deleted for good.
    func message(_ id: MessageID, in access: ChannelAccess, field: String = "message") throws -> Message {
        try shown(storedMessage(id, in: access, field: field), in: access)
    }

    /// Throws if the caller can't answer a message: one that they can't see, or that was deleted, by anybody or for themselves.
    func requireParent(_ id: MessageID, in access: ChannelAccess) throws {
        let parent = try message(id, in: access, field: "parentId")
        guard parent.deletedAt == nil, !parent.isDeletedForMe else {
            throw RoostError(.notFound, "The message was deleted.", field: "parentId")
        }
    }

    /// Returns a message that the caller can see as it is stored, also if the caller has deleted it for themselves.
    func storedMessage(_ id: MessageID, in access: ChannelAccess, field: String = "message") throws -> Message {
        let transaction = transaction
        let found = try transaction.besideBatchMemory { try transaction.message(id, in: access.channelId) }
        guard let found, found.seq > readingFloor(in: access) else {
            throw RoostError(.notFound, "There is no such message.", field: field)
        }
        return found
    }
}
