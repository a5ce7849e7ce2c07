public import RoostAPI

extension UpdateChannel: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel) }

    public func handle(in context: inout Context) throws -> Channel {
        var access = try context.require(.channelUpdate, in: channel)
        let before = try context.channel(channel)
        var after = before
        after.displayName = displayName ?? before.displayName
        after.avatarFileId = avatarFileId ?? before.avatarFileId
        after.tags = tags ?? before.tags
        after.metadata = metadata ?? before.metadata
        guard try !StoredJSON.isSame(after, before) else { return before }

        let seq = access.counters.advance(at: context.now)
        after.updatedAt = context.now
        after.counters = access.counters
        try context.transaction.perform(
            """
            UPDATE channels
            SET display_name = \(after.displayName), avatar_file_id = \(after.avatarFileId),
                metadata = \(try StoredJSON.encode(after.metadata)), tags = \(try StoredJSON.encode(after.tags)),
                updated_at = \(after.updatedAt), change_seq = \(seq)
            WHERE channel_id = \(channel)
            """)
        try context.transaction.update(access.counters, of: channel)
        context.tell(.channelUpdated, in: channel, seq: seq, Rows(channel: after))
        return after
    }
}

extension DeleteChannel: Handled {
    public func scope(for caller: Caller) -> Scope { .channel(channel) }

    public func handle(in context: inout Context) throws -> Done {
        var access = try context.require(.channelDelete, in: channel)
        guard access.deletedAt == nil else { return Done() }

        let seq = access.counters.advance(at: context.now)
        try context.transaction.perform(
            """
            UPDATE channels SET deleted_at = \(context.now), updated_at = \(context.now), change_seq = \(seq)
            WHERE channel_id = \(channel)
            """)
        try context.transaction.update(access.counters, of: channel)
        // Nothing is written per member: that the channel is deleted ends all its memberships.
        context.tell(.channelDestroyed, in: channel, seq: seq, Rows(channel: try context.channel(channel)))
        context.tell(.destroyed(channel))
        return Done()
    }
}
