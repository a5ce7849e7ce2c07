public import RoostAPI

/// A node's replacement for events that didn't reach it, made from the rows: there is no log of events.
///
/// The notices have the effect of the original ones: audiences lose and gain the same members, and the events bring every
/// client from one position of the stream to a later one, without a gap.
public struct MissedEvents: Sendable {
    public var notices: [Notice]
    /// The position up to which they bring the stream.
    public var seq: Seq
    /// Whether there are more after it.
    public var hasMore: Bool
    /// The stream's newest position when they were read.
    public var head: Seq

    /// Which of the departed users a page of a channel reports.
    ///
    /// Those who left within the page are few. The others are all whose membership began after the page's beginning, since they
    /// may have had an earlier one: for a channel that many join, each page would read and report them all again.
    public enum Leavers: Hashable, Sendable {
        /// All of them: for a first page.
        case all
        /// Of the users who joined beyond the page, those who did so after a position: for a page that follows others, which
        /// have reported the rest. It is the ``MissedEvents/head`` of the previous page.
        case joinedAfter(Seq)
        /// One user: for a receiver who is brought up to date alone.
        case user(UserID)
    }
}

extension Transaction {
    /// Returns the events after a position of a stream: at most a page of rows for a channel's, all for a user's, since no user
    /// has more than some thousand memberships.
    public func missedEvents(
        of stream: StreamID, after: Seq, now: Timestamp, limit: Int = 100, reporting leavers: MissedEvents.Leavers = .all
    ) throws -> MissedEvents {
        try missedEvents(of: stream, after: after, now: now, limit: limit, reporting: leavers, rowKinds: .standard)
    }

    package func missedEvents(
        of stream: StreamID, after: Seq, now: Timestamp, limit: Int = 100, reporting leavers: MissedEvents.Leavers = .all,
        rowKinds: StoredRowKinds
    ) throws -> MissedEvents {
        // The server's own view: an event for a whole channel doesn't contain any user's own membership.
        func context(_ caller: Caller) -> Context {
            Context(transaction: self, caller: caller, now: now, ids: IDGenerator(), rowKinds: rowKinds)
        }
        return switch stream {
        case .channel(let channel): try missedEvents(in: channel, after: after, limit: limit, reporting: leavers, context(.server))
        case .user(let user): try missedEvents(for: user, after: after, context(Caller(user: user)))
        }
    }

    /// Returns one event with all changed rows: the individual changes of a row that changed repeatedly are no longer known.
    private func missedEvents(
        in channel: ChannelID, after: Seq, limit: Int, reporting leavers: MissedEvents.Leavers, _ context: Context
    ) throws -> MissedEvents {
        guard let access = try access(to: channel, of: context.caller.user), after < access.counters.seq else {
            return MissedEvents(notices: [], seq: after, hasMore: false, head: after)
        }
        let changes = try context.changes(in: access, above: 0, after: after, limit: limit)
        var changed = changes.rows
        let meant = try context.accompany(&changed, of: .channel(channel), after: after)
        // A deletion is the last change of a stream: clients wouldn't get the pages that follow one containing it.
        if changes.hasMore, changed.channel?.deletedAt != nil { changed.channel = nil }
        if changed.channel != nil { changed.capabilities = try context.capabilitiesByRole(in: access) }
        let event = Event(kind: .changes, stream: .channel(channel), seq: changes.seq, after: after, actor: nil, rows: changed)
        let gone = try gone(from: channel, after: after, upTo: changes.seq, leavers)
        let end: [Notice] = changed.channel?.deletedAt == nil ? [] : [.channelDeleted(channel)]
        let notice = Notice.event(event, .channel(channel, try readers(of: access.policy)))
        return MissedEvents(
            notices: gone + meant + [notice] + end, seq: changes.seq, hasMore: changes.hasMore, head: access.counters.seq)
    }

    /// Returns the users who get no events of a channel from a page on: those who left within it, and those whose current
    /// membership began after its beginning. The latter had left before that, or weren't members: their own stream adds them
    /// again, from where they joined, which may be beyond the page.
    private func gone(
        from channel: ChannelID, after: Seq, upTo end: Seq, _ leavers: MissedEvents.Leavers
    ) throws -> [Notice] {
        let members: SQL = "SELECT user_id, state, joined_seq, change_seq FROM members WHERE channel_id = \(channel)"
        let isGone: SQL = "(joined_seq > \(after) OR (state <> \(MembershipState.member) AND change_seq <= \(end)))"
        // Each uses an index. The second passes only users who have joined since, whatever became of them. By their changes
        // (`+` keeps SQLite from that index) it would pass everyone who left, with each page.
        let statements: [SQL]
        switch leavers {
        case .user(let user): statements = ["\(members) AND user_id = \(user) AND change_seq > \(after) AND \(isGone)"]
        case .all, .joinedAfter:
            var reportedUpTo = after
            if case .joinedAfter(let seq) = leavers { reportedUpTo = max(after, seq) }
            statements = [
                "\(members) AND change_seq > \(after) AND change_seq <= \(end) AND \(isGone)",
                """
                \(members) AND state IN (\(list: MembershipState.allCases.map(\.rawValue))) AND joined_seq > \(reportedUpTo)
                    AND +change_seq > \(max(end, reportedUpTo))
                """,
            ]
        }
        var gone: [Notice] = []
        try each(statements) { _, row in
            let (user, state) = try (row.identifier() as UserID, row.enumeration() as MembershipState)
            let (joinedSeq, changeSeq) = (row.int64(), row.int64())
            let isBack = state == .member || changeSeq > end
            gone.append(.left(user, channel, at: isBack ? joinedSeq : changeSeq, isBack: isBack))
        }
        return gone
    }

    /// Returns an event for each row: every row of a user's stream has its own stamp.
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
        // The newest change may no longer have a row: a user's own deletion goes with a message that is deleted for good.
        if head > position {
            let event = Event(kind: .changes, stream: .user(user), seq: head, after: position, actor: nil, rows: Rows())
            notices.append(.event(event, .user(user)))
            position = head
        }
        return MissedEvents(notices: notices, seq: position, hasMore: false, head: position)
    }
}
