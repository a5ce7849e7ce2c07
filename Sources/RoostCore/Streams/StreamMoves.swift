package import RoostAPI

/// Moving streams: nothing else writes their heads. Each change of a channel's head is recorded, for the values kept between reads.
///
/// An operation moves the streams that its scope names, which were locked before it ran; those of users that it finds, if its
/// scope allows that; and those of channels that it creates itself. Moving any other would race with another writer, and is a
/// fault in the operation: it ends as an internal error before the head is written.
extension Context {
    /// Takes the next seq of a user's own stream, whose head is locked from here on.
    ///
    /// - Throws: ``StreamCreatedConcurrently`` if the scope names the user, and another writer has created the head since the scope's heads were locked.
    package func advanceStream(of user: UserID) throws -> Seq {
        guard scope.findsUsers || scope.users.contains(user) else { throw OutsideScope(stream: .user(user)) }
        return try transaction.bypassingBatchMemory {
            guard let memory = transaction.batchMemory else {
                throw ImpossibleState("A transaction that only reads moves a stream.")
            }
            if let seq = memory.advanceHead(of: user) { return seq }
            guard transaction.dialect.rowLock != nil else {
                let seq = try transaction.streamHead(of: user) + 1
                memory.moveHead(of: user, to: seq)
                return seq
            }
            let seq = try transaction.advanceAmongWriters(of: user)
            if let held = transaction.heldStreams, !held.contains(.user(user)) {
                // The first seq means that this transaction creates the head.
                if seq > 1, scope.users.contains(user) { throw StreamCreatedConcurrently(stream: .user(user)) }
                held.insert(.user(user))
            }
            memory.learn(head: seq, of: user)
            return seq
        }
    }

    /// Begins the stream of a channel that the operation creates. No other transaction knows of it before the commit.
    mutating func beginStream(
        of channel: ChannelID, at counters: ChannelCounters, discovery: ChannelPolicy.Audience
    ) throws {
        try transaction.perform(
            """
            INSERT INTO channel_heads (channel_id, \(ChannelCounters.boundColumns), list_at, discovery)
            VALUES (\(channel), \(row: counters), \(counters.lastActivity), \(discovery))
            """)
        transaction.heldStreams?.insert(.channel(channel))
        transaction.noteChange(of: channel)
        noteMade(channel)
    }

    /// Writes the position and counters of a channel's stream after a change.
    package func moveStream(of channel: ChannelID, to counters: ChannelCounters) throws {
        try beginChange(of: channel)
        try transaction.perform(.movingStream(of: channel, to: counters))
    }

    /// Moves a channel's stream for a new message of the caller. Written at the end of the batch, or before anything reads it.
    ///
    /// - Parameter access: The channel with the message.
    func moveStream(to access: ChannelAccess, byMessageThatCounts counts: Bool) throws {
        try beginChange(of: access.channelId)
        try transaction.addMessage(of: caller.user, count: counts ? 1 : 0, in: access)
    }

    /// Moves a channel's stream for a changed message. Written at the end of the batch, or before anything reads it.
    ///
    /// - Parameter access: The channel after the change.
    func moveStream(byChangeIn access: ChannelAccess) throws {
        try beginChange(of: access.channelId)
        try transaction.addChange(in: access)
    }

    /// Records that a message was deleted for good.
    func movePurges(of channel: ChannelID, to seq: Seq) throws {
        try beginChange(of: channel)
        try transaction.perform(
            "UPDATE channel_heads SET purged_seq = \(seq) WHERE channel_id = \(channel) AND purged_seq < \(seq)")
    }

    /// Records that a channel's stream has rows of a kind with a bit, from its first one on.
    ///
    /// Every writer of such a row calls this in the same transaction: the changes of a channel without the bit leave the kind out.
    package func noteRows(of kind: any StoredRow.Type, in channel: ChannelID) throws {
        guard let bit = kind.headBit else { return }
        try beginChange(of: channel)
        try transaction.perform(
            "UPDATE channel_heads SET row_kinds = row_kinds | \(bit) WHERE channel_id = \(channel) AND (row_kinds & \(bit)) = 0")
    }

    /// Makes lists sort a channel without any remaining messages by a time.
    func list(_ channel: ChannelID, at time: Timestamp) throws {
        try beginChange(of: channel)
        try transaction.perform("UPDATE channel_heads SET list_at = \(time) WHERE channel_id = \(channel)")
    }

    /// Writes a channel's discovery into its head, for lists.
    func setDiscovery(_ discovery: ChannelPolicy.Audience, of channel: ChannelID) throws {
        try beginChange(of: channel)
        try transaction.perform("UPDATE channel_heads SET discovery = \(discovery) WHERE channel_id = \(channel)")
    }

    /// Ends the stream of a channel that is deleted, and with it every membership.
    func endStream(of channel: ChannelID) throws {
        try beginChange(of: channel)
        try transaction.perform("UPDATE channel_heads SET is_deleted = 1 WHERE channel_id = \(channel)")
    }

    /// Every change of a channel's head starts here.
    private func beginChange(of channel: ChannelID) throws {
        guard scope.channels.contains(channel) || madeChannels.contains(channel) else {
            throw OutsideScope(stream: .channel(channel))
        }
        try requireHeld(channel)
        transaction.noteChange(of: channel)
    }

    /// Checks that the head of a channel is locked, or was created by this transaction. Does nothing in a read, or if there is one writer.
    ///
    /// - Throws: ``StreamCreatedConcurrently`` if another writer has created the head since the scope's heads were locked.
    func requireHeld(_ channel: ChannelID) throws {
        guard let held = transaction.heldStreams, !held.contains(.channel(channel)) else { return }
        // A lock may not have been answered yet if nothing has been read since.
        _ = try transaction.bypassingBatchMemory { try transaction.first("SELECT 1") { _ in true } }
        guard held.contains(.channel(channel)) else { throw StreamCreatedConcurrently(stream: .channel(channel)) }
    }
}

extension Transaction {
    /// Takes the next seq of a user's own stream, which locks its head.
    fileprivate func advanceAmongWriters(of user: UserID) throws -> Seq {
        let sql: SQL = """
            INSERT INTO user_heads (user_id, seq) VALUES (\(user), 1)
            ON CONFLICT (user_id) DO UPDATE SET seq = user_heads.seq + 1 RETURNING seq
            """
        guard let seq = try first(sql, { $0.int64() }) else { throw DamagedDatabase(what: "a user's stream without a seq") }
        return seq
    }
}

extension SQL {
    /// Writes the position and counters of a channel's stream.
    static func movingStream(of channel: ChannelID, to counters: ChannelCounters) throws -> SQL {
        try """
        UPDATE channel_heads
        SET (\(ChannelCounters.boundColumns)) = (\(row: counters)), list_at = COALESCE(\(counters.lastMessageAt), list_at)
        WHERE channel_id = \(channel)
        """
    }

    /// Writes the positions of users' own streams.
    ///
    /// - Parameter heads: Their ids and seqs.
    static func movingStreams(to heads: [[SQLValue]]) -> SQL {
        "INSERT INTO user_heads (user_id, seq) VALUES \(rows: heads) ON CONFLICT (user_id) DO UPDATE SET seq = excluded.seq"
    }
}

/// An operation tried to move a stream that its scope doesn't name.
///
/// This isn't a refusal of the client's request: the engine answers with an internal error and logs this.
struct OutsideScope: Error, CustomStringConvertible {
    let stream: StreamID

    var description: String { "The operation moves \(stream), which its scope doesn't name." }
}
