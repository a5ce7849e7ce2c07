public import RoostAPI

extension SendMessage: Handled {
    public func scope(for caller: Caller) -> Scope { content.scope(in: channel) }

    /// Checks in order: the channel, the membership and the type; the mentions; the parent. Then writes one row with the next seq.
    public func handle(in context: inout Context) throws -> Message {
        do {
            var access = try context.require(.messageSend, in: channel)
            let mentions = try context.mentions(of: content.mentionees, in: access)
            if let parentId = content.parentId { try context.requireParent(parentId, in: access) }
            if let sent = try context.add(content, clientId, mentioning: mentions, in: &access) { return sent }
        } catch let refusal as RoostError {
            // A client whose reply was lost sends again, maybe after the sender left: the stored message was acknowledged, whatever has
            // happened since.
            guard let stored = try context.stored(clientId, in: channel) else { throw refusal }
            return try context.acknowledged(stored, sentAs: content)
        }
        guard let stored = try context.stored(clientId, in: channel) else {
            throw DamagedDatabase(what: "a client id without its message")
        }
        return try context.acknowledged(stored, sentAs: content)
    }
}

extension SendAdminMessage: Handled {
    public func scope(for caller: Caller) -> Scope {
        channels.reduce(into: Scope()) { $0.formUnion(content.scope(in: $1)) }.findingUsers
    }

    /// Asks all channels before it writes in the first one.
    public func handle(in context: inout Context) throws -> MessageResults {
        var content = content
        content.kind = .admin
        var open: [(access: ChannelAccess, mentions: Mentions)] = []
        for (index, channel) in channels.enumerated() {
            do {
                let access = try context.require(.messageSendAdmin, in: channel)
                if let parentId = content.parentId { try context.requireParent(parentId, in: access) }
                open.append((access, try context.mentions(of: content.mentionees, in: access)))
            } catch var refusal as RoostError {
                refusal.field = "channels[\(index)]"
                throw refusal
            }
        }
        guard Set(open.map(\.access.channelId)).count == open.count else {
            throw RoostError.invalidArgument("channels", "must hold each channel once")
        }
        var messages: [Message] = []
        for (found, mentions) in open {
            var access = found
            if let sent = try context.add(content, clientId, mentioning: mentions, in: &access) {
                messages.append(sent)
            } else if let stored = try context.stored(clientId, in: access.channelId) {
                messages.append(try context.acknowledged(stored, sentAs: content))
            } else {
                throw DamagedDatabase(what: "a client id without its message")
            }
        }
        return MessageResults(messages: messages)
    }
}
