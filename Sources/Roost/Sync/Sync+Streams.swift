import Logging
import RoostAPI

/// Events, positions, and catching up.
///
/// Each joined channel has a stream and the user has one; a position in each says up to where it is applied.
///
/// - An event that follows its stream's position is applied with the new position in one transaction. An older one is dropped. One
///   further ahead shows a gap.
/// - After a gap, as after a reconnect, `streams.resume` brings every stream up to one moment. Events are held meanwhile and
///   applied afterwards in the order in which they came. All streams together, because a membership (in the user's stream) counts
///   messages (in a channel's): both must be brought to the same moment, or the unread count is off by the messages between.
/// - What is stored follows from the rows alone, never from the kind of the event.
extension Sync {
    mutating func receive(_ event: IncomingEvent) {
        for problem in event.rows.problems {
            log(.error, "A row of \(event.stream) at \(event.seq) couldn't be read and was skipped: \(problem)")
        }
        guard phase == .catchingUp else { return apply(event) }
        if held.count < settings.heldEventsMax {
            held.append(event)
        } else {
            hasDroppedEvents = true
        }
    }

    private mutating func apply(_ event: IncomingEvent) {
        // An event of a channel that isn't ours comes just before we are told that it is, or just after that it isn't any more.
        guard let position = cursor(of: event.stream), event.seq > position else { return }
        guard event.after ?? event.seq &- 1 <= position else {
            log(.notice, "Events of \(event.stream) are missing between \(position) and \(event.seq).")
            held.append(event)
            return catchUp()
        }
        catchUpsInARow = 0
        let rows = event.rows.rows
        switch event.stream {
        case .user:
            saved.userCursor = event.seq
            store([.userPosition(event.seq)] + userWrites(rows))
        case .channel(let channel):
            saved.channels[channel]?.cursor = event.seq
            var writes = channelWrites(rows, of: channel)
            // Only the event that a message was born with counts it, and only once: the position has just moved past it.
            for message in rows.messages ?? [] where message.seq > position && message.sender == user {
                writes.append(.countOwn(message))
            }
            store(writes + positionWrite(of: channel), messages: rows.messages ?? [])
        }
    }

    private func cursor(of stream: StreamID) -> Seq? {
        switch stream {
        case .user(let id): id == user ? saved.userCursor : nil
        case .channel(let id): saved.channels[id]?.cursor
        }
    }

    // MARK: Catching up

    mutating func catchUp() {
        phase = .catchingUp
        catchUpsInARow += 1
        guard catchUpsInARow <= 5 else {
            return lose("the streams still have gaps after \(catchUpsInARow - 1) attempts to catch up")
        }
        resume()
    }

    private mutating func resume() {
        let positions = saved.channels.map { ($0.key.rawValue, $0.value.cursor) }
        send(Resume(after: saved.userCursor, channels: Dictionary(uniqueKeysWithValues: positions)), for: .resume)
    }

    mutating func resumed(_ bytes: [UInt8]) {
        let page: IncomingResumption
        do {
            page = try ReplyResult<IncomingResumption>.decode(bytes)
        } catch {
            return lose("the answer to a resume couldn't be read: \(error)")
        }
        let before = saved
        var writes = userWrites(page.user.rows.rows)
        saved.userCursor = max(saved.userCursor, page.user.seq)
        writes.append(.userPosition(saved.userCursor))
        var messages: [Message] = []
        for changes in page.channels {
            for problem in changes.rows.problems {
                log(.error, "A row of \(changes.stream) couldn't be read and was skipped: \(problem)")
            }
            writes += self.writes(for: changes)
            messages += changes.rows.rows.messages ?? []
        }
        store(writes, messages: messages)
        guard page.hasMore else { return caughtUp() }
        guard saved != before else { return lose("a resume promised more and brought nothing") }
        resume()
    }

    mutating func resumeFailed(_ error: RoostError) {
        guard error.code == .resyncRequired, saved.userCursor > 0, let epoch = saved.epoch else {
            retryAfter = error.retryAfterMilliseconds.map(Self.wait)
            return lose("the server refused to resume: \(error.code.rawValue): \(error.message)")
        }
        log(.notice, "The server knows nothing of this client's positions: starting afresh.")
        startAfresh(epoch: epoch)
        resume()
    }

    private mutating func caughtUp() {
        phase = .online
        let events = held
        held = []
        for event in events {
            // A gap among them puts the machine back to catching up: the rest is held again.
            if phase == .catchingUp { held.append(event) } else if phase == .online { apply(event) }
        }
        guard phase == .online else { return }
        guard !hasDroppedEvents else {
            hasDroppedEvents = false
            return catchUp()
        }
        set(.online)
        sendAll()
        renewWatches()
    }

    /// Another epoch: what is cached belongs to a history that the server doesn't have any more. The outbox stays.
    mutating func startAfresh(epoch: String) {
        saved = SavedState(epoch: epoch)
        emit(.store([.erase(epoch: epoch)]))
    }

    /// Asks to store, and then takes from the outbox what has become part of the channel: never before it is stored.
    private mutating func store(_ writes: [StoreWrite], messages: [Message] = []) {
        emit(.store(writes))
        for message in messages where message.sender == user {
            arrived(message)
        }
        settleAcknowledged()
    }
}
