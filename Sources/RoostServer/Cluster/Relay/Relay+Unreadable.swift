import RoostAPI
import RoostCore

/// Missed events that the database can't read although it answers: a page is damaged, or a row holds what no rule writes.
///
/// They are tried again, less often than with a database that is away. Until they can be read, the stream's receivers get nothing of it: the
/// users who have left meanwhile are among what can't be read. Nothing else waits for that: calls are answered, connections are welcomed, and other
/// streams go on. A feed that no socket needs any longer ends, and the next one begins at the head.
extension Relay {
    mutating func noteUnreadable(_ fetch: Fetch) {
        let stream = fetch.stream
        switch fetch.purpose {
        case .gap:
            guard feeds[stream]?.isLive == true else { return }
            feeds[stream]?.isFetching = false
            feeds[stream]?.isUnreadable = true
            feeds[stream]?.gapSince = now + settings.unreadableRetryAfter
            for index in feeds[stream]?.parked.indices ?? 0..<0 {
                guard var attachment = feeds[stream]?.parked[index] else { continue }
                welcomeEarly(&attachment)
                feeds[stream]?.parked[index] = attachment
            }
            for user in (feeds[stream]?.behind).map({ Array($0.keys) }) ?? [] { welcomeQueued(user, in: stream) }
        case .catchUp(let token):
            guard var catchUp = feeds[stream]?.catchUps[token] else { return }
            catchUp.isUnreadable = true
            welcomeEarly(&catchUp.attachment)
            feeds[stream]?.catchUps[token] = catchUp
            welcomeQueued(catchUp.attachment.receiver.user, in: stream)
            retries.append((now + settings.unreadableRetryAfter, fetch))
        }
        giveAnswers(waitingFor: stream)
    }

    /// Requests the reads that are due again.
    mutating func retryUnreadable() {
        while let next = retries.first, next.time <= now {
            retries.removeFirst()
            let fetch = next.fetch
            guard case .catchUp(let token) = fetch.purpose, feeds[fetch.stream]?.catchUps[token] != nil else { continue }
            request(.fetch(fetch))
        }
    }

    /// Stops a connection's welcome from waiting for an attachment. Its client reads the channel without it, possibly before the attachment is made: so
    /// that gets the events in between, and doesn't rely on the client's reading.
    mutating func welcomeEarly(_ attachment: inout Attachment) {
        let token = attachment.connect
        attachment.connect = nil
        attachment.catchesUpAlone = false
        settle(token)
    }

    private mutating func welcomeQueued(_ user: UserID, in stream: StreamID) {
        guard var attachments = feeds[stream]?.behind[user] else { return }
        for index in attachments.indices { welcomeEarly(&attachments[index]) }
        feeds[stream]?.behind[user] = attachments
    }
}
