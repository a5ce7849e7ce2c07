import RoostAPI
import RoostCore

/// Catches up receivers that are behind the feed: they get the events in between from the database, then those delivered since, and then they are attached.
extension Relay {
    mutating func catchUp(_ attachment: Attachment) {
        let stream = StreamID.channel(attachment.channel)
        let token = nextToken()
        feeds[stream]?.catchUps[token] = CatchUp(attachment: attachment, position: attachment.seq)
        count { $0.catchUps += 1 }
        // Other users' leavings are reported by what the feed delivers.
        let leavers = MissedEvents.Leavers.user(attachment.receiver.user)
        request(.fetch(Fetch(stream: stream, after: attachment.seq, purpose: .catchUp(token), leavers: leavers)))
    }

    /// Records a delivered item for the receivers that are catching up.
    mutating func record(_ item: StreamItem) {
        let (countMax, sizeBytesMax) = (settings.recordedItemsMax, settings.recordedSizeBytesMax)
        feeds[item.stream]?.record(item, atMost: countMax, sizeBytesMax: sizeBytesMax)
    }

    mutating func receiveCatchUp(_ fetched: Fetched?, for fetch: Fetch) {
        guard case .catchUp(let token) = fetch.purpose, var catchUp = feeds[fetch.stream]?.catchUps[token] else { return }
        let after = catchUp.position
        guard let fetched else { return request(.fetch(fetch)) }
        catchUp.isUnreadable = false
        let user = catchUp.attachment.receiver.user
        for var item in fetched.items where item.seq > catchUp.position {
            item.isPartial = fetched.hasMore
            guard give(item, to: &catchUp) else { return end(token, in: fetch.stream, keepsWatch: item.keepsWatch(of: user)) }
        }
        catchUp.position = max(catchUp.position, fetched.seq)
        if !fetched.hasMore {
            for item in catchUp.recorded where item.seq > catchUp.position {
                guard item.after <= catchUp.position else { break }
                guard give(item, to: &catchUp) else { return end(token, in: fetch.stream, keepsWatch: item.keepsWatch(of: user)) }
            }
            if let feed = feeds[fetch.stream], catchUp.position >= feed.position {
                feeds[fetch.stream]?.catchUps[token] = nil
                catchUp.attachment.seq = catchUp.position
                return place(catchUp.attachment)
            }
        }
        let isEmpty = !fetched.hasMore && catchUp.position == after
        catchUp.emptyFetches = isEmpty ? catchUp.emptyFetches + 1 : 0
        if catchUp.emptyFetches >= settings.emptyFetchesMax {
            // The feed is at a position that the database doesn't know, which honest nodes never publish. The next event doesn't follow what
            // the receiver has, which makes its client resume.
            feeds[fetch.stream]?.catchUps[token] = nil
            catchUp.attachment.seq = catchUp.position
            return complete(catchUp.attachment)
        }
        feeds[fetch.stream]?.catchUps[token] = catchUp
        giveAnswers(waitingFor: fetch.stream)
        // If the database has nothing newer although the feed is ahead, it is queried again as if it had more.
        let next = Fetch(
            stream: fetch.stream, after: max(after, catchUp.position), purpose: fetch.purpose, leavers: fetch.leavers)
        request(.fetch(next))
    }

    /// Gives the receiver an item. Returns whether it may get more: not after leaving, nor after the channel's end.
    private mutating func give(_ item: StreamItem, to catchUp: inout CatchUp) -> Bool {
        guard !item.left.contains(where: { $0.user == catchUp.attachment.receiver.user }) else { return false }
        if case .channel(let channel) = item.stream {
            let user = catchUp.attachment.receiver.user
            for change in item.roles where change.user == user {
                catchUp.attachment.role = change.role
                emit(.change(.role(user, channel, change.role, at: change.seq)))
            }
        }
        emit(.past(item, catchUp.attachment.receiver))
        catchUp.position = item.seq
        if case .member(let user) = catchUp.attachment.receiver { advanceQueuedAttachments(user, item) }
        return !item.isDeletion
    }

    /// Moves the member's queued attachments past an item that their connections have also got.
    private mutating func advanceQueuedAttachments(_ user: UserID, _ item: StreamItem) {
        guard var behind = feeds[item.stream]?.behind[user] else { return }
        for index in behind.indices where behind[index].seq >= item.after { behind[index].seq = max(behind[index].seq, item.seq) }
        feeds[item.stream]?.behind[user] = behind
    }

    mutating func end(_ token: CatchUpToken, in stream: StreamID, keepsWatch: Bool = false) {
        guard let catchUp = feeds[stream]?.catchUps.removeValue(forKey: token) else { return }
        giveUp(catchUp.attachment, keepsWatch: keepsWatch)
    }
}
