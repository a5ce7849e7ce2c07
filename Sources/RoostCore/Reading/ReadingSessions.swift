public import RoostAPI

extension StartReading: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel, user: caller.user) }

    public func handle(in context: inout Context) throws -> UnreadCount {
        let connection = try context.requireConnection("Reading")
        let access = try context.require(.readingMark, in: channel)
        // What the connection doesn't receive can't count as read.
        try context.require(.historyRead, in: access)
        let moved = try MarkRead(channel: channel).movePosition(in: &context)
        let own = try moved.requireOwn().row
        context.tell(.reading(connection, moved.channelId, since: own.joinedSeq, at: own.userSeq))
        return try context.unreadCount(in: moved)
    }
}

extension MarkRead {
    /// Moves the position of a user who reads, by what a device of theirs has confirmed (AM-45).
    ///
    /// - Throws: What `reading.mark` throws; `not_permitted` if the user has marked messages as unread since. That ended reading, and the news of it may not
    ///   have reached this node.
    package func handleWhileReading(in context: inout Context) throws {
        let access = try context.require(.readingMark, in: channel)
        let own = try access.requireOwn()
        // Whoever begins to read has read everything: only a mark as unread leaves the position below where it was.
        guard own.receiptSeq <= own.row.readSeq else {
            throw RoostError(
                .notPermitted, "Messages of this channel were marked as unread: nobody reads it any more.", field: "channel")
        }
        _ = try handle(in: &context)
    }
}

extension StopReading: Handled {
    /// It moves nothing, and takes its turn among commits all the same: what came before it is read.
    public func scope(for caller: Caller) -> Scope { .channel(channel) }

    public func handle(in context: inout Context) throws -> Done {
        let connection = try context.requireConnection("Reading")
        try context.require(.streamRead)
        let read = try context.transaction.access(to: channel, of: context.caller.user)?.channelId ?? channel
        context.tell(.stoppedReading(connection, read))
        return Done()
    }
}
