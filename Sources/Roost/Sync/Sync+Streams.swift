import Logging
import RoostAPI

/// Events, positions, and catching up.
///
/// Each joined channel has a stream and the user has one; a position in each is the end of the applied part. A visited channel (`Sync+Visits`) has
/// one too, which no resume brings.
///
/// - An event that follows its stream's position is applied with the new position in one transaction. An older one is dropped. One further ahead reveals a gap.
/// - After a gap, as after a reconnect, `stream.resume` brings every stream up to one moment. Events are held meanwhile and applied afterwards in the
///   order in which they arrived. All streams together, because a membership (in the user's stream) counts messages (in a channel's): both must be
///   brought to the same moment, or the unread count is off by the messages between.
/// - The writes depend on the rows alone, never on the kind of the event.
extension Sync {
    /// How far catching up is.
    struct Resuming: Hashable, Sendable {
        /// How often in a row it was begun, since everything had arrived or an event could be applied.
        var catchUpsInARow = 0
        /// Consecutive answers to a resume that have moved nothing.
        var idleCount = 0
        /// How often in a row, 3 at most, a resume had no answer in time: its page is long for a slow network, and a shorter one can't be requested.
        var slowCount = 0
        /// The channels that the resume in progress requests, by their ids: all, unless their positions don't fit into a message.
        var ids = IDRange()
        /// Channels with a hole that can be fetched now: the next resume omits their positions, so they arrive as for a new client.
        var toRefresh: Set<ChannelID> = []
        /// Those that the resume in progress fetches again. They remain to be fetched if the connection ends before its answer.
        var beingRefreshed: Set<ChannelID> = []
    }

    mutating func receive(_ event: IncomingEvent) {
        for problem in event.rows.problems {
            log(.error, "A row of \(event.stream) at \(event.seq) couldn't be read and was skipped: \(problem)")
        }
        guard phase == .catchingUp else { return apply(event) }
        if held.count < settings.heldEventsMax {
            held.append(event)
        } else {
            hasDroppedEvents = true
            if let channel = event.stream.channel, isVisited(channel) { watches.visitsToRestart.insert(channel) }
            noteDropped(event)
        }
    }

    private mutating func apply(_ event: IncomingEvent) {
        // An event of a channel that isn't followed may arrive just before the membership begins here, or just after it ended.
        guard let position = cursor(of: event.stream) else { return noteDropped(event) }
        guard event.seq > position else { return }
        guard event.after ?? event.seq.subtractingWithSaturation(1) <= position else {
            log(.notice, "Events of \(event.stream) are missing between \(position) and \(event.seq).")
            if let channel = event.stream.channel, isVisited(channel) { return renewVisit(of: channel, instead: event) }
            held.append(event)
            return catchUp()
        }
        resuming.catchUpsInARow = 0
        let rows = event.rows.rows
        switch event.stream {
        case .user:
            let news = news(of: event, after: position)
            saved.userCursor = event.seq
            noteForeignPermissions(of: event)
            var writes: [StoreWrite] = [.userPosition(event.seq)] + userWrites(rows)
            // Users of other roles learn their permissions from the answer to their request.
            if role == .user { writes += holeWrites(rows) }
            store(writes)
            news.map { emit($0) }
            // The permissions of ordinary users say nothing of a user who isn't one.
            let regained = role == .user ? saved.channels.keys.filter { regainsReading(rows, in: $0) } : []
            guard regained.isEmpty else {
                resuming.toRefresh.formUnion(regained)
                return catchUp()
            }
        case .channel(let channel):
            let born = rows.messageCount(after: position)
            // A message that can't be read can't be counted.
            let isUncounted = event.isMessageAlone && born == 0
            guard !isUncounted, !mustRefresh(channel, rows, born: born) else {
                if isVisited(channel) { return renewVisit(of: channel, instead: event) }
                resuming.toRefresh.insert(channel)
                held.append(event)
                return catchUp()
            }
            let news = news(of: event, after: position)
            noteForeignPermissions(of: event)
            saved.channels[channel]?.advance(to: event.seq, rows.counters ?? rows.channel?.counters, rows)
            var writes = channelWrites(rows, of: channel)
            noteReading(rows, in: channel)
            if event.isMessageAlone { writes.append(.add(rows, to: channel)) }
            // Only the event that created a message counts it, and only once: the position has just moved past it.
            if !isVisited(channel) { writes += rows.countWrite(in: channel, as: user, after: position) }
            writes += otherChatsWrites(rows, of: channel) + advanceWrite(of: channel) + readingWrites(in: [channel])
            store(writes, bringing: [rows])
            news.map { emit($0) }
        }
        if rows.capabilities != nil || rows.ownCapabilities != nil { askForPermissions() }
        if phase == .online { reportMissed() }
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
        (resuming.idleCount, resuming.ids) = (0, IDRange())
        resuming.catchUpsInARow += 1
        guard resuming.catchUpsInARow <= 5 else {
            return lose(.server, "the streams still have gaps after \(resuming.catchUpsInARow - 1) attempts to catch up")
        }
        resume()
    }

    private mutating func resume() {
        // There may be any number of channels that have ended.
        let followed = saved.channels.filter { !$0.value.hasEnded && !$0.value.isVisit && !resuming.toRefresh.contains($0.key) }
        let positions = fitting(followed.map { ($0.key.rawValue, $0.value.cursor) })
        resuming.beingRefreshed = resuming.toRefresh.filter { resuming.ids.contains($0.rawValue) }
        resuming.toRefresh.subtract(resuming.beingRefreshed)
        // Of two ids that are equal as strings, the server is given one, and sends the channel of the other from its newest messages on.
        let resume = Resume(
            after: saved.userCursor, channels: Dictionary(positions, uniquingKeysWith: { first, _ in first }),
            from: resuming.ids.from, before: resuming.ids.before)
        // While a page is stored, the server prepares the next one.
        send(resume, for: .resume, ahead: true)
    }

    /// Returns the positions, from the next ids to request on, that fit into one message to the server. A longer message would end this connection,
    /// and each one after it. The rest follows with the next part.
    private mutating func fitting(_ positions: [(String, Seq)]) -> [(String, Seq)] {
        resuming.ids.before = nil
        // The call has a number, a name and the position in the user's own stream.
        var left = settings.outgoingSizeBytesMax - 200
        // Nearly always they fit even if each character is escaped and each seq is the longest. Then nothing more is measured, because each page of a
        // resume passes here.
        guard resuming.ids.from != nil || positions.reduce(0, { $0 + 2 * $1.0.utf8.count + 24 }) > left else { return positions }
        let asked = positions.filter { resuming.ids.contains($0.0) }.sorted { $0.0.utf8.lexicographicallyPrecedes($1.0.utf8) }
        // The two ids of the part itself.
        left -= 2 * (asked.lazy.map { Self.sizeBytes(of: $0.0) }.max() ?? 0)
        var kept = asked.prefix { channel, seq in
            left -= Self.sizeBytes(of: channel) + "\(seq)".utf8.count
            return left >= 0
        }
        if kept.isEmpty { kept = asked.prefix(1) }
        if kept.endIndex < asked.endIndex { resuming.ids.before = ChannelID(asked[kept.endIndex].0) }
        return Array(kept)
    }

    /// The bytes of an id in JSON: two for a character that is escaped; quotes, a colon and a comma.
    private static func sizeBytes(of id: String) -> Int {
        id.utf8.count + id.utf8.count { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") } + 4
    }

    /// Whether a channel became the user's after the part of a resume that it belongs to: the next round fetches it. Later parts include theirs.
    private func isOfEarlierPart(_ membership: Membership) -> Bool {
        guard let from = resuming.ids.from, membership.state == .member, ownPosition(in: membership.channelId) == nil else {
            return false
        }
        return IDRange(before: from).contains(membership.channelId.rawValue)
    }

    mutating func resumed(_ bytes: [UInt8]) {
        let page: IncomingResumption
        do {
            page = try ReplyResult<IncomingResumption>.decode(bytes, settings.rowKinds)
        } catch {
            return lose(.server, "the answer to a resume couldn't be read: \(error)")
        }
        // A channel that wasn't on this page is on a later one. A resume that names its position would bring nothing.
        if page.hasMore {
            resuming.toRefresh.formUnion(resuming.beingRefreshed.subtracting(page.channels.compactMap(\.stream.channel)))
        }
        resuming.beingRefreshed = []
        let before = saved
        if page.user.seq > saved.userCursor { miss(nil, after: saved.userCursor) }
        for changes in page.channels {
            miss(changes.stream.channel, after: changes.stream.channel.flatMap { saved.channels[$0]?.cursor } ?? 0)
        }
        var writes = userWrites(page.user.rows.rows) + holeWrites(page.user.rows.rows)
        saved.userCursor = max(saved.userCursor, page.user.seq)
        writes.append(.userPosition(saved.userCursor))
        for channel in saved.channels.keys where regainsReading(page.user.rows.rows, in: channel) {
            resuming.toRefresh.insert(channel)
        }
        let ownCount = writes.count
        var memberships: [ChannelID: Membership] = [:]
        for changes in page.channels {
            let written = self.writes(for: changes)
            if !written.isEmpty, let own = changes.rows.rows.memberships?.last { memberships[own.channelId] = own }
            writes += written
        }
        writes.removeRepeated(memberships, among: ownCount)
        for membership in page.user.rows.rows.memberships ?? [] where isOfEarlierPart(membership) {
            resuming.toRefresh.insert(membership.channelId)
        }
        for changes in [page.user] + page.channels {
            for problem in changes.rows.problems {
                log(.error, "A row of \(changes.stream) couldn't be read and was skipped: \(problem)")
            }
        }
        writes += userWrites(page.users?.users ?? [])
        writes += readingWrites(in: page.channels.compactMap(\.stream.channel))
        store(writes, bringing: page.channels.map(\.rows.rows))
        guard page.hasMore || resuming.ids.before != nil || !resuming.toRefresh.isEmpty else { return caughtUp() }
        if !page.hasMore {
            resuming.ids.from = resuming.ids.before
            // A part may bring nothing.
            guard resuming.ids.from == nil else { return resume() }
        }
        resuming.idleCount = saved == before ? resuming.idleCount + 1 : 0
        // If it reveals a hole, the next resume fetches the channel again. A broken server doesn't deliver it.
        guard resuming.idleCount == 0 || (!resuming.toRefresh.isEmpty && resuming.idleCount <= 5) else {
            return lose(.server, "a resume promised more and returned nothing")
        }
        resume()
    }

    mutating func resumeFailed(_ error: RoostError) {
        guard error.code == .resyncRequired, saved.userCursor > 0, let epoch = saved.epoch else {
            retryAfter = error.retryAfterMilliseconds.map(Self.pause)
            return lose(.server, "the streams can't be resumed: \(error.code.rawValue): \(error.message)")
        }
        log(.notice, "The server doesn't know this client's positions: starting over.")
        resetCache(epoch: epoch)
        resuming.ids = IDRange()
        resume()
    }

    private mutating func caughtUp() {
        phase = .online
        resuming.slowCount = 0
        // Only now has everything arrived that the new role brings.
        if saved.role != role {
            saved.role = role
            emit(.store([.appRole(role)]))
        }
        reportMissed()
        let events = held
        held = []
        for event in events {
            // A gap among them returns the machine to catching up: the rest is held again.
            if phase == .catchingUp { held.append(event) } else if phase == .online { apply(event) }
        }
        guard phase == .online else { return }
        guard !hasDroppedEvents else {
            hasDroppedEvents = false
            return catchUp()
        }
        // Nothing is missing: later fetches have nothing to do with it.
        resuming.catchUpsInARow = 0
        handOverEarlyAnswers()
        set(.online)
        finishHeldAnswers()
        sendAll()
        renewWatches()
        renewVisits()
        askForPermissions()
        askForUsersSoon()
        // Reports what arrived while there was no connection.
        note([:])
    }

    /// Drops the cache in another epoch, because it belongs to a history that the server no longer has. The outbox stays.
    mutating func resetCache(epoch: String) {
        // In the same history the remembered seqs are still valid.
        if saved.epoch != epoch {
            arrivals = [:]
            resendAcknowledged()
            dropHeldAnswers()
        }
        let isOther = saved.epoch.map { $0 != epoch } ?? false
        // They start again with another watch.
        watches.visitsToRestart.formUnion(watches.visits.keys)
        for (channel, visit) in watches.visits { rememberVisit(of: channel, from: saved.channels[channel]?.cursor ?? visit.start) }
        // Seqs of another history mean nothing.
        if saved.epoch != epoch { watches.forgottenVisits = watches.forgottenVisits.mapValues { _ in 0 } }
        (watches.visits, watches.droppedSeqs) = ([:], [:])
        saved = SavedState(epoch: epoch, role: role)
        (channelRoles, permissionsToRequest, askedPermissions) = ([:], [], [:])
        userRequests.forget()
        // Read positions of another history mean nothing.
        reading = reading.mapValues { _ in 0 }
        pausedReading = pausedReading?.mapValues { _ in 0 }
        if isOther { for channel in overlays.keys { _ = overlayWrite(of: channel) } }
        emit(.store([.erase(epoch: epoch), .appRole(role)] + overlayWrites))
    }

    /// Requests writes, then removes messages from the outbox that the rows of channels bring: never before those are stored.
    mutating func store(_ writes: [StoreWrite], bringing rows: [Rows] = []) {
        emit(.store(writes))
        for rows in rows { arrived(rows) }
        settleAcknowledged()
    }
}

extension [StoreWrite] {
    /// Removes memberships of the user's stream that channels bring too, among the first writes. A resume brings most of them twice: the channel's comes after
    /// the position and the messages that it counts, so that is the one to keep. An ended membership stays: it says that the channel is to be left.
    fileprivate mutating func removeRepeated(_ memberships: [ChannelID: Membership], among count: Int) {
        let kept = prefix(count).filter { write in
            guard case .rows(let rows, of: .channel(let channel)) = write, let own = rows.memberships?.last else { return true }
            return own.state != .member || own != memberships[channel]
        }
        replaceSubrange(..<count, with: kept)
    }
}
