public import RoostAPI

/// What a node tells in the place of events that didn't reach it, made from the rows: there is no log of events.
///
/// The notices are those that the operations told, as far as they can still be known: the same audiences lose and gain members, and the events
/// bring every client from one position of the stream to a later one, without a hole.
public struct MissedEvents: Sendable {
    public var notices: [Notice]
    /// The position up to which they bring the stream.
    public var seq: Seq
    /// Whether there is more after it.
    public var hasMore: Bool
}

extension Transaction {
    /// The events after a position of a stream: of a channel's a page of rows at most, of a user's all, since nobody has more than some
    /// thousand memberships.
    public func missedEvents(of stream: StreamID, after: Seq, now: Timestamp, limit: Int = 100) throws -> MissedEvents {
        switch stream {
        case .channel(let channel): try missedEvents(in: channel, after: after, now: now, limit: limit)
        case .user(let user): try missedEvents(for: user, after: after, now: now)
        }
    }

    /// One event with all rows that changed: single changes of a row that changed again can't be told apart any more.
    private func missedEvents(in channel: ChannelID, after: Seq, now: Timestamp, limit: Int) throws -> MissedEvents {
        // Nobody's view: what is told to a whole channel holds nobody's own membership.
        let context = Context(transaction: self, caller: .anyone(.admin), now: now, ids: IDGenerator())
        guard let access = try access(to: channel, of: context.caller.user), after < access.counters.seq else {
            return MissedEvents(notices: [], seq: after, hasMore: false)
        }
        let changes = try context.changes(in: access, above: 0, after: after, limit: limit)
        var changed = changes.rows
        if changed.channel != nil { changed.capabilities = try context.capabilitiesByRole(in: access) }
        let event = Event(kind: .changes, stream: .channel(channel), seq: changes.seq, after: after, actor: nil, rows: changed)
        // Whose newest stay began later has left before, or wasn't there: their own stream brings them back, from where they joined.
        let sql: SQL = """
            SELECT user_id FROM members
            WHERE channel_id = \(channel) AND change_seq > \(after)
                  AND (joined_seq > \(after) OR (state <> \(MembershipState.member) AND change_seq <= \(changes.seq)))
            """
        let gone = try rows(sql) { Notice.left($0.identifier(), channel) }
        let end: [Notice] = changes.rows.channel?.deletedAt == nil ? [] : [.destroyed(channel)]
        let roles = (changes.rows.members ?? []).filter { $0.state == .member }.map {
            Notice.role($0.userId, channel, $0.role, at: $0.changeSeq)
        }
        let told = Notice.event(event, .channel(channel, try readers(of: access.policy)))
        return MissedEvents(notices: gone + roles + [told] + end, seq: changes.seq, hasMore: changes.hasMore)
    }

    /// An event for each row: every row of a user's stream has a stamp of its own.
    private func missedEvents(for user: UserID, after: Seq, now: Timestamp) throws -> MissedEvents {
        let context = Context(transaction: self, caller: Caller(user: user), now: now, ids: IDGenerator())
        var notices: [Notice] = []
        var position = after
        for (stamp, joinedUserSeq, found) in try myRows(of: user, after: after) {
            var rows = found
            // Told of a stay that is over too, since a node may be behind in the channel.
            if let membership = rows.memberships?.first, membership.historyFloor > 0 {
                notices.append(.floor(user, membership.channelId, membership.historyFloor))
            }
            if let membership = rows.memberships?.first, membership.state == .member {
                let channel = membership.channelId
                // Only a stay that began in this time is news to who follows the user's stream.
                if joinedUserSeq > after {
                    rows.channel = try context.channel(channel)
                    notices.append(.joined(user, channel, at: membership.joinedSeq, as: membership.role))
                }
                if let access = try access(to: channel, of: user) {
                    rows.ownCapabilities = [channel.rawValue: context.capabilities(in: access)]
                }
            } else if let invitation = rows.invitations?.first, invitation.userId == user, invitation.state == .pending {
                rows.channel = try context.channel(invitation.channelId)
            }
            let event = Event(kind: .changes, stream: .user(user), seq: stamp, after: position, actor: nil, rows: rows)
            notices.append(.event(event, .user(user)))
            position = stamp
        }
        return MissedEvents(notices: notices, seq: position, hasMore: false)
    }

    /// A user's own rows that changed after a position, in the order of their stamps. Rows of one change have one stamp, and come together.
    private func myRows(of user: UserID, after: Seq) throws -> [(stamp: Seq, joinedUserSeq: Seq, rows: Rows)] {
        var byStamp: [Seq: (joinedUserSeq: Seq, rows: Rows)] = [:]
        let memberships: SQL = """
            SELECT m.user_seq, m.joined_user_seq, \(Membership.columns) FROM members m
            JOIN channel_heads h ON h.channel_id = m.channel_id
            WHERE m.user_id = \(user) AND m.user_seq > \(after) ORDER BY m.user_seq
            """
        try each(memberships) { row in
            let (stamp, joined) = (row.int64(), row.int64())
            byStamp[stamp] = (joined, Rows(memberships: [try Membership(reading: &row)]))
        }
        for (stamp, invitation) in try invitations(concerning: user, changedAfter: after, limit: Int(Int32.max)).stamped {
            byStamp[stamp, default: (0, Rows())].rows.invitations = (byStamp[stamp]?.rows.invitations ?? []) + [invitation]
        }
        let profile: SQL = """
            SELECT u.user_seq, u.auto_accept, \(User.columns) FROM users u WHERE u.user_id = \(user) AND u.user_seq > \(after)
            """
        try each(profile) { row in
            let stamp = row.int64()
            let preferences = Preferences(autoAcceptInvitations: row.bool())
            byStamp[stamp] = (0, Rows(users: [try User(reading: &row)], preferences: preferences))
        }
        return byStamp.sorted { $0.key < $1.key }.map { ($0.key, $0.value.joinedUserSeq, $0.value.rows) }
    }
}
