public import RoostAPI

/// What messages said before they were edited or deleted: kept for a time if the app says so, in a table of its own, which an effect empties.
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
        // What the caller has deleted for themselves is shown to them nowhere, and nothing of a deleted message that can't be brought back: something may
        // still be kept of it if the option was turned off since.
        guard !message.isDeletedForMe, message.deletedAt == nil || context.options.undeletionSeconds > 0 else {
            return MessageVersions(versions: [])
        }
        var versions = try context.versions(of: message, before: before)
        var sizeBytes = 0
        let fitting = versions.prefix { version in
            sizeBytes += version.content.sizeBytes
            return sizeBytes <= Limits.pageContentBytes
        }
        // The newest of them is there, however large it is.
        let hasMore = max(fitting.count, 1) < versions.count
        versions.removeLast(versions.count - min(versions.count, max(fitting.count, 1)))
        return MessageVersions(versions: versions, hasMore: hasMore)
    }
}

extension UndeleteMessage: Handled {
    /// Whoever it mentions is found in what is kept of it.
    public func scope(for caller: Caller) -> Scope { .channel(channel).findingUsers }

    public func handle(in context: inout Context) throws -> Message {
        // It says something in the channel again, which a member who is muted can't, nor anybody during a freeze.
        var (access, before) = try context.requireChange(
            of: message, in: channel, own: .messageEditOwn, any: .messageDeleteAny)
        guard before.deletedAt != nil else { return try context.shown(before, in: access) }
        try context.requireMayChangeAdminMessage(before, in: access, "bring back")
        guard context.options.undeletionSeconds > 0 else {
            throw RoostError(.featureDisabled, "The app keeps nothing of deleted messages.")
        }
        guard let version = try context.versions(of: before, limit: 1).first, version.isDeletion else {
            throw RoostError(.notFound, "Nothing is kept of the message any more.", field: "message")
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
    /// - Parameter changeSeq: That of a version: only those before it.
    fileprivate func versions(
        of message: Message, before changeSeq: Seq? = nil, limit: Int = Limits.versionsPerMessage + 1
    ) throws -> [MessageVersion] {
        let sql: SQL = """
            SELECT \(MessageVersion.columns) FROM message_versions
            WHERE channel_id = \(message.channelId) AND seq = \(message.seq) AND kept_until > \(now) AND change_seq < \(changeSeq ?? .max)
            ORDER BY change_seq DESC LIMIT \(limit)
            """
        return try transaction.rows(sql) { try MessageVersion(reading: &$0) }
    }

    /// Throws if somebody else deleted a message that those can bring back who may delete anybody's, of whom the caller is none.
    func requireDeleter(of message: Message, in access: ChannelAccess) throws {
        guard message.deletedAt != nil, options.undeletionSeconds > 0, let refusal = refusal(of: .messageDeleteAny, in: access),
            let deletion = try versions(of: message, limit: 1).first, deletion.isDeletion, deletion.replacedBy != caller.user
        else { return }
        throw RoostError(.notMessageOwner, "Someone else deleted the message.", rule: refusal.rule)
    }

    /// Makes the caller the one who has deleted a message, if it was the author, who could bring it back.
    func takeOverDeletion(of message: Message) throws {
        guard caller.user != message.sender else { return }
        try transaction.perform(
            """
            UPDATE message_versions SET replaced_by = \(caller.user)
            WHERE channel_id = \(message.channelId) AND seq = \(message.seq) AND is_deletion = 1 AND replaced_by = \(message.sender)
                  AND kept_until > \(now)
            """)
    }

    /// Keeps what a message says until now, as long as the app's options say.
    mutating func keepVersion(of message: Message, deleting isDeletion: Bool) throws {
        let seconds = isDeletion ? options.undeletionSeconds : options.versionSeconds
        let keptUntil = Timestamp(milliseconds: now.milliseconds + Int64(seconds) * 1000)
        let these: SQL = "channel_id = \(message.channelId) AND seq = \(message.seq)"
        // Nothing is left of a deleted message for longer than it can be undeleted.
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
        try soonest(.forgetVersions, key: forgettingKey, at: keptUntil)
    }

    /// The key of the effect that forgets versions in time. Any of them forgets those of all channels. Where several nodes write, the row of an effect is locked by
    /// whoever asks for it, until their transaction ends: so each lane has one of its own. With one for all, or for some channels, an edit would wait for
    /// edits of other channels, and two transactions with several edits each for one another.
    private var forgettingKey: String { transaction.dialect.rowLock == nil ? Self.commonKey : "\(ids.numberValue)" }

    /// The key under which all go on once they have run, so that those of former sessions, whose numbers nobody has any more, die out.
    private static let commonKey = ""

    /// Gives the versions of a message that isn't deleted any more the time that they had.
    fileprivate func restoreVersions(of message: Message) throws {
        guard options.versionSeconds > 0 else { return }
        let kept = Int64(options.versionSeconds) * 1000
        try transaction.perform(
            """
            UPDATE message_versions SET kept_until = replaced_at + \(kept)
            WHERE channel_id = \(message.channelId) AND seq = \(message.seq) AND kept_until < replaced_at + \(kept)
            """)
    }

    /// Deletes what is kept of a message.
    func forgetVersions(of message: Message) throws {
        try transaction.perform("DELETE FROM message_versions WHERE channel_id = \(message.channelId) AND seq = \(message.seq)")
    }
}

// MARK: Forgetting

extension EffectKind.Name {
    static let forgetVersions = Self(rawValue: "messageVersions.forget")
}

extension EffectKind {
    /// Deletes earlier versions whose time is over, and runs again when the next one's is.
    static let forgetVersions = EffectKind(.forgetVersions) { effect, _, context in
        try context.forgetOldVersions(effect)
    }
}

extension Context {
    /// The most versions that one transaction deletes.
    private static let versionsAtOnce: Int64 = 1000
    /// The pause between two runs, so that many edits don't make as many runs. What is over is shown to nobody meanwhile.
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
        // A version that isn't committed yet isn't seen here. Its writer has asked with the key of their lane, and whoever runs that one waits for them.
        try soonest(effect.kind, key: Self.commonKey, at: Timestamp(milliseconds: max(next, now.milliseconds + pause)))
    }
}
