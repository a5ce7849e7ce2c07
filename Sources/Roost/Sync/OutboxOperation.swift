import RoostAPI

/// An operation that the outbox keeps until the server has accepted or refused it.
enum OutboxOperation: Hashable, Sendable {
    case send(SendMessage)
    /// The client id is that of a pending message, whose id isn't known yet.
    case edit(EditMessage, of: ClientID? = nil)
    case delete(DeleteMessage, of: ClientID? = nil)
    case deleteMany(DeleteMessages)
    case deleteForMe(DeleteMessagesForMe)
    case purge(PurgeMessage)
    case undelete(UndeleteMessage)
    case metaArrays(UpdateMetaArrays)
    case read(MarkRead)
    case unread(MarkUnread)
    case hide(HideChannel)
    case unhide(UnhideChannel)
    case mute(MuteNotifications)
    case unmute(UnmuteNotifications)
    case reset(ResetHistory)
    case leave(LeaveChannel)
    case draft(SetDraft)
    case preferences(UpdatePreferences)

    /// The operation as the server knows it.
    var operation: any Operation {
        switch self {
        case .send(let operation): operation
        case .edit(let operation, _): operation
        case .delete(let operation, _): operation
        case .deleteMany(let operation): operation
        case .deleteForMe(let operation): operation
        case .purge(let operation): operation
        case .undelete(let operation): operation
        case .metaArrays(let operation): operation
        case .read(let operation): operation
        case .unread(let operation): operation
        case .hide(let operation): operation
        case .unhide(let operation): operation
        case .mute(let operation): operation
        case .unmute(let operation): operation
        case .reset(let operation): operation
        case .leave(let operation): operation
        case .draft(let operation): operation
        case .preferences(let operation): operation
        }
    }

    /// The channel in whose queue it waits; nil for the queue of operations without a channel.
    var channel: ChannelID? {
        switch self {
        case .send(let operation): operation.channel
        case .edit(let operation, _): operation.channel
        case .delete(let operation, _): operation.channel
        case .deleteMany(let operation): operation.channel
        case .deleteForMe(let operation): operation.channel
        case .purge(let operation): operation.channel
        case .undelete(let operation): operation.channel
        case .metaArrays(let operation): operation.channel
        case .read(let operation): operation.channel
        case .unread(let operation): operation.channel
        case .hide(let operation): operation.channel
        case .unhide(let operation): operation.channel
        case .mute(let operation): operation.channel
        case .unmute(let operation): operation.channel
        case .reset(let operation): operation.channel
        case .leave(let operation): operation.channel
        case .draft(let operation): operation.channel
        case .preferences: nil
        }
    }

    /// The message that it sends.
    var sent: SendMessage? { if case .send(let operation) = self { operation } else { nil } }

    /// The draft that it saves.
    var draft: SetDraft? { if case .draft(let operation) = self { operation } else { nil } }

    /// The messages that it changes.
    var changed: [ChangedMessage] {
        switch self {
        case .edit(let operation, let client): [ChangedMessage(operation.message, client)]
        case .delete(let operation, let client): [ChangedMessage(operation.message, client)]
        case .deleteMany(let operation): operation.messages.map { .stored($0) }
        case .deleteForMe(let operation): operation.messages.map { .stored($0) }
        case .purge(let operation): [.stored(operation.message)]
        case .undelete(let operation): [.stored(operation.message)]
        case .metaArrays(let operation): [.stored(operation.message)]
        default: []
        }
    }

    /// Whether it conceals the channel's messages so far.
    var isConcealing: Bool {
        switch self {
        case .hide(let operation): operation.hidePreviousMessages ?? false
        case .reset: true
        default: false
        }
    }

    /// Whether it deletes a message for everyone.
    var isDeletion: Bool {
        switch self {
        case .delete, .deleteMany, .purge: true
        default: false
        }
    }

    /// Whether it deletes a single message for everyone.
    var isDeletionOfOne: Bool {
        switch self {
        case .delete, .purge: true
        default: false
        }
    }

    /// Whether it restores a message.
    var isUndeletion: Bool { if case .undelete = self { true } else { false } }

    var isVisibility: Bool {
        switch self {
        case .hide, .unhide: true
        default: false
        }
    }

    /// Whether the server remembers by a key that it was carried out. A message has its client id for that.
    ///
    /// Reading needs a key too, because another device may mark messages as unread meanwhile: repeating the mark would undo that. And a repeated
    /// draft would replace what was written on another device since.
    var takesKey: Bool { if case .send = self { false } else { true } }

    /// Whether an app requests it so often that its keys would use up those the server keeps for a user (``KeyAllowance``).
    var isFrequent: Bool {
        switch self {
        case .read, .draft: true
        default: false
        }
    }

    /// What remains of it in another history of the server, where the seqs that it names belong to other messages: the user may not have seen them.
    /// Nil if nothing remains.
    var inOtherHistory: OutboxOperation? {
        switch self {
        case .read, .unread, .reset: return nil
        case .hide(var operation):
            // The channel is hidden anyway.
            if isConcealing { operation.hidePreviousMessages = nil }
            operation.upTo = nil
            return .hide(operation)
        default: return self
        }
    }

    /// Whether it mutes the channel's notifications for the user, or unmutes them.
    var isMuting: Bool {
        switch self {
        case .mute, .unmute: true
        default: false
        }
    }

    /// Whether it overtakes a message that waits for its refusal to end: it concerns the user's own membership, and means the same before the message
    /// as after it.
    var overtakesRefused: Bool {
        switch self {
        case .read, .unread, .mute, .unmute, .leave, .draft: true
        default: overtakesMessagesOnly
        }
    }

    /// Whether it overtakes messages, but nothing else queued after them: no change of a message that it would conceal, and nothing that it would revert.
    var overtakesMessagesOnly: Bool {
        switch self {
        case .unhide: true
        // With a seq they leave the message out, whenever it arrives.
        case .hide(let operation): operation.upTo != nil
        case .reset(let operation): operation.upTo != nil
        default: false
        }
    }

    /// Whether it is meaningless once the user is no longer a member.
    var endsWithMembership: Bool {
        switch self {
        case .read, .draft: true
        default: false
        }
    }

    /// The same change of a message whose id is now known.
    func resolved(_ message: MessageID) -> OutboxOperation {
        switch self {
        case .edit(var operation, _):
            operation.message = message
            return .edit(operation)
        case .delete(var operation, _):
            operation.message = message
            return .delete(operation)
        default: return self
        }
    }

    /// The same change of a message that is pending again. All other changes name only stored messages.
    func unresolved(_ client: ClientID) -> OutboxOperation {
        switch self {
        case .edit(let operation, _): .edit(operation, of: client)
        case .delete(let operation, _): .delete(operation, of: client)
        default: self
        }
    }
}

/// A message as a change names it.
enum ChangedMessage: Hashable, Sendable {
    case stored(MessageID)
    /// Pending.
    case sent(ClientID)

    init(_ message: MessageID, _ client: ClientID?) { self = client.map(Self.sent) ?? .stored(message) }
}

extension EditMessage {
    /// This edit, with what a later one replaces.
    func followed(by later: EditMessage) -> EditMessage {
        var both = self
        both.text = later.text ?? text
        both.customType = later.customType ?? customType
        both.data = later.data ?? data
        both.metadata = later.metadata ?? metadata
        both.tags = later.tags ?? tags
        both.mentionees = later.mentionees ?? mentionees
        return both
    }
}

/// A place in the order of sending.
struct OutboxPlace: Hashable, Comparable, Sendable {
    var number: Int64
    var id: Int64

    static func < (first: OutboxPlace, second: OutboxPlace) -> Bool { (first.number, first.id) < (second.number, second.id) }
}

/// A pending operation.
struct OutboxItem: Hashable, Sendable {
    /// Identifies it in this device's outbox; random.
    var id: Int64
    /// Its place in the order of sending. Higher numbers were requested later.
    var number: Int64
    var operation: OutboxOperation
    var createdAt: Timestamp
    /// When it was first sent, by the server's clock: from then on the server may have it. Nil while the server can't have it.
    var firstSentAt: Timestamp?
    /// The server that it is for; nil if none was known.
    var server: String?
    /// Why the server refused it. Nil while it is still to be sent.
    var failure: RoostError?
    /// Whether the refusal ends by itself, after which it is sent again.
    var isWaiting = false
    /// How far this device had followed the channel when a hiding was requested that conceals the messages so far.
    var concealedSeq: Seq?
    /// The server's history in which it was requested, and to which the seqs that it names belong; nil if none was known.
    var epoch: String?

    var channel: ChannelID? { operation.channel }

    /// Its place among others. Two clients of one folder may have used the same number.
    var place: OutboxPlace { OutboxPlace(number: number, id: id) }

    /// The sender's own key of the message that it sends.
    var message: MessageKey? { operation.sent.map { MessageKey(channel: $0.channel, clientId: $0.clientId) } }

    /// The pending message that it sends or changes.
    var pendingMessage: MessageKey? {
        if let message { return message }
        guard let channel, case .sent(let client)? = operation.changed.first else { return nil }
        return MessageKey(channel: channel, clientId: client)
    }

    /// Whether a row names it.
    func isNamed(by row: OutboxRow) -> Bool {
        switch row {
        case .operation(let id, let channel): id == self.id && channel == self.channel
        case .message(let key): key == message
        }
    }

    /// Whether the server's refusal is final.
    var isRefused: Bool { failure != nil && !isWaiting }

    /// Whether it is for a server other than the one that operations are sent to.
    func isForAnother(than server: String?) -> Bool {
        guard let meant = self.server, let server else { return false }
        return meant != server
    }

    /// What remains of a deletion of several messages if one of them isn't deleted. Nil if nothing remains.
    func sparing(_ message: MessageID) -> OutboxItem? {
        guard case .deleteMany(var deletion) = operation else { return nil }
        deletion.messages.removeAll { $0 == message }
        guard !deletion.messages.isEmpty else { return nil }
        var item = self
        item.operation = .deleteMany(deletion)
        return item
    }

    /// Whether the server can't have it: it can still be changed, or removed without a trace.
    var isUnsent: Bool { firstSentAt == nil || failure != nil }

    /// Notes that the server may have it from now on. The first of two chats that send it sets the time; after a refusal it is a new attempt.
    mutating func beginSending(at time: Timestamp, to server: String?) {
        firstSentAt = isUnsent ? time : firstSentAt
        (self.server, failure, isWaiting) = (server, nil, false)
    }

    /// The key by which the server recognises a repetition. A message has its client id.
    var key: IdempotencyKey? {
        guard operation.takesKey, let firstSentAt else { return nil }
        return IdempotencyKey(madeAt: firstSentAt, random: UInt64(bitPattern: id))
    }
}
