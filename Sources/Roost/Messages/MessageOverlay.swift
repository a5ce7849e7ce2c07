import RoostAPI

/// What the user's operations on their way change of a message.
struct MessageOverlay: Codable, Hashable, Sendable {
    var message: MessageID
    private var edit: EditMessage?
    /// By this device's clock.
    private var editedAt: Timestamp?
    var deletedAt: Timestamp?

    init(message: MessageID) { self.message = message }

    mutating func edit(_ later: EditMessage, at time: Timestamp) {
        edit = edit?.followed(by: later) ?? later
        editedAt = time
    }

    fileprivate func applied(to message: Message) -> Message {
        // What is gone stays so.
        guard message.deletedAt == nil else { return message }
        var shown = message
        if let edit {
            shown.content.apply(edit)
            shown.editedAt = editedAt
        }
        if let deletedAt { (shown.content, shown.deletedAt) = (shown.content.emptied, deletedAt) }
        return shown
    }
}

extension Overlay {
    /// A message as it is shown.
    func applied(to message: Message) -> Message {
        messages.first { $0.message == message.messageId }?.applied(to: message) ?? message
    }
}
