public import RoostAPI

/// One row of a message list: a message of the channel, or one of the user's messages on its way.
///
/// It also exposes the fields of its ``content``: `item.text`. They are read-only, because setting them would edit nothing.
@dynamicMemberLookup
public struct MessageItem: Identifiable, Hashable, Sendable {
    /// The state of a message or of a change.
    public enum State: Hashable, Sendable {
        /// The server has stored it.
        case sent
        /// It is in the outbox, and is sent as soon as possible.
        case pending
        /// The server refuses it until a certain time (`until` of the error), and it is sent again then.
        case waiting(RoostError)
        /// The server refused it. ``MessageList/retry(_:)-(MessageItem)`` sends it again, ``MessageList/discard(_:)-(MessageItem)`` removes it.
        case failed(RoostError)
        /// It was meant for another server's data, and isn't sent until the app says so (``LiveOutbox/isForAnotherServer``).
        /// ``MessageList/discard(_:)-(MessageItem)`` removes it.
        case forAnotherServer
    }

    /// Stays the same from pending to sent, so the list keeps the row.
    public struct ID: Hashable, Sendable {
        /// The user who sent the message.
        public var sender: UserID
        /// The id that the sender's client gave to the message.
        public var clientId: ClientID
    }

    struct Row: Hashable, Sendable {
        var sender: UserSummary
        /// The users whom the message mentions by name, as far as they are known.
        var mentioned: [UserSummary] = []
        let clientId: ClientID
        var content: MessageContent
        let createdAt: Timestamp
        let state: State
        let message: Message?
        var change: State?
        var isDeleted = false
        var isDeletedForMe = false
        var droppedMentions: [UserID] = []
        /// The user's pending operations that affect it.
        var operations: [Int64] = []
    }

    private(set) var row: Boxed<Row>

    /// The sender, as this device knows them: only the id until their name arrives. A deactivated user keeps their last name.
    public var sender: UserSummary { row.value.sender }
    /// The users whom the message mentions by name (MN-03), as this device knows them: only the id until their name arrives.
    public var mentionedUsers: [UserSummary] {
        let users = content.mentionees?.mentionedUsers ?? []
        return users.map { user in row.value.mentioned.first { $0.userId == user } ?? UserSummary(userId: user) }
    }
    /// The users whom the user's message, or the user's last edit of it, names without mentioning them: they aren't members, may not read the
    /// channel, or are banned. The server reports them in its answer, and this device remembers them as long as the chat exists and the message isn't
    /// edited again.
    public var droppedMentions: [UserID] { row.value.droppedMentions }
    /// The id that the sender's client gave to the message.
    public var clientId: ClientID { row.value.clientId }
    /// Its content; empty once it is deleted.
    public var content: MessageContent { row.value.content }
    /// A field of the content.
    public subscript<Value>(dynamicMember path: KeyPath<MessageContent, Value>) -> Value { content[keyPath: path] }
    /// When the server stored it; while it is on its way, when the user sent it, by this device's clock.
    public var createdAt: Timestamp { row.value.createdAt }
    /// The state of the message.
    public var state: State { row.value.state }
    /// The message as stored on the server; nil while it is on its way.
    public var message: Message? { row.value.message }

    /// The row's id, which stays the same from pending to sent.
    public var id: ID { ID(sender: sender.userId, clientId: clientId) }

    /// The state of the user's edit or deletion of the message, while it is on its way or after it failed; nil if there is none. The row shows the
    /// change unless it is `failed` or `forAnotherServer`. ``MessageList/retry(_:)-(MessageItem)`` and ``MessageList/discard(_:)-(MessageItem)``
    /// apply to it too.
    public var change: State? { row.value.change }

    /// Whether the message was deleted: its place stays, its content is removed.
    public var isDeleted: Bool { row.value.isDeleted || message?.deletedAt != nil }

    /// Whether the user has deleted it for themselves alone: other users still see it.
    public var isDeletedForMe: Bool { row.value.isDeletedForMe || message?.isDeletedForMe == true }

    var operations: [Int64] { row.value.operations }

    /// The row of a stored message. An app needs it only for previews and tests of its views: lists make their rows themselves.
    ///
    /// - Parameters:
    ///   - message: The message as the server has stored it.
    ///   - sender: The sender as shown; if nil, only their id is known.
    ///   - mentioned: The users whom it mentions by name; of others only the id is known.
    ///   - change: The state of the user's edit or deletion, if one is on its way or failed.
    public init(_ message: Message, sender: UserSummary? = nil, mentioned: [UserSummary] = [], change: State? = nil) {
        row = Boxed(
            Row(
                sender: sender ?? UserSummary(userId: message.sender), mentioned: mentioned, clientId: message.clientId,
                content: message.content, createdAt: message.createdAt, state: .sent, message: message, change: change))
    }

    /// The row of a message on its way, or refused, for previews and tests of an app's views.
    ///
    /// - Parameters:
    ///   - draft: Its content. Without a client id it gets a random one, so two such rows aren't equal.
    ///   - sender: The user.
    ///   - createdAt: When the user sent it.
    ///   - state: Any but `sent`, which a message on its way can't have and which becomes `pending`.
    public init(_ draft: MessageDraft, sender: UserSummary, createdAt: Timestamp, state: State = .pending) {
        row = Boxed(
            Row(
                sender: sender, clientId: draft.clientId ?? ClientID.random(), content: draft.content, createdAt: createdAt,
                state: state == .sent ? .pending : state, message: nil))
    }

    /// A message on its way; nil for another operation.
    ///
    /// - Parameters:
    ///   - sender: The user.
    ///   - server: The server that operations are sent to.
    init?(_ item: OutboxItem, sender: UserSummary, server: String? = nil) {
        guard let operation = item.operation.sent else { return nil }
        row = Boxed(
            Row(
                sender: sender, clientId: operation.clientId, content: operation.content, createdAt: item.createdAt,
                state: State(item, server: server), message: nil, operations: [item.id]))
    }

    /// Whether any of the given users is shown with the message.
    func shows(anyOf users: Set<UserID>) -> Bool {
        users.contains(sender.userId) || content.mentionees?.mentionedUsers.contains(where: users.contains) ?? false
    }

    /// The same message with its users' current names.
    func sent(by sender: UserSummary, mentioning mentioned: [UserSummary]) -> MessageItem {
        guard sender != self.sender || mentioned != row.value.mentioned else { return self }
        var item = self
        var changed = row.value
        (changed.sender, changed.mentioned) = (sender, mentioned)
        item.row = Boxed(changed)
        return item
    }

    /// The same message with the users whom it names without mentioning them.
    func dropping(_ users: [UserID]) -> MessageItem {
        guard droppedMentions != users else { return self }
        var item = self
        var changed = row.value
        changed.droppedMentions = users
        item.row = Boxed(changed)
        return item
    }

    /// The same message with the user's pending changes applied, in order.
    ///
    /// - Parameter server: The server that operations are sent to.
    func changed(by changes: [OutboxItem], server: String? = nil) -> MessageItem {
        guard !changes.isEmpty else { return self }
        var changed = row.value
        // The content it has if it isn't deleted. The content of messages deleted by the server isn't known, so it can't be changed either.
        var content = changed.content
        for change in changes {
            changed.operations.append(change.id)
            // Of several changes, one that needs the user is reported.
            if changed.change?.needsUser != true { changed.change = State(change, server: server) }
            guard !change.isRefused, !change.isForAnother(than: server) else { continue }
            switch change.operation {
            case .edit(let edit, _): content.apply(edit)
            case .delete, .deleteMany, .purge: changed.isDeleted = true
            case .deleteForMe: (changed.isDeleted, changed.isDeletedForMe) = (true, true)
            // A deletion for oneself can't be undone.
            case .undelete: if !changed.isDeletedForMe { changed.isDeleted = row.value.isDeleted }
            case .metaArrays(let update): content.applyIfPossible(update)
            default: break
            }
        }
        if !isDeleted { changed.content = changed.isDeleted ? content.emptied : content }
        var item = self
        item.row = Boxed(changed)
        return item
    }
}

extension MessageItem.State {
    init(_ item: OutboxItem, server: String?) {
        self =
            if item.isForAnother(than: server) {
                .forAnotherServer
            } else if let error = item.failure {
                item.isWaiting ? .waiting(error) : .failed(error)
            } else {
                .pending
            }
    }

    fileprivate var needsUser: Bool {
        switch self {
        case .failed, .forAnotherServer: true
        case .sent, .pending, .waiting: false
        }
    }
}
