public import RoostAPI

extension StartReading: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel, user: caller.user) }

    public func handle(in context: inout Context) throws -> UnreadCount {
        let connection = try context.requireConnection("Reading")
        let access = try context.require(.readingMark, in: channel)
        // Messages that the connection doesn't receive can't count as read.
        try context.require(.historyRead, in: access)
        let moved = try MarkRead(channel: channel).movePosition(in: &context)
        let row = try moved.requireMember().row
        context.notify(
            .reading(connection, moved.channelId, since: row.joinedSeq, at: row.userSeq, channelSeq: moved.counters.seq))
        return try context.unreadCount(in: moved)
    }
}

extension MarkRead {
    /// Moves the position of a reading user to what one of their devices has confirmed (AM-45).
    ///
    /// - Throws: The errors of `reading.mark`; `not_permitted` if the user has marked messages as unread since. That ended
    ///   reading, which this node may not have learned yet.
    package func handleWhileReading(in context: inout Context) throws {
        let access = try context.require(.readingMark, in: channel)
        let member = try access.requireMember()
        // Starting to read marks everything as read: only a mark as unread leaves the position below its earlier value.
        guard member.receiptSeq <= member.row.readSeq else {
            throw RoostError(
                .notPermitted, "Messages of this channel were marked as unread, which ended reading it.", field: "channel")
        }
        _ = try handle(in: &context)
    }
}

extension StopReading: Handled {
    /// It moves nothing, but takes its turn among commits: whatever came before it is read.
    public func scope(for caller: Caller) -> Scope { .channel(channel) }

    public func handle(in context: inout Context) throws -> Done {
        let connection = try context.requireConnection("Reading")
        try context.require(.streamRead)
        let read = try context.transaction.access(to: channel, of: context.caller.user)?.channelId ?? channel
        context.notify(.stoppedReading(connection, read))
        return Done()
    }
}
