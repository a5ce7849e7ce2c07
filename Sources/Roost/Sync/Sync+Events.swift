import RoostAPI

/// Notifying the app of what happened (``Chat/events``): of live events one by one, of what catching up brought as a single event.
extension Sync {
    /// Notes where a stream was before changes were applied that aren't reported one by one.
    mutating func miss(_ channel: ChannelID?, after seq: Seq) {
        if missed == nil { missed = [:] }
        if let channel, let before = missed?[channel, default: .max] { missed?[channel] = min(before, seq) }
    }

    /// Adds what was to be reported to what is missed next.
    mutating func missAgain(_ after: [ChannelID: Seq]) {
        if after.isEmpty { miss(nil, after: 0) }
        for (channel, seq) in after { miss(channel, after: seq) }
    }

    /// Reports what was missed, once nothing is missing any longer.
    mutating func reportMissed() {
        guard let missed else { return }
        self.missed = nil
        emit(.event(.missed(after: missed), nil))
    }

    /// Returns the app's event for an event that is about to be applied; nil if it isn't news.
    ///
    /// - Parameter position: The position of its stream.
    mutating func news(of event: IncomingEvent, after position: Seq) -> Output? {
        let rows = event.rows.rows
        let channel = event.channel
        guard event.kind != Event.Kind.changes.rawValue else {
            miss(event.stream.channel, after: position)
            return nil
        }
        let kind = Event.Kind(rawValue: event.kind)
        // Nothing is reported of a message that is concealed from the user.
        guard kind?.isAboutMessage != true || rows.showsMessage else { return nil }
        // The server no longer marks what it sent this device before.
        if kind == .readingUnmarked, let channel { readBefore[channel] = nil }
        let isOwn = event.actor == user
        // The user's own stream also brings messages with a channel that has just become theirs: they aren't news.
        let happening = ChatEvent.Happening(
            kind: kind, channel: channel, actor: event.actor, isOwn: isOwn,
            isFromOtherDevice: isOwn ? isFromOtherDevice(kind, rows) : false, isWatched: event.isWatched,
            message: event.stream.channel == nil ? nil : rows.newestMessage, purged: rows.purged?.last,
            invitations: rows.invitations ?? [])
        return .event(.happened(happening), event.stream.channel.map { StreamPosition(channel: $0, seq: event.seq) })
    }

    /// Nil if the change may be one that this device requested, or a mark that the server makes because the user reads here.
    private func isFromOtherDevice(_ kind: Event.Kind?, _ rows: Rows) -> Bool? {
        guard !isOnItsWay(anyOf: rows) else { return false }
        guard !hasLostCalls, heldAnswers.isEmpty, !calls.values.contains(where: \.mayChange) else { return nil }
        guard kind != .readingMarked || !isReadHere(anyOf: rows.memberships ?? []) else { return nil }
        return true
    }
}

extension Sync.Purpose {
    /// Whether the call may cause a change that doesn't identify its origin. A message does, by its client id.
    var mayChange: Bool {
        switch self {
        case .app(_, _, let mayChange): mayChange
        case .send(_, _, let isMessage): !isMessage
        // The server marks a channel as read when it receives the first, and what it sends this connection until it receives the second.
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
    /// The channel that it is about. The user's own stream reports on channels too.
    fileprivate var channel: ChannelID? {
        let rows = rows.rows
        return stream.channel ?? rows.channel?.channelId ?? rows.memberships?.first?.channelId ?? rows.invitedChannel
    }
}
