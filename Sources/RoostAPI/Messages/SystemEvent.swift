/// The event described by one of the server's own messages (R19): the message's `kind` is `system`, its `customType` names the event, and
/// its `metadata` has the details. Its `sender` is the user who caused the event, and its `text` describes it in English.
///
///     if let event = message.systemEvent { show(event, by: message.sender) }
public struct SystemEvent: Hashable, Sendable {
    /// What happened; the raw value is the message's `customType`.
    public enum Kind: String, CaseIterable, Sendable {
        /// Users became members: the message's sender, or users added by the sender.
        case memberJoined = "member.joined"
        /// Users are no longer members: the sender left, or removed them.
        case memberLeft = "member.left"
        /// The channel was renamed.
        case channelRenamed = "channel.renamed"
    }

    /// What happened.
    public var kind: Kind
    /// The users concerned, at most 30 of them.
    public var users: [UserID]
    /// The number of all users concerned.
    public var userCount: Int
    /// The channel's new name; nil if it was removed.
    public var displayName: String?

    package init(_ kind: Kind, _ users: [UserID] = [], displayName: String? = nil) {
        self.kind = kind
        self.users = Array(users.prefix(Limits.systemMessageUsers))
        userCount = users.count
        self.displayName = displayName
    }
}

extension MessageContent {
    /// The event of one of the server's own messages; nil for any other message, for a deleted one, and for events of newer servers.
    public var systemEvent: SystemEvent? {
        guard kind == .system, let kind = customType.flatMap(SystemEvent.Kind.init), case .object(let fields)? = metadata else {
            return nil
        }
        var event = SystemEvent(kind)
        if case .array(let users)? = fields["users"] {
            for case .string(let user) in users { event.users.append(UserID(user)) }
        }
        if case .integer(let count)? = fields["userCount"] { event.userCount = Int(clamping: count) }
        if case .string(let name)? = fields["displayName"] { event.displayName = name }
        return event
    }

    /// The content of the server's own message.
    ///
    /// - Parameter text: What happened, in English.
    package init(_ event: SystemEvent, text: String) {
        var fields: [String: JSONValue] = [:]
        if event.userCount > 0 {
            fields["users"] = .array(event.users.map { .string($0.rawValue) })
            fields["userCount"] = .integer(Int64(event.userCount))
        }
        if let name = event.displayName { fields["displayName"] = .string(name) }
        self.init(text: text, kind: .system, customType: event.kind.rawValue, metadata: .object(fields))
    }
}

extension Event {
    /// Whether its message is one of the server's own.
    package var isOfServer: Bool { rows.messages?.contains { $0.kind == .system } == true }
}
