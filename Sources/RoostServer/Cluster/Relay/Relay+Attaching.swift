import RoostAPI
import RoostCore

/// How sockets come to the streams that they need, and leave them.
extension Relay {
    // MARK: Feeds

    /// Makes sure that a stream has a feed, which begins when the subscription holds.
    mutating func follow(_ stream: StreamID) {
        if feeds[stream] != nil {
            feeds[stream]?.touchedAt = now
            return
        }
        feeds[stream] = Feed(at: now)
        suspects.insert(stream)
        request(.open([stream]))
    }

    mutating func opened(_ stream: StreamID, at head: Seq) {
        guard var feed = feeds[stream], !feed.isLive else { return }
        feed.isLive = true
        feed.position = head
        feed.knownSince = head
        feed.head = head
        feed.touchedAt = now
        let parked = feed.parked
        feed.parked = []
        let connects = feed.parkedConnects
        feed.parkedConnects = []
        feeds[stream] = feed
        for attachment in parked { attach(attachment) }
        for token in connects { proceed(token) }
        drain(stream)
        if let feed = feeds[stream], let ahead = feed.waiting.keys.max() { noteGap(stream, head: ahead) }
    }

    /// Tried again with the next look for idle feeds.
    mutating func openAgain(_ streams: [StreamID]) {
        let waiting = streams.filter { feeds[$0]?.isLive == false }
        if !waiting.isEmpty { request(.open(waiting)) }
    }

    /// Looks for feeds that no socket needs. A feed that is used again meanwhile is touched, and stays.
    mutating func retireIdle() {
        let due = suspects.filter { stream in
            guard let feed = feeds[stream] else { return true }
            return feed.isIdle && now - feed.touchedAt >= settings.idleTime
        }
        guard !due.isEmpty else { return }
        suspects.subtract(due)
        request(.findUnused(due.filter { feeds[$0] != nil }))
    }

    mutating func close(_ streams: [StreamID]) {
        var closed: [StreamID] = []
        for stream in streams {
            guard let feed = feeds[stream] else { continue }
            guard feed.isIdle, now - feed.touchedAt >= settings.idleTime else {
                suspects.insert(stream)
                continue
            }
            feeds[stream] = nil
            gaps.remove(stream)
            closed.append(stream)
        }
        if !closed.isEmpty { request(.close(closed)) }
    }

    // MARK: What connections ask for

    /// Does what a connection asked for. Takes the answer where it has to wait.
    mutating func attach(_ notice: Notice, answer: inout Committed.Answer?) {
        switch notice {
        case .connected(let connection, let user, let streams):
            guard let taken = answer else { return }
            answer = nil
            connect(Connect(connection: connection, user: user, streams: streams, answer: taken))
        case .watching(let connection, let user, let channel, let seq):
            attach(Attachment(receiver: .watcher(connection, user), channel: channel, seq: seq))
        case .stoppedWatching(let connection, _, let channel):
            cancel(in: channel) { if case .watcher(connection, _) = $0 { true } else { false } }
            emit(.change(notice))
        case .event, .joined, .role, .floor, .left, .destroyed, .accessChanged: break
        }
    }

    mutating func attach(_ attachment: Attachment) {
        let stream = StreamID.channel(attachment.channel)
        follow(stream)
        guard let feed = feeds[stream] else { return }
        guard feed.isLive, feed.position >= attachment.seq else {
            feeds[stream]?.parked.append(attachment)
            return
        }
        if feed.position == attachment.seq { return complete(attachment) }
        if attachment.catchesUpAlone, attachment.seq >= max(feed.knownSince, feed.lastRoleChange) {
            guard let departed = feed.departed[attachment.receiver.user], departed.seq > attachment.seq else {
                return complete(attachment)
            }
            if departed.after >= attachment.seq { return settle(attachment.connect) }
            // They left before or after: the database knows.
        }
        catchUp(attachment)
    }

    private mutating func complete(_ attachment: Attachment) {
        emit(attachment.step)
        settle(attachment.connect)
    }

    /// Attaches whom the feed has come to.
    mutating func releaseParked(_ stream: StreamID) {
        guard let feed = feeds[stream], feed.isLive else { return }
        let position = feed.position
        if !feed.parked.isEmpty {
            let due = feed.parked.filter { $0.seq <= position }
            feeds[stream]?.parked.removeAll { $0.seq <= position }
            for attachment in due { attach(attachment) }
        }
        if !feed.parkedConnects.isEmpty {
            feeds[stream]?.parkedConnects = []
            for token in feed.parkedConnects { proceed(token) }
        }
    }

    // MARK: Leaving

    mutating func depart(_ user: UserID, from channel: ChannelID, with item: StreamItem) {
        let stream = StreamID.channel(channel)
        feeds[stream]?.departed[user] = (item.after, item.seq, now)
        if let departed = feeds[stream]?.departed, departed.count > 64 {
            feeds[stream]?.departed = departed.filter { now - $0.value.time < settings.departedTime }
        }
        emit(.change(.left(user, channel)))
    }

    mutating func destroy(_ channel: ChannelID) {
        cancel(in: channel) { _ in true }
        emit(.change(.destroyed(channel)))
    }

    /// Gives up attachments that haven't come about yet.
    private mutating func cancel(in channel: ChannelID, where isMeant: (Attachment.Receiver) -> Bool) {
        let stream = StreamID.channel(channel)
        guard let feed = feeds[stream] else { return }
        feeds[stream]?.parked.removeAll { isMeant($0.receiver) }
        for (token, catchUp) in feed.catchUps where isMeant(catchUp.attachment.receiver) {
            feeds[stream]?.catchUps[token] = nil
            settle(catchUp.attachment.connect)
        }
        for attachment in feed.parked where isMeant(attachment.receiver) { settle(attachment.connect) }
    }
}
