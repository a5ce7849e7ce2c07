import RoostAPI
import RoostCore

/// Attaches sockets to the streams that they need, and detaches them.
extension Relay {
    // MARK: Feeds

    /// Makes sure that a stream has a feed, which begins once the subscription is in place.
    mutating func follow(_ stream: StreamID) {
        if feeds[stream] != nil {
            feeds[stream]?.touchedAt = now
            return
        }
        feeds[stream] = Feed(at: now)
        sweep.follow(stream)
        possiblyUnused.insert(stream)
        request(.open([stream]))
    }

    mutating func opened(_ stream: StreamID, at head: Seq) {
        guard var feed = feeds[stream], !feed.isLive else { return }
        feed.isLive = true
        feed.position = head
        feed.knownSince = head
        feed.head = max(feed.head, head)
        feed.touchedAt = now
        feeds[stream] = feed
        releaseParked(stream)
        drain(stream)
        giveAnswers(waitingFor: stream)
        guard let opened = feeds[stream] else { return }
        let ahead = max(opened.head, opened.waiting.keys.max() ?? 0)
        if ahead > opened.position { noteGap(stream, head: ahead) }
    }

    /// Opens streams again after a failure.
    mutating func openAgain(_ streams: [StreamID]) {
        let waiting = streams.filter { feeds[$0]?.isLive == false }
        if !waiting.isEmpty { request(.open(waiting)) }
    }

    /// Looks for feeds that no socket needs. A feed that is used again meanwhile is touched, and kept.
    mutating func retireIdle() {
        let due = possiblyUnused.filter { stream in
            guard let feed = feeds[stream] else { return true }
            return feed.isIdle && now - feed.touchedAt >= settings.idleTime
        }
        guard !due.isEmpty else { return }
        possiblyUnused.subtract(due)
        request(.findUnused(due.filter { feeds[$0] != nil }, asOf: now))
    }

    /// - Parameter time: When the hub was asked whether a socket needs them. One may have begun to need them since, however long an event
    ///   loop took to answer.
    mutating func close(_ streams: [StreamID], asOf time: Time) {
        var closed: [StreamID] = []
        for stream in streams {
            guard let feed = feeds[stream] else { continue }
            guard feed.isIdle, feed.touchedAt < time, now - feed.touchedAt >= settings.idleTime else {
                possiblyUnused.insert(stream)
                continue
            }
            dropWaiting(of: stream)
            feeds[stream] = nil
            gaps.remove(stream)
            closed.append(stream)
            giveAnswers(waitingFor: stream)
        }
        if !closed.isEmpty { request(.close(closed)) }
    }

    // MARK: What connections ask for

    /// Performs a connection's request.
    mutating func attach(_ notice: Notice) {
        switch notice {
        case .watching(let connection, let user, let channel, let seq, _):
            attach(Attachment(receiver: .watcher(connection, user), channel: channel, seq: seq))
        case .stoppedWatching(let connection, _, let channel):
            cancel(in: channel) { if case .watcher(connection, _) = $0 { true } else { false } }
            emit(.change(notice))
        case .event, .signal, .typing, .stoppedTyping, .read, .mayRead, .reading, .stoppedReading, .markedUnread,
            .presenceShared, .profileChanged, .profileShown, .rulesChanged, .readers, .joined, .role, .floor, .left,
            .channelDeleted, .connected, .accessChanged:
            break
        }
    }

    /// Attaches, after everything else that the same user waits for in the channel.
    mutating func attach(_ attachment: Attachment) {
        var attachment = attachment
        let stream = StreamID.channel(attachment.channel)
        follow(stream)
        let user = attachment.receiver.user
        if feeds[stream]?.isUnreadable == true { welcomeEarly(&attachment) }
        if feeds[stream]?.attaching.contains(user) == true {
            if feeds[stream]?.hasUnreadableEvents(for: user) == true { welcomeEarly(&attachment) }
            feeds[stream]?.behind[user, default: []].append(attachment)
        } else {
            place(attachment)
        }
    }

    /// Attaches immediately, or when the feed has caught up with the receiver or the receiver with the feed.
    mutating func place(_ attachment: Attachment) {
        let stream = StreamID.channel(attachment.channel)
        let user = attachment.receiver.user
        guard let feed = feeds[stream] else { return }
        if let departed = feed.departed[user] {
            // A seq ahead of the feed is where the user last joined: attachments from before that belong to a membership that has ended.
            let isOfFormerMembership = departed.seq > max(feed.position, attachment.seq)
            if isOfFormerMembership || attachment.isEnded(by: .init(user: user, seq: departed.seq)) {
                return giveUp(attachment, keepsWatch: departed.isBack)
            }
        }
        guard feed.isLive, feed.position >= attachment.seq else {
            feeds[stream]?.attaching.insert(user)
            feeds[stream]?.parked.append(attachment)
            // Another node's commit may never be announced.
            return noteGap(stream, head: attachment.seq)
        }
        if feed.position == attachment.seq { return complete(attachment) }
        if attachment.catchesUpAlone, attachment.seq >= max(feed.knownSince, feed.lastRoleChange) {
            guard let departed = feed.departed[user], departed.seq > attachment.seq else { return complete(attachment) }
            if departed.after >= attachment.seq { return finish(attachment) }
            // Whether they left before or after is read from the database.
        }
        feeds[stream]?.attaching.insert(user)
        catchUp(attachment)
    }

    /// Attaches the receiver from here on.
    mutating func complete(_ attachment: Attachment) {
        emit(attachment.step)
        finish(attachment)
    }

    /// Ends an attachment whose user has left, or whose channel is gone. Its connection may have been answered that it watches.
    ///
    /// - Parameter keepsWatch: Whether the connection still watches, and gets the channel's events once its user's membership is attached.
    mutating func giveUp(_ attachment: Attachment, keepsWatch: Bool = false) {
        if !keepsWatch, case .watcher(let connection, let user) = attachment.receiver {
            let behind = feeds[.channel(attachment.channel)]?.behind[user] ?? []
            let watchesAnew = behind.contains { if case .watcher(connection, user) = $0.receiver { true } else { false } }
            if !watchesAnew { emit(.change(.stoppedWatching(connection, user, attachment.channel))) }
        }
        finish(attachment)
    }

    /// Ends an attachment that was made or given up, and begins the same user's next one.
    mutating func finish(_ attachment: Attachment) {
        let stream = StreamID.channel(attachment.channel)
        let user = attachment.receiver.user
        feeds[stream]?.attaching.remove(user)
        settle(attachment.connect)
        if feeds[stream]?.behind[user]?.isEmpty == false, let next = feeds[stream]?.behind[user]?.removeFirst() {
            if feeds[stream]?.behind[user]?.isEmpty == true { feeds[stream]?.behind[user] = nil }
            place(next)
        }
        giveAnswers(waitingFor: stream)
    }

    /// Attaches the receivers whose seq the feed has reached, one by one: an attachment releases replies, and those of receivers still
    /// parked stay queued.
    mutating func releaseParked(_ stream: StreamID) {
        guard let feed = feeds[stream], feed.isLive else { return }
        while let due = feeds[stream]?.parked.firstIndex(where: { $0.seq <= feed.position }),
            let attachment = feeds[stream]?.parked.remove(at: due)
        {
            place(attachment)
        }
        if !feed.parkedConnects.isEmpty {
            feeds[stream]?.parkedConnects = []
            for token in feed.parkedConnects { proceed(token) }
        }
    }

    // MARK: Leaving

    mutating func depart(_ leaving: StreamItem.Leaving, from channel: ChannelID, with item: StreamItem) {
        let stream = StreamID.channel(channel)
        let user = leaving.user
        // An event of the feed doesn't end a membership that begins ahead of the feed.
        let ahead = feeds[stream]?.departed[user].map { $0.seq > item.seq ? $0.seq : 0 } ?? 0
        feeds[stream]?.departed[user] = (item.after, max(leaving.seq, ahead), now, leaving.isBack || ahead > leaving.seq)
        // Only when they have doubled: checking all of them each time a user leaves would take longer the more users leave.
        if let feed = feeds[stream], feed.departed.count > max(64, 2 * feed.departedKept) {
            let kept = feed.departed.filter { now - $0.value.time < settings.departedTime || $0.value.seq > item.seq }
            feeds[stream]?.departed = kept
            feeds[stream]?.departedKept = kept.count
        }
        emit(.change(.left(user, channel, at: min(leaving.seq, item.seq), isBack: leaving.isBack)))
        // That ends the earlier watch of a member. A newer watch request that is still waiting is kept.
        guard let feed = feeds[stream], feed.attaching.contains(user) else { return }
        for attachment in feed.parked + (feed.behind[user] ?? []) where attachment.seq >= leaving.seq {
            guard case .watcher(let connection, user) = attachment.receiver else { continue }
            emit(.watches(connection, user, channel, at: attachment.seq))
        }
        // An older watch doesn't catch up any further: its connection may have received those events as a member's.
        for (token, catchUp) in feed.catchUps where catchUp.attachment.isEnded(by: leaving) {
            end(token, in: stream, keepsWatch: leaving.isBack)
        }
    }

    /// Ends a channel with its last event.
    mutating func delete(_ channel: ChannelID, with item: StreamItem) {
        notifyUnattached(item, in: channel)
        cancel(in: channel) { _ in true }
        emit(.change(.channelDeleted(channel)))
    }

    /// Sends receivers that aren't attached yet the event that ends their channel, and ends their watches. Those that were catching up may
    /// miss earlier events of the channel, which is gone. A connection that isn't welcomed yet reads of it after its welcome.
    private mutating func notifyUnattached(_ item: StreamItem, in channel: ChannelID) {
        guard let feed = feeds[item.stream] else { return }
        var waiting = feed.catchUps.values.map(\.attachment) + feed.parked
        waiting += feed.behind.values.joined()
        func hasLeft(_ attachment: Attachment) -> Bool {
            guard let departed = feed.departed[attachment.receiver.user] else { return false }
            return departed.seq > attachment.seq
        }
        var members: Set<UserID> = []
        for attachment in waiting where !hasLeft(attachment) {
            guard case .member(let user) = attachment.receiver, members.insert(user).inserted else { continue }
            emit(.past(item, attachment.receiver))
        }
        for attachment in waiting {
            guard case .watcher(let connection, let user) = attachment.receiver else { continue }
            // All connections of a member have it already.
            if !members.contains(user), !hasLeft(attachment) { emit(.past(item, attachment.receiver)) }
            emit(.change(.stoppedWatching(connection, user, channel)))
        }
        // A connection that was welcomed early may have read the channel before its end.
        for attachment in waiting where attachment.connect == nil && !hasLeft(attachment) {
            guard case .connection(_, let user) = attachment.receiver, !members.contains(user) else { continue }
            emit(.past(item, attachment.receiver))
        }
    }

    /// Gives up attachments that aren't made yet.
    private mutating func cancel(in channel: ChannelID, where isMeant: (Attachment.Receiver) -> Bool) {
        let stream = StreamID.channel(channel)
        guard let feed = feeds[stream] else { return }
        // Queued attachments first: ending the one that they wait for would begin them.
        for (user, attachments) in feed.behind {
            let kept = attachments.filter { !isMeant($0.receiver) }
            feeds[stream]?.behind[user] = kept.isEmpty ? nil : kept
            for attachment in attachments where isMeant(attachment.receiver) { settle(attachment.connect) }
        }
        feeds[stream]?.parked.removeAll { isMeant($0.receiver) }
        for (token, catchUp) in feed.catchUps where isMeant(catchUp.attachment.receiver) {
            feeds[stream]?.catchUps[token] = nil
            finish(catchUp.attachment)
        }
        for attachment in feed.parked where isMeant(attachment.receiver) { finish(attachment) }
    }
}
