import RoostAPI

/// An operation that the outbox keeps until the server has taken or refused it.
enum OutboxOperation: Hashable, Sendable {
    case send(SendMessage)
    /// The client id is that of a message on its way, whose id isn't known yet.
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

    /// The channel in whose queue it waits; nil for the queue of those that belong to none.
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

    /// What it says that the user has begun to write.
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

    /// Whether it takes a message from everybody.
    var isDeletion: Bool {
        switch self {
        case .delete, .deleteMany, .purge: true
        default: false
        }
    }

    /// Whether it brings a message back.
    var isUndeletion: Bool { if case .undelete = self { true } else { false } }

    var isVisibility: Bool {
        switch self {
        case .hide, .unhide: true
        default: false
        }
    }

    /// Whether the server remembers by a key that it was carried out. A message has its client id for that.
    ///
    /// Reading needs one too, since another device may mark messages as unread meanwhile: the same mark once more would undo that. And a repeated draft
    /// would replace what was written on another device since.
    var takesKey: Bool { if case .send = self { false } else { true } }

    /// Whether an app asks for it so often that its keys would use up those that the server keeps of a user (``KeyAllowance``).
    var comesOften: Bool {
        switch self {
        case .read, .draft: true
        default: false
        }
    }

    /// What is left of it in another history of the server, in which other messages have the places that it names: the user may not have seen them. Nil for
    /// nothing.
    var inOtherHistory: OutboxOperation? {
        switch self {
        case .read, .unread, .reset: return nil
        case .hide(var operation):
            // The channel is hidden all the same.
            if isConcealing { operation.hidePreviousMessages = nil }
            operation.upTo = nil
            return .hide(operation)
        default: return self
        }
    }

    /// Whether it mutes the channel for the user, or ends that.
    var isMuting: Bool {
        switch self {
        case .mute, .unmute: true
        default: false
        }
    }

    /// Whether it goes before a message that waits for the end of its refusal: it is about the user's own membership, and says the same before the message
    /// as after it.
    var overtakesRefused: Bool {
        switch self {
        case .read, .unread, .mute, .unmute, .leave, .draft: true
        default: overtakesMessagesOnly
        }
    }

    /// Whether it goes before messages, but before nothing else that waits behind them: not before a change of a message that it would conceal, nor
    /// before what it would take back.
    var overtakesMessagesOnly: Bool {
        switch self {
        case .unhide: true
        // With a seq they leave the message out, whenever it comes.
        case .hide(let operation): operation.upTo != nil
        case .reset(let operation): operation.upTo != nil
        default: false
        }
    }

    /// Whether it means nothing once the user isn't a member any more.
    var endsWithMembership: Bool {
        switch self {
        case .read, .draft: true
        default: false
        }
    }

    /// The same change of a message whose id is known by now.
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

    /// The same change of a message that is on its way once more. Other changes than these name stored messages alone.
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
    /// On its way.
    case sent(ClientID)

    init(_ message: MessageID, _ client: ClientID?) { self = client.map(Self.sent) ?? .stored(message) }
}

extension EditMessage {
    /// This edit with what a later one replaces.
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

/// An operation on its way to the server.
struct OutboxItem: Hashable, Sendable {
    /// Names it in this device's outbox; drawn at random.
    var id: Int64
    /// Its place in the order of sending. Higher numbers were asked for later.
    var number: Int64
    var operation: OutboxOperation
    var createdAt: Timestamp
    /// When it was first sent, by the server's clock: from then on the server may have it. Nil while it can't.
    var firstSentAt: Timestamp?
    /// The server that it is for; nil if none was known.
    var server: String?
    /// Why the server refused it. Nil while it is still to be sent.
    var failure: RoostError?
    /// Whether the refusal ends by itself, and it is sent again then.
    var isWaiting = false
    /// How far this device had followed the channel when a hiding was asked for that conceals the messages so far.
    var concealedSeq: Seq?
    /// The server's history in which it was asked for, and in which the places are that it names; nil if none was known.
    var epoch: String?

    var channel: ChannelID? { operation.channel }

    /// Its place among others. Two clients of one folder may have given the same number.
    var place: OutboxPlace { OutboxPlace(number: number, id: id) }

    /// The sender's own name of the message that it sends.
    var message: MessageKey? { operation.sent.map { MessageKey(channel: $0.channel, clientId: $0.clientId) } }

    /// Whether the server refused it for good.
    var isRefused: Bool { failure != nil && !isWaiting }

    /// Whether it is for another server than the one that operations are sent to.
    func isForAnother(than server: String?) -> Bool {
        guard let meant = self.server, let server else { return false }
        return meant != server
    }

    /// Whether the server can't have it: it can still be changed, or taken away without a trace.
    var isUnsent: Bool { firstSentAt == nil || failure != nil }

    /// From now on the server may have it. The first of two chats that send it says since when; after a refusal it is another attempt.
    mutating func beginSending(at time: Timestamp, to server: String?) {
        firstSentAt = isUnsent ? time : firstSentAt
        (self.server, failure, isWaiting) = (server, nil, false)
    }

    /// The name by which the server knows a repetition. A message has its client id.
    var key: IdempotencyKey? {
        guard operation.takesKey, let firstSentAt else { return nil }
        return IdempotencyKey(madeAt: firstSentAt, random: UInt64(bitPattern: id))
    }
}
