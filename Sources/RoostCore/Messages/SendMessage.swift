public import RoostAPI

extension SendMessage: Handled {
    public func scope(for caller: Caller) -> Scope { content.scope(in: channel) }
    public var sentClientId: ClientID? { clientId }

    /// Checks in order: the channel, the membership and the type; the mentions; the parent. Then writes one row with the next seq.
    public func handle(in context: inout Context) throws -> Message {
        var access: ChannelAccess
        let mentions: Mentions
        do {
            access = try context.require(.messageSend, in: channel)
            mentions = try context.mentions(of: content.mentionees, in: access)
            if let parentId = content.parentId { try context.requireParent(parentId, in: access) }
        } catch let refusal as RoostError {
            // A client whose reply was lost sends again, maybe after the sender left: the stored message was acknowledged,
            // whatever has happened since.
            guard let stored = try context.stored(clientId, in: channel) else { throw refusal }
            return try context.acknowledged(stored, sentAs: content)
        }
        return try context.addOrAcknowledge(content, clientId, mentioning: mentions, in: &access)
    }
}

extension SendAdminMessage: Handled {
    public func scope(for caller: Caller) -> Scope {
        channels.reduce(into: Scope()) { $0.formUnion(content.scope(in: $1)) }.findingUsers
    }

    /// Checks all channels before it writes in the first one.
    public func handle(in context: inout Context) throws -> MessageResults {
        var content = content
        content.kind = .admin
        var targets: [AdminTarget] = []
        for (index, channel) in channels.enumerated() {
            do {
                targets.append(try context.target(channel, for: content))
            } catch var refusal as RoostError {
                // As in `message.send`: a stored message was acknowledged, whatever has happened to the channel or the parent since.
                if let stored = try context.stored(clientId, in: channel) {
                    targets.append(.done(stored))
                } else {
                    // A refusal about the content, such as a missing parent, keeps its field name.
                    if refusal.field == nil || refusal.field == "channel" { refusal.field = "channels[\(index)]" }
                    throw refusal
                }
            }
        }
        guard Set(targets.map(\.channel)).count == targets.count else {
            throw RoostError.notUnique("channels")
        }
        return MessageResults(messages: try targets.map { try context.send(content, clientId, to: $0) })
    }
}

/// A channel of an admin message.
private enum AdminTarget {
    /// One that accepts it, with the mentions of the message there.
    case open(ChannelAccess, Mentions)
    /// One that no longer accepts it, but has the message from an earlier call.
    case done(Message)

    var channel: ChannelID {
        switch self {
        case .open(let access, _): access.channelId
        case .done(let message): message.channelId
        }
    }
}

extension Context {
    /// Returns a channel that accepts an admin message. Throws the refusal otherwise.
    fileprivate mutating func target(_ channel: ChannelID, for content: MessageContent) throws -> AdminTarget {
        let access = try require(.messageSendAdmin, in: channel)
        if let parentId = content.parentId { try requireParent(parentId, in: access) }
        return .open(access, try mentions(of: content.mentionees, in: access))
    }

    /// Sends an admin message to a channel, unless it has the message.
    fileprivate mutating func send(_ content: MessageContent, _ clientId: ClientID, to target: AdminTarget) throws -> Message {
        switch target {
        case .done(let stored): return try acknowledged(stored, sentAs: content)
        case .open(let found, let mentions):
            var access = found
            return try addOrAcknowledge(content, clientId, mentioning: mentions, in: &access)
        }
    }
}
