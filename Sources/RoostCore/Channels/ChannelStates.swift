public import RoostAPI

/// The states of a whole channel: frozen, silenced, rate-limited. Each change is a change of an attribute, and sends the
/// members' new capabilities by role.

extension FreezeChannel: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel) }

    public func handle(in context: inout Context) throws -> Channel {
        try context.change(channel, .channelFreeze, .channelFrozen) { $0.isFrozen = true }
    }
}

extension UnfreezeChannel: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel) }

    public func handle(in context: inout Context) throws -> Channel {
        try context.change(channel, .channelFreeze, .channelUnfrozen) { $0.isFrozen = false }
    }
}

extension SilenceChannel: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel) }

    public func handle(in context: inout Context) throws -> Channel {
        let until = context.now.after(seconds: seconds)
        return try context.change(channel, .channelSilence, .channelSilenced) { $0.mutedUntil = until }
    }
}

extension UnsilenceChannel: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel) }

    public func handle(in context: inout Context) throws -> Channel {
        try context.change(channel, .channelSilence, .channelUnsilenced) { $0.mutedUntil = nil }
    }
}

extension SetRateLimit: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel) }

    public func handle(in context: inout Context) throws -> Channel {
        let until = context.now.after(seconds: seconds)
        return try context.change(channel, .channelSetRateLimit, .channelRateLimitChanged) {
            $0.rateLimit = messages
            $0.rateLimitWindowSeconds = windowSeconds
            $0.rateLimitedUntil = until
        }
    }
}

extension RemoveRateLimit: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel) }

    public func handle(in context: inout Context) throws -> Channel {
        try context.change(channel, .channelSetRateLimit, .channelRateLimitChanged) {
            $0.rateLimit = nil
            $0.rateLimitWindowSeconds = nil
            $0.rateLimitedUntil = nil
        }
    }
}

extension Context {
    /// Changes a channel's state, and sends the change. Setting the current state changes nothing.
    fileprivate mutating func change(
        _ id: ChannelID, _ permission: Permission, _ kind: Event.Kind, _ apply: (inout Channel) -> Void
    ) throws -> Channel {
        var access = try require(permission, in: id)
        let before = try channel(access.channelId)
        var after = before
        apply(&after)
        guard after != before else { return before }

        let seq = access.counters.advance(at: now)
        after.updatedAt = now
        after.counters = access.counters
        after.updateTimedStates(at: now)
        try transaction.perform(
            """
            UPDATE channels
            SET (\(Channel.boundColumns)) = (\(row: after)), change_seq = \(seq)
            WHERE channel_id = \(access.channelId)
            """)
        try moveStream(of: access.channelId, to: access.counters)
        access.isFrozen = after.isFrozen
        access.silencedUntil = after.mutedUntil
        try notify(kind, in: access, seq: seq, Rows(channel: after, capabilities: try capabilitiesByRole(in: access)))
        return after
    }
}
