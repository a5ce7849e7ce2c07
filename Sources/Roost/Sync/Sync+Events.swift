import RoostAPI

/// Telling the app what happened (``Chat/events``): live events one by one, and what catching up brought as one.
extension Sync {
    /// Notes where a stream was before changes were applied that aren't told one by one.
    mutating func miss(_ channel: ChannelID?, after seq: Seq) {
        if missed == nil { missed = [:] }
        if let channel, let before = missed?[channel, default: .max] { missed?[channel] = min(before, seq) }
    }

    /// What was to be told is told with what is missed next.
    mutating func missAgain(_ after: [ChannelID: Seq]) {
        if after.isEmpty { miss(nil, after: 0) }
        for (channel, seq) in after { miss(channel, after: seq) }
    }

    /// Tells what was missed, once nothing is missing any more.
    mutating func tellMissed() {
        guard let missed else { return }
        self.missed = nil
        emit(.event(.missed(after: missed), nil))
    }

    /// Returns what an event that is about to be applied is to the app; nil if it isn't news.
    ///
    /// - Parameter position: Where its stream is.
    mutating func news(of event: IncomingEvent, after position: Seq) -> Output? {
        let rows = event.rows.rows
        let channel = event.channel
        guard event.kind != Event.Kind.changes.rawValue else {
            miss(event.stream.channel, after: position)
            return nil
        }
        let kind = Event.Kind(rawValue: event.kind)
        // Of a message that is concealed from the user nothing is told.
        guard kind?.isAboutMessage != true || rows.showsMessage else { return nil }
        // What the server gave this device before, it doesn't mark any more.
        if kind == .readingUnmarked, let channel { readBefore[channel] = nil }
        let isOwn = event.actor == user
        // The user's own stream brings messages with a channel that has just become theirs: they aren't news.
        let happening = ChatEvent.Happening(
            kind: kind, channel: channel, actor: event.actor, isOwn: isOwn,
            isFromOtherDevice: isOwn ? isFromOtherDevice(kind, rows) : false, isWatched: event.isWatched,
            message: event.stream.channel == nil ? nil : rows.newestMessage, purged: rows.purged?.last,
            invitations: rows.invitations ?? [])
        return .event(.happened(happening), event.stream.channel.map { StreamPosition(channel: $0, seq: event.seq) })
    }

    /// Nil if a change that this device has asked for could be the one, or a mark that the server makes because the user reads here.
    private func isFromOtherDevice(_ kind: Event.Kind?, _ rows: Rows) -> Bool? {
        guard !isOnItsWay(anyOf: rows) else { return false }
        guard !hasLostCalls, heldAnswers.isEmpty, !calls.values.contains(where: \.mayChange) else { return nil }
        guard kind != .readingMarked || !isReadHere(anyOf: rows.memberships ?? []) else { return nil }
        return true
    }
}

extension Sync.Purpose {
    /// Whether the call may change something that doesn't say where it comes from, as a message does by its client id.
    var mayChange: Bool {
        switch self {
        case .app(_, _, let mayChange): mayChange
        case .send(_, _, let isMessage): !isMessage
        // The server marks a channel as read when it takes the first, and what it gives this connection until it takes the second.
        case .startReading, .stopReading: true
        case .resume, .watch, .unwatch, .watchGivenUp, .history, .users, .permissions: false
        }
    }
}

extension Event.Kind {
    fileprivate var isAboutMessage: Bool {
        switch self {
        case .messageNew, .messageUpdated, .messageDeleted, .messageUndeleted: true
        default: false
        }
    }
}

extension StreamID {
    var channel: ChannelID? { if case .channel(let channel) = self { channel } else { nil } }
}

extension IncomingEvent {
    /// The channel that it is about. The user's own stream tells of channels too.
    fileprivate var channel: ChannelID? {
        let rows = rows.rows
        return stream.channel ?? rows.channel?.channelId ?? rows.memberships?.first?.channelId ?? rows.invitedChannel
    }
}
