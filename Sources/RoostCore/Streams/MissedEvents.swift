public import RoostAPI

/// A node's replacement for events that didn't reach it, made from the rows: there is no log of events.
///
/// The notices have the effect of the original ones: audiences lose and gain the same members, and the events bring every client from one
/// position of the stream to a later one, without a hole.
public struct MissedEvents: Sendable {
    public var notices: [Notice]
    /// The position up to which they bring the stream.
    public var seq: Seq
    /// Whether there are more after it.
    public var hasMore: Bool
}

extension Transaction {
    /// Returns the events after a position of a stream: at most a page of rows for a channel's, all for a user's, since nobody has more
    /// than some thousand memberships.
    public func missedEvents(of stream: StreamID, after: Seq, now: Timestamp, limit: Int = 100) throws -> MissedEvents {
        try missedEvents(of: stream, after: after, now: now, limit: limit, rowKinds: .standard)
    }

    package func missedEvents(
        of stream: StreamID, after: Seq, now: Timestamp, limit: Int = 100, rowKinds: StoredRowKinds
    ) throws -> MissedEvents {
        // The server's own view: an event for a whole channel contains nobody's own membership.
        func context(_ caller: Caller) -> Context {
            Context(transaction: self, caller: caller, now: now, ids: IDGenerator(), rowKinds: rowKinds)
        }
        return switch stream {
        case .channel(let channel): try missedEvents(in: channel, after: after, limit: limit, context(.server))
        case .user(let user): try missedEvents(for: user, after: after, context(Caller(user: user)))
        }
    }

    /// Returns one event with all changed rows: the single changes of a row that changed repeatedly are no longer known.
    private func missedEvents(in channel: ChannelID, after: Seq, limit: Int, _ context: Context) throws -> MissedEvents {
        guard let access = try access(to: channel, of: context.caller.user), after < access.counters.seq else {
            return MissedEvents(notices: [], seq: after, hasMore: false)
        }
        let changes = try context.changes(in: access, above: 0, after: after, limit: limit)
        var changed = changes.rows
        let meant = try context.accompany(&changed, of: .channel(channel), after: after)
        // A deletion is the last change of a stream: nobody would get what is on the pages behind one that tells it.
        if changes.hasMore, changed.channel?.deletedAt != nil { changed.channel = nil }
        if changed.channel != nil { changed.capabilities = try context.capabilitiesByRole(in: access) }
        let event = Event(kind: .changes, stream: .channel(channel), seq: changes.seq, after: after, actor: nil, rows: changed)
        // Users whose current membership began after `after` had left before that, or weren't members: their own stream adds them again,
        // from where they joined.
        let sql: SQL = """
            SELECT user_id, state, joined_seq, change_seq FROM members
            WHERE channel_id = \(channel) AND change_seq > \(after)
                  AND (joined_seq > \(after) OR (state <> \(MembershipState.member) AND change_seq <= \(changes.seq)))
            """
        let gone = try rows(sql) { row in
            let (user, state) = try (row.identifier() as UserID, row.enumeration() as MembershipState)
            let (joinedSeq, changeSeq) = (row.int64(), row.int64())
            let seq = state != .member && changeSeq <= changes.seq ? changeSeq : min(joinedSeq, changes.seq)
            return Notice.left(user, channel, at: seq)
        }
        let end: [Notice] = changed.channel?.deletedAt == nil ? [] : [.destroyed(channel)]
        let notice = Notice.event(event, .channel(channel, try readers(of: access.policy)))
        return MissedEvents(notices: gone + meant + [notice] + end, seq: changes.seq, hasMore: changes.hasMore)
    }

    /// Returns an event for each row: every row of a user's stream has a stamp of its own.
    private func missedEvents(for user: UserID, after: Seq, _ context: Context) throws -> MissedEvents {
        var notices: [Notice] = []
        var position = after
        let head = try streamHead(of: user)
        for (stamp, found) in try context.changedRows(for: user, after: after, limit: Int(Int32.max)).byStamp() {
            var rows = found
            notices += try context.accompany(&rows, of: .user(user), after: after)
            let event = Event(kind: .changes, stream: .user(user), seq: stamp, after: position, actor: nil, rows: rows)
            notices.append(.event(event, .user(user)))
            position = stamp
        }
        // The newest change may have no row any more: what a user has deleted for themselves goes with a message that is deleted for good.
        if head > position {
            let event = Event(kind: .changes, stream: .user(user), seq: head, after: position, actor: nil, rows: Rows())
            notices.append(.event(event, .user(user)))
            position = head
        }
        return MissedEvents(notices: notices, seq: position, hasMore: false)
    }
}
