public import RoostAPI

extension StartReading: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel, user: caller.user) }

    public func handle(in context: inout Context) throws -> UnreadCount {
        let connection = try context.requireConnection("Reading")
        let unread = try MarkRead(channel: channel).handle(in: &context)
        context.tell(.reading(connection, unread.channelId))
        return unread
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
