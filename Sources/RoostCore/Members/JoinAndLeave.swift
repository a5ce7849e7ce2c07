public import RoostAPI

extension JoinChannel: Handled {
    /// Joining accepts an invitation, whose sender is notified.
    public func scope(for caller: Caller) -> Scope { .channel(channel, user: caller.user).findingUsers }

    public func handle(in context: inout Context) throws -> ChannelView {
        try context.admit(to: try context.require(.memberJoin, in: channel))
    }
}

extension LeaveChannel: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel, user: caller.user) }

    public func handle(in context: inout Context) throws -> Done {
        try context.leave(try context.require(.memberLeave, in: channel))
        return Done()
    }
}
