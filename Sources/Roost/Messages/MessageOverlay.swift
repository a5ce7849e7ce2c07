import RoostAPI

/// The effect of the user's pending operations on a message.
struct MessageOverlay: Codable, Hashable, Sendable {
    var message: MessageID
    private var edit: EditMessage?
    /// By this device's clock.
    private var editedAt: Timestamp?
    private var metaArrays: [UpdateMetaArrays] = []
    private var deletedAt: Timestamp?
    private var isDeletedForMe = false

    init(message: MessageID) { self.message = message }

    mutating func edit(_ later: EditMessage, at time: Timestamp) {
        edit = edit?.followed(by: later) ?? later
        editedAt = time
    }

    mutating func update(_ update: UpdateMetaArrays) { metaArrays.append(update) }

    /// - Parameter onlyForUser: Whether other users still see the message.
    mutating func delete(at time: Timestamp, onlyForUser: Bool) {
        deletedAt = deletedAt ?? time
        isDeletedForMe = isDeletedForMe || onlyForUser
    }

    /// Reverts a pending deletion. A message that the server has deleted is restored with its answer: its content isn't on this device.
    mutating func undelete() { if !isDeletedForMe { deletedAt = nil } }

    fileprivate func applied(to message: Message) -> Message {
        // Deleted content stays deleted.
        guard message.deletedAt == nil else { return message }
        var shown = message
        if let edit {
            shown.content.apply(edit)
            shown.editedAt = editedAt
        }
        for update in metaArrays { shown.content.applyIfPossible(update) }
        if let deletedAt { (shown.content, shown.deletedAt) = (shown.content.emptied, deletedAt) }
        shown.isDeletedForMe = shown.isDeletedForMe || isDeletedForMe
        return shown
    }
}

extension MessageContent {
    /// Applies an update of the lists, if possible, before the server has answered.
    mutating func applyIfPossible(_ update: UpdateMetaArrays) {
        var changed = self
        guard (try? changed.apply(update)) != nil else { return }
        self = changed
    }
}

extension SavedOutbox {
    /// A message as a list shows it, with the user's changes in the outbox.
    func applied(to message: Message, of user: UserID) -> Message {
        let target = ChangedMessage.stored(message.messageId)
        // A change made while the message was pending may still name it by its client id.
        let former = message.sender == user ? ChangedMessage.sent(message.clientId) : nil
        let changes = items.filter { item in
            !item.isRefused && !item.isForAnother(than: server) && item.operation.changed.contains { $0 == target || $0 == former }
        }
        let resolved = changes.map { change in
            var change = change
            change.operation = change.operation.resolved(message.messageId)
            return change
        }
        return Overlay(resolved).applied(to: message)
    }
}

extension Overlay {
    /// A message as shown.
    func applied(to message: Message) -> Message {
        messages.first { $0.message == message.messageId }?.applied(to: message) ?? message
    }
}
