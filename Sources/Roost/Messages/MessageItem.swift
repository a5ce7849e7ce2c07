public import RoostAPI

/// One row of a message list: a message of the channel, or one of the user's that is on its way.
public struct MessageItem: MessageCarrying, Identifiable, Hashable, Sendable {
    /// How far the message has come.
    public enum State: Hashable, Sendable {
        /// The server has it on disk.
        case sent
        /// It waits in the outbox, and is sent as soon as that is possible.
        case pending
        /// The server refused it. ``MessageList/retry(_:)`` tries again, ``MessageList/discard(_:)`` gives it up.
        case failed(RoostError)
    }

    /// Stays the same from pending to sent, so that a list keeps the row.
    public struct ID: Hashable, Sendable {
        /// Who sent the message.
        public var sender: UserID
        /// The id that the sender's client gave the message.
        public var clientId: ClientID
    }

    private struct Row: Hashable, Sendable {
        let sender: UserID
        let clientId: ClientID
        var content: MessageContent
        let createdAt: Timestamp
        let state: State
        let message: Message?
    }

    private var row: Boxed<Row>

    /// Who sent the message.
    public var sender: UserID { row.value.sender }
    /// The id that the sender's client gave the message.
    public var clientId: ClientID { row.value.clientId }
    /// Its content; empty once it is deleted.
    public var content: MessageContent {
        get { row.value.content }
        set {
            var changed = row.value
            changed.content = newValue
            row = Boxed(changed)
        }
    }
    /// When the server stored it; while it is on its way, when it was sent by this device's clock.
    public var createdAt: Timestamp { row.value.createdAt }
    /// How far the message has come.
    public var state: State { row.value.state }
    /// The message as the server has it; nil while it is on its way.
    public var message: Message? { row.value.message }

    /// The same while the message is pending and when it is sent.
    public var id: ID { ID(sender: sender, clientId: clientId) }

    /// Whether the message was deleted: its place stays, its content is removed.
    public var isDeleted: Bool { message?.deletedAt != nil }

    /// Whether this is the very row that the other one is: nothing was read again.
    func isSameRow(as other: MessageItem) -> Bool { row === other.row }

    init(_ message: Message) {
        row = Boxed(
            Row(
                sender: message.sender, clientId: message.clientId, content: message.content, createdAt: message.createdAt,
                state: .sent, message: message))
    }

    init(_ item: OutboxItem, user: UserID) {
        let operation = item.operation
        row = Boxed(
            Row(
                sender: user, clientId: operation.clientId, content: operation.content, createdAt: item.createdAt,
                state: item.failure.map(State.failed) ?? .pending, message: nil))
    }
}
