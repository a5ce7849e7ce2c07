public import RoostAPI

/// The contents of messages before they were edited or deleted: kept for a time if the app says so, in a separate table, from
/// which an effect deletes.
extension MessageVersion: BoundRow {
    // derived: columns
    static let columns: SQL = "change_seq, \(MessageContent.columns), edited_at, replaced_at, replaced_by, is_deletion"
    // derived: init(reading:)
    init(reading row: inout RowReader) throws {
        try self.init(
            changeSeq: row.value(), content: MessageContent(reading: &row), editedAt: row.value(), replacedAt: row.value(),
            replacedBy: row.value(), isDeletion: row.value())
    }
    // derived: bind(to:)
    func bind(to values: inout RowValues) throws {
        try values.bind(changeSeq)
        try values.bind(content)
        try values.bind(editedAt)
        try values.bind(replacedAt)
        try values.bind(replacedBy)
        try values.bind(isDeletion)
    }
}

extension ListMessageVersions: Handled {
    public func handle(in context: inout Context) throws -> MessageVersions {
        let access = try context.require(.messageReadVersions, in: channel)
        let message = try context.message(message, in: access)
        guard context.options.versionSeconds > 0 || context.options.undeletionSeconds > 0 else {
            throw RoostError(.featureDisabled, "The app keeps no earlier versions of messages.")
        }
        // Neither a message that the caller has deleted for themselves nor a deleted one that can't be undeleted shows its
        // versions. Some may still be kept of the latter if the option was turned off since.
        guard !message.isDeletedForMe, message.deletedAt == nil || context.options.undeletionSeconds > 0 else {
            return MessageVersions(versions: [])
        }
        // Versions from before edits may still be kept if their option was turned off since. A deleted message's content is kept by the other one.
        var versions = try context.versions(of: message, before: before, onlyDeletions: context.options.versionSeconds == 0)
        var sizeBytes = 0
        let fitting = versions.prefix { version in
            sizeBytes += version.content.sizeBytes
            return sizeBytes <= Limits.pageContentBytes
        }
        // The newest version is included, however large it is.
        let hasMore = max(fitting.count, 1) < versions.count
        versions.removeLast(versions.count - min(versions.count, max(fitting.count, 1)))
        return MessageVersions(versions: versions, hasMore: hasMore)
    }
}

extension UndeleteMessage: Handled {
    /// The mentioned users are found in the kept version.
    public func scope(for caller: Caller) -> Scope { .channel(channel).findingUsers }

    public func handle(in context: inout Context) throws -> Message {
        // An undeletion speaks in the channel again, which muted members can't do, nor anyone during a freeze.
        var (access, before) = try context.requireChange(
            of: message, in: channel, own: .messageEditOwn, any: .messageDeleteAny)
        guard before.deletedAt != nil else { return try context.shown(before, in: access) }
        try context.requireMayChangeAdminMessage(before, in: access, "restore")
        guard context.options.undeletionSeconds > 0 else {
            throw RoostError(.featureDisabled, "The app doesn't keep deleted messages.")
        }
        guard let version = try context.versions(of: before, limit: 1).first, version.isDeletion else {
            throw RoostError(.notFound, "The message's content is no longer kept.", field: "message")
        }
        try context.requireDeleter(of: before, in: access)
        var after = before
        after.content = version.content
        after.content.mentionees = try context.mentionsAgain(version.content.mentionees, in: access, at: before.seq)
        after.editedAt = version.editedAt
        after.deletedAt = nil
        try context.transaction.perform(
            """
            DELETE FROM message_versions
            WHERE channel_id = \(access.channelId) AND seq = \(before.seq) AND change_seq = \(version.changeSeq)
            """)
        try context.restoreVersions(of: before)
        try context.change(before, to: &after, .messageUndeleted, in: &access)
        var shown = try context.shown(after, in: access)
        let mentioned = after.mentionees?.mentionedUsers ?? []
        let dropped = (version.content.mentionees?.mentionedUsers ?? []).filter { !mentioned.contains($0) }
        if !shown.isDeletedForMe, !dropped.isEmpty { shown.droppedMentions = dropped }
        return shown
    }
}

extension Context {
    /// The earlier versions of a message that are still kept, the newest first.
    ///
    /// - Parameters:
    ///   - changeSeq: The seq of a version: only those before it.
    ///   - onlyDeletions: Whether to leave out the contents from before edits.
    fileprivate func versions(
        of message: Message, before changeSeq: Seq? = nil, limit: Int = Limits.versionsPerMessage + 1, onlyDeletions: Bool = false
    ) throws -> [MessageVersion] {
        let condition: SQL = onlyDeletions ? " AND is_deletion = 1" : ""
        let sql: SQL = """
            SELECT \(MessageVersion.columns) FROM message_versions
            WHERE channel_id = \(message.channelId) AND seq = \(message.seq) AND kept_until > \(now) AND change_seq < \(changeSeq ?? .max)\(condition)
            ORDER BY change_seq DESC LIMIT \(limit)
            """
        return try transaction.rows(sql) { try MessageVersion(reading: &$0) }
    }

    /// Throws if another user deleted the message and only users who may delete anyone's can undelete it, and the caller isn't one of them.
    func requireDeleter(of message: Message, in access: ChannelAccess) throws {
        guard message.deletedAt != nil, options.undeletionSeconds > 0, let refusal = refusal(of: .messageDeleteAny, in: access),
            let deletion = try versions(of: message, limit: 1).first, deletion.isDeletion, deletion.replacedBy != caller.user
        else { return }
        throw RoostError(.notMessageOwner, "Someone else deleted the message.", rule: refusal.rule)
    }

    /// Makes the caller the deleter of a message if its author had deleted it, and could undelete it.
    func takeOverDeletion(of message: Message) throws {
        guard caller.user != message.sender else { return }
        try transaction.perform(
            """
            UPDATE message_versions SET replaced_by = \(caller.user)
            WHERE channel_id = \(message.channelId) AND seq = \(message.seq) AND is_deletion = 1 AND replaced_by = \(message.sender)
                  AND kept_until > \(now)
            """)
    }

    /// Keeps the content that a message had until now, for as long as the app's options say.
    mutating func keepVersion(of message: Message, deleting isDeletion: Bool) throws {
        let seconds = isDeletion ? options.undeletionSeconds : options.versionSeconds
        let keptUntil = Timestamp(milliseconds: now.milliseconds + Int64(seconds) * 1000)
        let these: SQL = "channel_id = \(message.channelId) AND seq = \(message.seq)"
        // Nothing of a deleted message is kept for longer than it can be undeleted.
        if isDeletion, seconds == 0 { return try forgetVersions(of: message) }
        guard seconds > 0 else { return }
        if isDeletion {
            try transaction.perform(
                "UPDATE message_versions SET kept_until = \(keptUntil) WHERE \(these) AND kept_until > \(keptUntil)")
        } else {
            try transaction.perform(
                """
                DELETE FROM message_versions WHERE \(these) AND change_seq <= (
                    SELECT change_seq FROM message_versions WHERE \(these)
                    ORDER BY change_seq DESC LIMIT 1 OFFSET \(Int64(Limits.versionsPerMessage) - 1))
                """)
        }
        let version = MessageVersion(
            changeSeq: message.changeSeq, content: message.content, editedAt: message.editedAt,
            replacedAt: message.timeOfChange(at: now), replacedBy: caller.user, isDeletion: isDeletion)
        try transaction.perform(
            """
            INSERT INTO message_versions (channel_id, seq, kept_until, \(MessageVersion.columns))
            VALUES (\(message.channelId), \(message.seq), \(keptUntil), \(row: version))
            """)
        try scheduleAtLatest(.forgetVersions, key: forgettingKey, at: keptUntil)
    }

    /// Throws `limit_exceeded` if what is kept of messages, together with their present contents, has more bytes than one call may delete: it is
    /// deleted with them, or written again with another time.
    ///
    /// - Parameter sizeBytes: The size of the present contents.
    func requireFewKeptBytes(of messages: [Message], besides sizeBytes: Int) throws {
        guard let channel = messages.first?.channelId else { return }
        let limit = Limits.deletedMessagesSizeBytes
        // With undeletion, only what would be kept for longer is written again.
        let end = Timestamp(milliseconds: now.milliseconds + Int64(options.undeletionSeconds) * 1000)
        let moves: SQL = options.undeletionSeconds > 0 ? " AND kept_until > \(end)" : ""
        let edited: SQL =
            "SELECT seq FROM message_versions WHERE channel_id = \(channel) AND seq IN (\(list: messages.map(\.seq)))\(moves)"
        var sizeBytes = sizeBytes
        // One message at a time: those of all may be too much for the memory.
        for seq in Set(try transaction.bypassingBatchMemory { try transaction.rows(edited) { $0.int64() } }) {
            let contents: SQL =
                "SELECT \(MessageContent.columns) FROM message_versions WHERE channel_id = \(channel) AND seq = \(seq)\(moves)"
            sizeBytes += try transaction.bypassingBatchMemory {
                try transaction.rows(contents) { try MessageContent(reading: &$0).sizeBytes }.reduce(0, +)
            }
            guard sizeBytes <= limit else {
                throw RoostError.limitExceeded("messages", limit: limit, unit: "bytes of content and kept versions together")
            }
        }
    }

    /// The key of the effect that deletes expired versions. Any such effect deletes those of all channels. Where several nodes
    /// write, scheduling an effect locks its row until the transaction ends, so each lane has its own. With one for all, or for
    /// some channels, an edit would wait for edits of other channels, and two transactions with several edits each would wait
    /// for each other.
    private var forgettingKey: String { transaction.dialect.rowLock == nil ? Self.commonKey : "\(ids.numberValue)" }

    /// The key under which all of them are rescheduled after a run, so those of former sessions, whose numbers are no longer in use, disappear.
    private static let commonKey = ""

    /// Restores the retention of the versions of a message that is no longer deleted.
    fileprivate func restoreVersions(of message: Message) throws {
        guard options.versionSeconds > 0 else { return }
        // A version is replaced at the message's time, which is ahead of the clock for as long as the channel's is.
        let end: SQL = "CASE WHEN replaced_at < \(now) THEN replaced_at ELSE \(now) END + \(Int64(options.versionSeconds) * 1000)"
        try transaction.perform(
            """
            UPDATE message_versions SET kept_until = \(end)
            WHERE channel_id = \(message.channelId) AND seq = \(message.seq) AND kept_until < \(end)
            """)
    }

    /// Deletes the kept versions of a message.
    func forgetVersions(of message: Message) throws {
        try transaction.perform("DELETE FROM message_versions WHERE channel_id = \(message.channelId) AND seq = \(message.seq)")
    }
}

// MARK: Expiry

extension EffectKind.Name {
    static let forgetVersions = Self(rawValue: "messageVersions.forget")
}

extension EffectKind {
    /// Deletes earlier versions that have expired, and runs again when the next one does.
    static let forgetVersions = EffectKind(.forgetVersions) { effect, _, context in
        try context.forgetOldVersions(effect)
    }
}

extension Context {
    /// The most versions that one transaction deletes: some 10 MB, if all are as large as a message can be. Other writers wait meanwhile, and each
    /// page of a deleted version is written once more.
    private static let versionsAtOnce: Int64 = 20
    /// The pause between two runs, which keeps many edits from causing as many runs. Expired versions aren't shown in the meantime.
    private static let pauseMilliseconds: Int64 = 1000

    fileprivate mutating func forgetOldVersions(_ effect: Effect) throws {
        let count = try transaction.execute(
            """
            DELETE FROM message_versions WHERE (channel_id, seq, change_seq) IN (
                SELECT channel_id, seq, change_seq FROM message_versions WHERE kept_until <= \(now)
                ORDER BY kept_until LIMIT \(Self.versionsAtOnce))
            """)
        let next = try transaction.first("SELECT MIN(kept_until) FROM message_versions") { $0.optionalInt64() } ?? nil
        guard let next else { return }
        let pause = Int64(count) == Self.versionsAtOnce ? 0 : Self.pauseMilliseconds
        // A version that isn't committed yet isn't visible here. Its writer has scheduled an effect with their lane's key, and
        // the run of that effect waits for the commit.
        try scheduleAtLatest(effect.kind, key: Self.commonKey, at: Timestamp(milliseconds: max(next, now.milliseconds + pause)))
    }
}
