public import RoostAPI

extension LiveChannel {
    /// The channel's messages as a live collection. Each call makes a new one; keep it while it is shown.
    ///
    ///     let messages = channel.messages(around: .firstUnread)
    ///
    /// - Parameters:
    ///   - anchor: Where it begins.
    ///   - pageSize: Messages that one page adds, 1 to 100.
    public func messages(around anchor: MessageAnchor = .newest, pageSize: Int = 30) -> MessageList {
        MessageList(of: id, around: anchor, pageSize: pageSize, in: chat)
    }

    /// Returns a message by its id: from this device if it is cached, else from the server. It is as lists show it, with what the user has changed of it and the
    /// server doesn't know yet.
    ///
    /// - Throws: `RoostError` with `not_found` for one that the user can't see, or that was deleted for good; and as ``Chat/call(_:isolation:)`` does.
    public func message(_ message: MessageID) async throws -> Message {
        let id = id
        let files = try? await chat.driver.files()
        // The outbox first, as lists do: a change leaves it after what it did is in the cache.
        let outbox = try? await files?.outbox.saved(of: id)
        let cached = try? await files?.store.read { try $0.message(message, in: id) }
        let found = if let cached { cached } else { try await chat.call(GetMessage(channel: id, message: message)) }
        let overlay = try? await files?.store.read { try $0.overlay(of: id) }
        // For a task that is cancelled nothing is read: then nobody knows whether the message is concealed.
        try Task.checkCancellation()
        if let concealed = overlay?.concealedSeq, found.seq <= concealed {
            throw RoostError(.notFound, "There is no such message.", field: "message")
        }
        return outbox?.applied(to: found, of: chat.user) ?? overlay?.applied(to: found) ?? found
    }

    /// Sends a message. When this returns, it is on this device's disk, and lists show it as pending right after. It is sent as soon as possible, after the
    /// ones before it, even after a restart. If it has the text of the channel's draft (``draft()``), the draft is removed.
    ///
    /// - Returns: The client id of the message, by which a list shows its state.
    /// - Throws: `RoostError` with the code of a limit that the message exceeds, `unavailable` if this device can't store it.
    @discardableResult
    public func send(_ draft: MessageDraft) async throws -> ClientID {
        let operation = try Self.operation(draft, in: id)
        typist.stops()
        try await chat.driver.enqueue(sending: operation)
        return operation.clientId
    }

    /// Sends a text. See ``send(_:)-(MessageDraft)``.
    @discardableResult
    public func send(_ text: String) async throws -> ClientID { try await send(MessageDraft(text: text)) }

    /// Sends a message and waits until the server has it on disk; offline, that may be long. Cancelling ends the wait, not the sending.
    ///
    /// A refusal that has an end, as in a channel that is silenced for an hour, isn't thrown: the message is sent again then, and this waits, unless
    /// ``Chat/Configuration/waitsForEndOfRefusal`` is off.
    /// - Throws: As ``send(_:)-(MessageDraft)``, and the code with which the server refused the message: `not_member`,
    ///   `not_permitted`, `not_found`. The refused message stays in the list until it is retried or discarded.
    @discardableResult
    public func sendConfirmed(_ draft: MessageDraft) async throws -> Message {
        let operation = try Self.operation(draft, in: id)
        typist.stops()
        return try await chat.driver.sendConfirmed(operation)
    }

    private static func operation(_ draft: MessageDraft, in channel: ChannelID) throws -> SendMessage {
        let operation = draft.operation(in: channel, clientId: draft.clientId ?? ClientID.random())
        try operation.validate()
        return operation
    }

    /// Replaces the given parts of a message's content (SB-58). It is on this device's disk when this returns; lists show it right after, and it is sent as
    /// soon as possible, even after a restart. If the server refuses it, the row shows the message as it was, and ``MessageItem/change`` says why.
    ///
    /// `Chat.call(EditMessage(…))` waits for the server instead.
    /// - Throws: `RoostError` with the code of a limit, `unavailable` when this device can't store it.
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

    /// The same for a row of a list, which may be on its way: a message that can't have been sent yet is sent with the change.
    ///
    /// - Throws: As ``edit(_:text:customType:data:metadata:tags:mentionees:)-(MessageID,_,_,_,_,_,_)``; `not_found` for one that was discarded, or
    ///   that another chat of the same folder is sending.
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
    /// ``edit(_:text:customType:data:metadata:tags:mentionees:)-(MessageID,_,_,_,_,_,_)``, it is shown at once.
    ///
    /// - Throws: `RoostError` with `invalid_argument` for an id that no channel can have, `unavailable` when this device can't store it.
    public func delete(_ message: MessageID) async throws {
        try await chat.driver.enqueue(.delete(DeleteMessage(channel: id, message: message)))
    }

    /// The same for a row of a list. A message that can't have been sent yet is removed without a trace.
    ///
    /// - Throws: As ``delete(_:)-(MessageID)``; `not_found` for one that was discarded, or that another chat of the same folder is sending.
    public func delete(_ item: MessageItem) async throws {
        try await change(item, .delete(DeleteMessage(channel: id, message: MessageID(rawValue: 0)), of: item.clientId))
    }

    /// Deletes several messages, all of them or none, up to 100 (SB-59). As with
    /// ``edit(_:text:customType:data:metadata:tags:mentionees:)-(MessageID,_,_,_,_,_,_)``, it is shown at once, and taken back if the server refuses one
    /// of them: the error's `field` has its index.
    ///
    /// - Throws: `RoostError` with `limit_exceeded`, `invalid_argument` for none or for one twice, `unavailable` when this device can't store it.
    public func delete(_ messages: [MessageID]) async throws {
        let deletion = DeleteMessages(channel: id, messages: messages)
        try deletion.validate()
        try await chat.driver.enqueue(.deleteMany(deletion))
    }

    /// Deletes messages for this user alone, on all of their devices, up to 100: others still see them. It can't be undone. Each message keeps its place
    /// without its content (``MessageItem/isDeletedForMe``). It is shown at once.
    ///
    /// - Throws: As ``delete(_:)-([MessageID])``.
    public func deleteForMe(_ messages: [MessageID]) async throws {
        let deletion = DeleteMessagesForMe(channel: id, messages: messages)
        try deletion.validate()
        try await chat.driver.enqueue(.deleteForMe(deletion))
    }

    /// Deletes a message for good: only its place in the order is left. It is shown as deleted at once, and disappears when the server has done it.
    ///
    /// - Throws: `RoostError` with `invalid_argument` for an id that no channel can have, `unavailable` when this device can't store it.
    public func purge(_ message: MessageID) async throws {
        try await chat.driver.enqueue(.purge(PurgeMessage(channel: id, message: message)))
    }

    /// Restores a deleted message, as long as the app keeps its content (SB-59). Authors may restore messages that they deleted themselves, operators any but
    /// admin messages, which only admins restore. A deletion that is still on its way is taken back at once; otherwise the row changes when the server has
    /// answered.
    ///
    /// - Throws: `RoostError` with `invalid_argument` for an id that no channel can have, `unavailable` when this device can't store it.
    public func undelete(_ message: MessageID) async throws {
        try await changeStored(.undelete(UndeleteMessage(channel: id, message: message)))
    }

    /// Changes the lists of texts that a message carries (SB-37): removes lists, makes new ones, adds values, removes values, in this order. It is shown at
    /// once.
    ///
    /// - Throws: `RoostError` with the code of a limit, `unavailable` when this device can't store it.
    public func updateMetaArrays(
        of message: MessageID, create: [String]? = nil, add: [String: [String]]? = nil, removeValues: [String: [String]]? = nil,
        remove: [String]? = nil
    ) async throws {
        let update = UpdateMetaArrays(
            channel: id, message: message, create: create, add: add, removeValues: removeValues, remove: remove)
        try update.validate()
        try await chat.driver.enqueue(.metaArrays(update))
    }

    /// Empties the channel for this user alone, on all of their devices: the messages so far are concealed and count as read (SB-60). It is shown at once,
    /// and taken back if the server refuses it: with `feature_disabled` where the app hides history from new members.
    ///
    /// - Throws: `RoostError` with `invalid_argument` for an id that no channel can have, `unavailable` when this device can't store it. Where this device has
    ///   nothing of the channel yet, it is a call: it throws `not_connected` while offline or catching up, what the server
    ///   refuses, and as ``Chat/call(_:isolation:)`` does.
    public func resetHistory() async throws { try await enqueue(.reset(ResetHistory(channel: id))) }

    private func change(_ item: MessageItem, _ change: OutboxOperation) async throws {
        if let message = item.message { return try await changeStored(change.resolved(message.messageId)) }
        do {
            try await chat.driver.enqueue(change)
        } catch let error as RoostError where error.code == .notFound {
            // It has arrived since the row was shown, or was given up.
            let (channel, client) = (id, item.clientId)
            let stored = try await chat.driver.files().store.read { try $0.ownMessage(client, in: channel) }
            guard let stored else { throw error }
            try await changeStored(change.resolved(stored.messageId))
        }
    }

    /// Takes a change of a stored message into the outbox.
    private func changeStored(_ change: OutboxOperation) async throws {
        do {
            try await chat.driver.enqueue(change)
        } catch let error as RoostError where error.code == .notFound {
            // Another chat of the same files has sent what it was to be one with. It comes behind that.
            try await chat.driver.enqueue(change)
        }
    }
}
