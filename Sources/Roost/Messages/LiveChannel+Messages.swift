public import RoostAPI

extension LiveChannel {
    /// The channel's messages as a live collection. Each call makes a new one; keep it while it is shown.
    ///
    ///     let messages = channel.messages(around: .firstUnread)
    ///
    /// - Parameters:
    ///   - anchor: Where the list starts.
    ///   - pageSize: The number of messages that a page adds, 1 to 100.
    public func messages(around anchor: MessageAnchor = .newest, pageSize: Int = 30) -> MessageList {
        MessageList(of: id, around: anchor, pageSize: pageSize, in: chat)
    }

    /// Returns a message by its id: from this device if it is cached, otherwise from the server. It is returned as lists show it, including the
    /// user's changes that the server doesn't know yet.
    ///
    /// - Throws: `RoostError` with `not_found` for a message that the user can't see or that was permanently deleted, and the errors of
    ///   ``Chat/call(_:isolation:)``.
    public func message(_ message: MessageID) async throws -> Message {
        let id = id
        let files = try? await chat.driver.files()
        // The outbox first, as in lists: a change leaves it only after its effect is in the cache.
        let outbox = try? await files?.outbox.saved(of: id)
        let cached = try? await files?.store.read { try $0.message(message, in: id) }
        let found = if let cached { cached } else { try await chat.call(GetMessage(channel: id, message: message)) }
        let overlay = try? await files?.store.read { try $0.overlay(of: id) }
        // In a cancelled task nothing is read: it isn't known then whether the message is concealed.
        try Task.checkCancellation()
        if let concealed = overlay?.concealedSeq, found.seq <= concealed {
            throw RoostError.notFound("message")
        }
        return outbox?.applied(to: found, of: chat.user) ?? overlay?.applied(to: found) ?? found
    }

    /// Sends a message. When this returns, it is stored on this device, and lists show it as pending right after. It is sent as soon as possible,
    /// after earlier messages, even after a restart. If its text is that of the channel's draft (``draft()``), the draft is removed.
    ///
    /// - Returns: The client id of the message, by which a list shows its state.
    /// - Throws: `RoostError` with the code of a limit that the message exceeds, `storage_failed`, `storage_in_use` or `storage_gone` if this device
    ///   can't store it.
    @discardableResult
    public func send(_ draft: MessageDraft) async throws -> ClientID {
        let operation = try Self.operation(draft, in: id)
        typingReporter.stops()
        try await chat.driver.enqueue(sending: operation)
        return operation.clientId
    }

    /// Sends a text. See ``send(_:)-(MessageDraft)``.
    @discardableResult
    public func send(_ text: String) async throws -> ClientID { try await send(MessageDraft(text: text)) }

    /// Sends a message and waits until the server has stored it; offline, that may take long. Cancelling ends the wait, not the sending.
    ///
    /// A temporary refusal, for instance in a channel that is silenced for an hour, isn't thrown: the message is sent again when it ends, and this
    /// keeps waiting, unless ``Chat/Configuration/waitsForEndOfRefusal`` is false.
    /// - Throws: The errors of ``send(_:)-(MessageDraft)``, and the server's refusal, with a code that `SendMessage` documents, such as
    ///   `not_member`, `not_permitted`, `send_not_allowed` or, since nobody knows when it ends, `frozen`. The refused message stays in the list until
    ///   it is retried or discarded. Also `unavailable` if another chat of the same files has sent or discarded it, and `unauthenticated` after
    ///   ``Chat/logOut(discardingUnsent:signingOutDevice:)``.
    @discardableResult
    public func sendConfirmed(_ draft: MessageDraft) async throws -> Message {
        let operation = try Self.operation(draft, in: id)
        typingReporter.stops()
        return try await chat.driver.sendConfirmed(operation)
    }

    private static func operation(_ draft: MessageDraft, in channel: ChannelID) throws -> SendMessage {
        let operation = draft.operation(in: channel, clientId: draft.clientId ?? ClientID.random())
        try operation.validate()
        return operation
    }

    /// Replaces the given parts of a message's content (SB-58). When this returns, the change is stored on this device; lists show it right after,
    /// and it is sent as soon as possible, even after a restart. If the server refuses it, the row shows the message as it was, and
    /// ``MessageItem/change`` has the reason.
    ///
    /// `Chat.call(EditMessage(…))` waits for the server instead.
    /// - Throws: `RoostError` with the code of a limit, `storage_failed`, `storage_in_use` or `storage_gone` if this device can't store it.
    public func edit(
        _ message: MessageID, text: String? = nil, customType: String? = nil, data: String? = nil, metadata: JSONValue? = nil,
        tags: [String]? = nil, mentionees: [Mentionee]? = nil
    ) async throws {
        let edit = EditMessage(
            channel: id, message: message, text: text, customType: customType, data: data, metadata: metadata, tags: tags,
            mentionees: mentionees)
        try edit.validate()
        try await changeStored(.edit(edit))
    }

    /// Does the same for a row of a list, which may be on its way: a message that can't have been sent yet is sent with the change.
    ///
    /// - Throws: The errors of ``edit(_:text:customType:data:metadata:tags:mentionees:)-(MessageID,_,_,_,_,_,_)``; `not_found` for a message that was
    ///   discarded, or that another chat with the same folder is sending.
    public func edit(
        _ item: MessageItem, text: String? = nil, customType: String? = nil, data: String? = nil, metadata: JSONValue? = nil,
        tags: [String]? = nil, mentionees: [Mentionee]? = nil
    ) async throws {
        let edit = EditMessage(
            channel: id, message: MessageID(rawValue: 0), text: text, customType: customType, data: data, metadata: metadata,
            tags: tags, mentionees: mentionees)
        try edit.validate()
        try await change(item, .edit(edit, of: item.clientId))
    }

    /// Deletes a message: its place stays, its content is removed (SB-59). Deleting it again changes nothing. As with
    /// ``edit(_:text:customType:data:metadata:tags:mentionees:)-(MessageID,_,_,_,_,_,_)``, the change is shown at once.
    ///
    /// - Throws: `RoostError` with `invalid_argument` for an id that no channel can have, `storage_failed`, `storage_in_use` or `storage_gone` if
    ///   this device can't store it.
    public func delete(_ message: MessageID) async throws {
        try await chat.driver.enqueue(.delete(DeleteMessage(channel: id, message: message)))
    }

    /// Does the same for a row of a list. A message that can't have been sent yet is removed without a trace.
    ///
    /// - Throws: The errors of ``delete(_:)-(MessageID)``; `not_found` for a message that was discarded, or that another chat with the same folder is
    ///   sending.
    public func delete(_ item: MessageItem) async throws {
        try await change(item, .delete(DeleteMessage(channel: id, message: MessageID(rawValue: 0)), of: item.clientId))
    }

    /// Deletes several messages, all of them or none, up to 100 (SB-59). As with
    /// ``edit(_:text:customType:data:metadata:tags:mentionees:)-(MessageID,_,_,_,_,_,_)``, the change is shown at once, and reverted if the server
    /// refuses one of them: the error's `field` has its index.
    ///
    /// - Throws: `RoostError` with `limit_exceeded`, `invalid_argument` for an empty list or a duplicate, `storage_failed`, `storage_in_use` or
    ///   `storage_gone` if this device can't store it.
    public func delete(_ messages: [MessageID]) async throws {
        let deletion = DeleteMessages(channel: id, messages: messages)
        try deletion.validate()
        try await chat.driver.enqueue(.deleteMany(deletion))
    }

    /// Deletes up to 100 messages for this user alone, on all of their devices: other users still see them. It can't be undone. Each message keeps
    /// its place without its content (``MessageItem/isDeletedForMe``). The change is shown at once.
    ///
    /// - Throws: The errors of ``delete(_:)-([MessageID])``.
    public func deleteForMe(_ messages: [MessageID]) async throws {
        let deletion = DeleteMessagesForMe(channel: id, messages: messages)
        try deletion.validate()
        try await chat.driver.enqueue(.deleteForMe(deletion))
    }

    /// Permanently deletes a message: only its place in the order is left. It is shown as deleted at once, and disappears when the server has deleted
    /// it.
    ///
    /// - Throws: `RoostError` with `invalid_argument` for an id that no channel can have, `storage_failed`, `storage_in_use` or `storage_gone` if
    ///   this device can't store it.
    public func purge(_ message: MessageID) async throws {
        try await chat.driver.enqueue(.purge(PurgeMessage(channel: id, message: message)))
    }

    /// Restores a deleted message, if the app keeps the content of deleted messages (SB-59). Authors may restore messages that they deleted
    /// themselves; operators may restore any except admin messages, which only admins may restore. A deletion that can't have been sent yet, also a
    /// permanent one or one of several messages, isn't carried out for this message. A deletion that is still on its way is reverted at once;
    /// otherwise the row changes when the server has answered.
    ///
    /// - Throws: `RoostError` with `invalid_argument` for an id that no channel can have, `storage_failed`, `storage_in_use` or `storage_gone` if
    ///   this device can't store it.
    public func undelete(_ message: MessageID) async throws {
        try await changeStored(.undelete(UndeleteMessage(channel: id, message: message)))
    }

    /// Changes the lists of texts that a message carries (SB-37): it removes lists, creates lists, adds values and removes values, in this order. The
    /// change is shown at once.
    ///
    /// - Throws: `RoostError` with the code of a limit, `storage_failed`, `storage_in_use` or `storage_gone` if this device can't store it.
    public func updateMetaArrays(
        of message: MessageID, create: [String]? = nil, add: [String: [String]]? = nil, removeValues: [String: [String]]? = nil,
        remove: [String]? = nil
    ) async throws {
        let update = UpdateMetaArrays(
            channel: id, message: message, create: create, add: add, removeValues: removeValues, remove: remove)
        try update.validate()
        try await chat.driver.enqueue(.metaArrays(update))
    }

    /// Empties the channel for this user alone, on all of their devices: the messages so far are concealed and count as read (SB-60). The change is
    /// shown at once, and reverted if the server refuses it: with `feature_disabled` if the app hides history from new members.
    ///
    /// Messages that arrive before the server has handled it stay visible, unless a message of the user's is queued or being sent in the channel, and
    /// doesn't wait for a refusal to end: the server then conceals everything up to the moment at which it handles the request, including messages
    /// that the user hasn't seen.
    ///
    /// - Throws: `RoostError` with `invalid_argument` for an id that no channel can have, `storage_failed`, `storage_in_use` or `storage_gone` if
    ///   this device can't store it. If this device has nothing of the channel yet, it is a call: it throws `not_connected` while offline or catching
    ///   up, the server's refusal, and the errors of ``Chat/call(_:isolation:)``.
    public func resetHistory() async throws { try await enqueue(.reset(ResetHistory(channel: id))) }

    private func change(_ item: MessageItem, _ change: OutboxOperation) async throws {
        if let message = item.message { return try await changeStored(change.resolved(message.messageId)) }
        do {
            try await chat.driver.enqueue(change)
        } catch let error as RoostError where error.code == .notFound {
            // It has arrived since the row was shown, or was discarded.
            let (channel, client) = (id, item.clientId)
            let stored = try await chat.driver.files().store.read { try $0.ownMessage(client, in: channel) }
            guard let stored else { throw error }
            try await changeStored(change.resolved(stored.messageId))
        }
    }

    /// Adds a change of a stored message to the outbox.
    private func changeStored(_ change: OutboxOperation) async throws {
        do {
            try await chat.driver.enqueue(change)
        } catch let error as RoostError where error.code == .notFound {
            // Another chat with the same files has sent the operation that the change was to be merged into. The change now follows it.
            try await chat.driver.enqueue(change)
        }
    }
}
