import RoostAPI

/// Messages of the outbox: what their answers and events complete, and the changes that follow them.
extension Sync {
    /// A message that was acknowledged before its event arrived.
    struct Acknowledged: Hashable, Sendable {
        var message: Message
        /// Its operation, which still has a row in the outbox.
        var item: OutboxItem
        /// Whether its channel is ephemeral, without client ids. The cache that has this information may be replaced meanwhile.
        var isEphemeral: Bool
    }

    mutating func acknowledge(_ item: OutboxItem, _ key: MessageKey, _ bytes: [UInt8]) {
        let message: Message
        do {
            message = try ReplyResult<Message>.decode(bytes)
        } catch {
            return sendFailed(item, RoostError(.internalError, "The stored message couldn't be read: \(error)"))
        }
        resolve(key, message.messageId)
        emit(.settled(key, .success(message)))
        if let position = saved.channels[key.channel], message.seq > position.cursor {
            // The row stays until the stream has delivered the message, so the list always shows it.
            forget(item)
            acknowledged[key] = Acknowledged(message: message, item: item, isEphemeral: isEphemeral(key.channel))
        } else {
            remove(item, removal(of: item, key, as: message.messageId, isEphemeral: isEphemeral(key.channel)))
        }
    }

    /// The write that completes a message that the server has. In an ephemeral channel, which has no client ids, the outbox row is removed even if
    /// the message can't be stored: if sent again, it would be delivered twice.
    private func removal(of item: OutboxItem, _ key: MessageKey, as message: MessageID, isEphemeral: Bool) -> OutboxWrite {
        isEphemeral ? .remove(item.id, of: item.channel) : .arrived(item.id, key, as: message)
    }

    /// Reports the outcome of a change that names users, or restores a message that does: its answer shows which of them aren't mentioned. The answer
    /// to a repeated change only confirms it.
    mutating func settleChange(_ item: OutboxItem, _ bytes: [UInt8]) {
        var repeated: EditMessage?
        switch item.operation {
        case .edit(let edit, _) where edit.mentionees != nil: repeated = edit
        case .undelete: break
        default: return
        }
        guard let message = try? ReplyResult<Message>.decode(bytes) else {
            if let repeated { emit(.repeated(repeated)) }
            return
        }
        emit(.settled(MessageKey(channel: message.channelId, clientId: message.clientId), .success(message)))
    }

    /// Handles a channel's rows that its stream has delivered and that are stored.
    mutating func arrived(_ rows: Rows) {
        for message in rows.sent(by: user) { arrived(message) }
        noteArrivals(rows.messages ?? [])
    }

    /// Whether rows include a message that this device has sent and that wasn't known to have arrived.
    func isOnItsWay(anyOf rows: Rows) -> Bool {
        rows.sent(by: user).map { MessageKey(channel: $0.channelId, clientId: $0.clientId) }.contains { key in
            acknowledged[key] != nil || item(.message(key)) != nil
        }
    }

    /// Handles an own message that has been stored: its outbox row is no longer needed.
    private mutating func arrived(_ message: Message) {
        let key = MessageKey(channel: message.channelId, clientId: message.clientId)
        guard let item = item(.message(key)) else { return }
        resolve(key, message.messageId)
        remove(item, removal(of: item, key, as: message.messageId, isEphemeral: isEphemeral(key.channel)))
        emit(.settled(key, .success(item.operation.sent.map(message.answered) ?? message)))
        showOverlay(of: key.channel)
        sendNext(in: key.channel)
    }

    mutating func settleAcknowledged() {
        // Sorted, so the same history completes them in the same order.
        for (key, known) in acknowledged.sorted(by: { $0.value.item.place < $1.value.item.place })
        where saved.channels[key.channel].map({ $0.cursor >= known.message.seq }) ?? true {
            acknowledged[key] = nil
            emit(.outbox(removal(of: known.item, key, as: known.message.messageId, isEphemeral: known.isEphemeral)))
        }
    }

    /// Sends acknowledged messages again. The server has started another history, for instance after restoring a backup, and may have lost them; it
    /// recognises duplicates by their client ids. They aren't sent to another server, nor in an ephemeral channel, which has no client ids: they
    /// would be delivered twice.
    mutating func resendAcknowledged() {
        let former = acknowledged.sorted { $0.value.item.place < $1.value.item.place }
        acknowledged = [:]
        for (key, known) in former {
            let item = known.item
            guard !known.isEphemeral else {
                // As elsewhere, even if the message can't be stored.
                emit(.outbox(.remove(item.id, of: item.channel)))
                continue
            }
            if isForThisServer(item) {
                queues[item.channel, default: OutboxQueue()].put(item, for: server)
                unresolve(key, known)
            } else {
                emit(.outbox(.done(item.id, of: item.channel)))
            }
        }
    }

    func isEphemeral(_ channel: ChannelID) -> Bool { saved.channels[channel].map { $0.messageCount == nil } ?? false }

    /// Restores the queues from the file, which has the rows of acknowledged messages: they are sent again, and the server recognises duplicates by
    /// their client ids. It may have started another history by then and give them other ids, so changes name them by their client ids until they are
    /// acknowledged again. An ephemeral channel has no client ids: its messages are complete.
    mutating func restoreAcknowledged(from outbox: SavedOutbox) {
        // Sorted, so the same history puts the changes in the same order.
        let former = acknowledged.sorted { $0.value.item.place < $1.value.item.place }
        acknowledged = [:]
        var outbox = outbox
        for (_, known) in former where known.isEphemeral {
            outbox.items.removeAll { $0.id == known.item.id }
            emit(.outbox(.remove(known.item.id, of: known.item.channel)))
        }
        restoreQueues(outbox)
        for (key, known) in former where item(.message(key)) != nil { unresolve(key, known) }
    }

    /// Makes changes of a message that was pending name it by its id from now on.
    private mutating func resolve(_ key: MessageKey, _ message: MessageID) {
        for var change in changes(of: .sent(key.clientId), in: key.channel) {
            change.operation = change.operation.resolved(message)
            put(change, content: true)
        }
    }

    /// Makes changes of a message that is pending again name it by its client id again, because its id will be different. This includes refused ones,
    /// since they can be retried.
    private mutating func unresolve(_ key: MessageKey, _ known: Acknowledged) {
        // On a server other than the message's, its id names another message.
        for var change in changes(of: .stored(known.message.messageId), in: key.channel)
        where !change.isForAnother(than: known.item.server) {
            change.operation = change.operation.unresolved(key.clientId)
            put(change, content: true)
        }
        showOverlay(of: key.channel)
    }

    /// Merges the changes of a message into the message itself, if the server can't have it. A message that was deleted meanwhile is dropped.
    ///
    /// - Returns: The resulting operation; nil if there is nothing left to send.
    mutating func mergeChanges(ofUnsent item: OutboxItem) -> OutboxItem? {
        guard let key = item.message else { return item }
        let changes = changesHere(of: key)
        guard !changes.isEmpty else { return item }
        guard !changes.contains(where: \.operation.isDeletion) else {
            giveUp(item)
            return nil
        }
        merge(changes, into: item)
        return queues[key.channel]?.items[item.id]
    }

    /// The server doesn't have a refused message, and its sender was notified: its changes are merged into it. A message that was deleted meanwhile
    /// is dropped.
    mutating func mergeChanges(of item: OutboxItem, _ key: MessageKey) {
        let changes = changesHere(of: key)
        guard changes.contains(where: \.operation.isDeletion) else { return merge(changes, into: item) }
        // Without the message there is nothing left to change, on any server.
        for change in self.changes(of: .sent(key.clientId), in: key.channel) { remove(change) }
        remove(item)
    }

    /// The changes of a pending message that are meant for this server: refused changes, and those meant for another server, wait for the app.
    private func changesHere(of key: MessageKey) -> [OutboxItem] {
        changes(of: .sent(key.clientId), in: key.channel).filter { isForThisServer($0) && !$0.isRefused }
    }

    private mutating func merge(_ changes: [OutboxItem], into item: OutboxItem) {
        var item = item
        for change in changes {
            remove(change)
            if case .edit(let edit, _) = change.operation { item.operation = item.operation.edited(edit) }
        }
        if item != queues[item.channel]?.items[item.id] { put(item, content: true) }
    }
}

extension Message {
    /// The message as in the answer to its sending, which follows its event and adds the users whom it doesn't mention (MN-17).
    fileprivate func answered(_ sending: SendMessage) -> Message {
        // A message that has been changed since has the mentions of the change.
        changeSeq == seq ? naming(sending.content.mentionees) : self
    }

    /// Likewise for an edit that was made but whose answer was lost.
    func answered(_ edit: EditMessage) -> Message { naming(edit.mentionees) }

    private func naming(_ mentionees: [Mentionee]?) -> Message {
        guard let named = mentionees?.mentionedUsers else { return self }
        let dropped = named.filter { content.mentionees?.mentionedUsers.contains($0) != true }
        var message = self
        message.droppedMentions = dropped.isEmpty ? nil : dropped
        return message
    }
}

extension OutboxOperation {
    /// The same message with other content.
    func edited(_ edit: EditMessage) -> OutboxOperation {
        guard var message = sent else { return self }
        message.content.apply(edit)
        return .send(message)
    }
}
