public import RoostAPI

extension CreateChannel: Handled {
    /// An id that the server makes is nobody else's: there is nothing to lock yet.
    public func scope(for caller: Caller) -> Scope {
        Scope(channels: Set([channel].compactMap { $0 }), users: Set(users ?? []).union([caller.user]))
    }

    public func handle(in context: inout Context) throws -> ChannelView {
        guard let policy = ChannelPolicy.named(type) else { throw RoostError.invalidArgument("type", "is unknown") }
        try context.require(.channelCreate, creating: policy)
        let id = channel ?? context.ids.nextChannelID(at: context.now)
        let members = try initialMembers(in: context, policy: policy)

        let now = context.now
        let created = try context.transaction.execute(
            """
            INSERT INTO channels (channel_id, type, is_distinct, display_name, avatar_file_id, metadata, tags, created_by, change_seq,
                                  created_at, updated_at)
            VALUES (\(id), \(type.rawValue), \(false), \(displayName), \(avatarFileId), \(try StoredJSON.encode(metadata)),
                    \(try StoredJSON.encode(tags ?? [])), \(context.caller.user), \(1), \(now), \(now))
            ON CONFLICT (channel_id) DO NOTHING
            """)
        guard created == 1 else {
            throw RoostError(.alreadyExists, "A channel with this id exists.", field: "channel")
        }
        // The channel and its first members are one change: the stream begins with it.
        let counters = ChannelCounters(seq: 1, memberCount: members.count, messageCount: 0, lastActivity: now)
        try context.transaction.perform(
            """
            INSERT INTO channel_heads (channel_id, seq, member_count, message_count, last_activity)
            VALUES (\(id), \(counters.seq), \(counters.memberCount), \(counters.messageCount), \(counters.lastActivity))
            """)
        for member in members {
            let role: ChannelRole = member == context.caller.user ? .owner : .member
            let userSeq = try context.transaction.writeMember(
                member, role: role, of: id, counters: counters, joinedAt: now)
            context.tell(.joined(member, id, at: counters.seq))
            guard let access = try context.transaction.access(to: id, of: member) else { throw RoostError.notFound("channel") }
            context.tell(
                .channelCreated, user: member, seq: userSeq,
                Rows(channel: try context.channel(id), memberships: access.membership.map { [$0] }))
        }
        return try context.view(of: try context.require(.channelRead, in: id))
    }

    /// The caller first, then the others once each, in the order of their ids (D-14).
    private func initialMembers(in context: Context, policy: ChannelPolicy) throws -> [UserID] {
        let others = Set(users ?? []).subtracting([context.caller.user]).sorted()
        for user in others where try !context.transaction.userExists(user) {
            throw RoostError(.notFound, "There is no such user: \(user).", field: "users")
        }
        let members = [context.caller.user] + others
        guard members.count <= policy.maxMembers else {
            throw RoostError(
                .memberLimit, "The channel has room for \(policy.maxMembers) members.", limit: Int64(policy.maxMembers))
        }
        for user in members { try context.transaction.requireRoomForChannel(of: user) }
        return members
    }
}
