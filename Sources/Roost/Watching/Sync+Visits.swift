import Logging
import RoostAPI

/// Channels that the user watches and may read without being a member (ST-01, ST-06). The server sends their events while the watch lasts, and they
/// are followed until it ends: that is a *visit*.
///
/// - It begins with the answer to the watch, at the channel's seq and with the messages in that answer. From then on its events are applied like
///   those of the user's own channels.
/// - A resume doesn't include the channel. If events are missing, or if the connection was another, the channel is watched again, and if anything has
///   happened since, the visit starts over at the seq of the new answer. Another answer on the same connection doesn't mean that events are missing:
///   it may arrive before or after them.
/// - It ends when nothing on this device watches the channel any longer, when the user may not read it, when it is deleted, and when the files are
///   reread after another process may have had them. Its messages are then deleted. If the user becomes a member, the membership replaces it.
///
/// It gives the user nothing reserved for members: no unread messages, no place among their channels, no delivery reports.
extension Sync {
    /// A followed channel that the user isn't a member of.
    struct Visit: Hashable, Sendable {
        /// The connection whose events continue it.
        var connection: Int64
        /// The seq at which it last started.
        let start: Seq
    }

    /// Whether the channel is followed only because it is watched.
    func isVisited(_ channel: ChannelID) -> Bool { saved.channels[channel]?.isVisit == true }

    /// The position in one of the user's own channels; nil for other channels.
    func ownPosition(in channel: ChannelID) -> Position? { saved.channels[channel].flatMap { $0.isVisit ? nil : $0 } }

    // MARK: Beginning

    /// Begins a visit with the answer to a watch if the user isn't a member of the channel. A visit that lacks no events continues.
    mutating func visit(_ state: WatchedChannel) {
        let view = ChannelView(channel: state.channel, membership: state.membership, ownCapabilities: state.ownCapabilities)
        visit(view, Rows(state.messages.messages), isWhole: !state.messages.hasOlder)
    }

    /// - Parameters:
    ///   - newest: The channel's newest messages, without a gap.
    ///   - isWhole: Whether there are no older ones.
    mutating func visit(_ view: ChannelView, _ newest: Rows, isWhole: Bool) {
        let channel = view.channel
        let id = channel.channelId
        guard wantsWatch(of: id), ownPosition(in: id) == nil, view.membership?.state != .member else { return }
        guard view.ownCapabilities.contains(.historyRead), channel.deletedAt == nil else { return endVisit(of: id) }
        let seq = channel.counters.seq
        // Events arrived up to this seq, and those that the answer lacks aren't sent again.
        var last = watches.droppedSeqs[id] ?? 0
        if let known = saved.channels[id] {
            guard mustRestartVisit(id, known, at: seq) else {
                watches.visits[id]?.connection = connection
                return fill(id, known, with: newest, isWhole: isWhole, at: seq)
            }
            last = max(last, known.cursor)
            miss(id, after: known.cursor)
        } else if let forgotten = watches.forgottenVisits[id], forgotten < seq {
            miss(id, after: forgotten)
        }
        watches.forgottenVisits[id] = nil
        watches.visits[id] = Visit(connection: connection, start: seq)
        let begun = begunWrites(of: channel, newest, isWhole: isWhole)
        let rows: [StoreWrite] = newest.isEmptyOfFeatures ? [] : [.rows(newest, of: .channel(id))]
        store(begun + rows, bringing: [newest])
        if phase == .online { reportMissed() }
        guard last <= seq else { return renewVisit(of: id) }
        watches.visitsToRestart.remove(id)
        watches.droppedSeqs[id] = nil
    }

    /// Returns the writes that begin a visit, except for its messages.
    private mutating func begunWrites(of channel: Channel, _ newest: Rows, isWhole: Bool) -> [StoreWrite] {
        let (id, seq) = (channel.channelId, channel.counters.seq)
        if channel.isEphemeral, let known = saved.channels[id] {
            // Its messages can't be fetched again: lists keep what they show.
            saved.channels[id]?.cursor = max(known.cursor, seq)
            return [.channel(channel)] + advanceWrite(of: id)
        }
        // An ephemeral channel has no older messages to fetch.
        let start = isWhole || channel.isEphemeral ? 0 : newest.oldestMessage ?? seq.addingWithSaturation(1)
        let position = Position(
            cursor: seq, windowStart: start, messageCount: channel.isEphemeral ? nil : channel.counters.messageCount,
            isVisit: true)
        saved.channels[id] = position
        invalidateLoads(in: id)
        return [.visit(id, position), .channel(channel)]
    }

    /// Takes the messages of an answer into a visit that continues and has none, because it began with an answer without messages.
    private mutating func fill(_ channel: ChannelID, _ known: Position, with newest: Rows, isWhole: Bool, at seq: Seq) {
        // Messages that the answer is ahead by arrive with their events.
        guard known.windowStart > known.cursor, seq >= known.cursor, let first = isWhole ? 0 : newest.oldestMessage,
            first <= known.cursor
        else {
            return
        }
        let range = first...known.cursor
        let forgotten = saved.channels[channel]?.insert(range, keeping: shownPlaces[channel] ?? []) ?? []
        let rows = newest.withoutRows(aboutMessagesExcept: range.contains)
        let writes: [StoreWrite] = rows.isEmptyOfFeatures ? [] : [.rows(rows, of: .channel(channel))]
        store(writes + [.page(channel, range)] + forgotten.map { .forgetMessages(channel, $0) }, bringing: [rows])
    }

    /// Whether a visit starts over with an answer to a watch at this seq. The server's answer isn't ordered with the events: those that it is ahead
    /// by still arrive on the same connection, and those that it lacks arrived earlier.
    private func mustRestartVisit(_ channel: ChannelID, _ known: Position, at seq: Seq) -> Bool {
        // The answer to an earlier request may lack the missing events. The one that is still pending has them.
        if watches.visitsToRestart.contains(channel) { return !calls.values.contains(.watch(channel)) }
        return known.hasHole || (watches.visits[channel]?.connection != connection && known.cursor < seq)
    }

    // MARK: Gaps

    /// Watches a channel again. If the user isn't a member, the answer brings the newest messages; the state of the user's own channels comes with the resume.
    ///
    /// - Parameter hasMessages: Whether the answer may contain messages.
    mutating func renewWatch(of channel: ChannelID, hasMessages: Bool = true) {
        // Events dropped until now are in the answer.
        watches.droppedSeqs[channel] = nil
        let bringsMessages = hasMessages && ownPosition(in: channel) == nil
        if hasMessages { watches.plainRenewals.remove(channel) } else { watches.plainRenewals.insert(channel) }
        let operation = WatchChannel(
            channel: channel, limit: bringsMessages ? nil : 0, watchersLimit: bringsMessages ? 0 : nil)
        send(operation, for: .watch(channel))
    }

    /// Events of a visited channel are missing or can't be applied: the visit starts over.
    ///
    /// - Parameter event: The event that isn't applied.
    mutating func renewVisit(of channel: ChannelID, instead event: IncomingEvent? = nil) {
        if let event { noteDropped(event) }
        watches.visitsToRestart.insert(channel)
        renewVisits()
    }

    /// Notes an event that isn't applied. If its channel is watched and isn't one of the user's own, the answer to an earlier watch lacks the event.
    mutating func noteDropped(_ event: IncomingEvent) {
        guard let channel = event.stream.channel, ownPosition(in: channel) == nil, wantsWatch(of: channel) else { return }
        watches.droppedSeqs[channel] = max(watches.droppedSeqs[channel] ?? 0, event.seq)
    }

    /// Restarts the visits whose events are missing, now that no events of the user's own channels are.
    mutating func renewVisits() {
        guard phase == .online else { return }
        for channel in watches.visitsToRestart.sorted() {
            guard wantsWatch(of: channel) else {
                watches.visitsToRestart.remove(channel)
                continue
            }
            // They are owed until the answer has arrived. It may lack events that are dropped before then.
            if watches.retries[channel] == nil, !calls.values.contains(.watch(channel)) { renewWatch(of: channel) }
        }
    }

    /// Takes the answer to a renewed watch.
    mutating func takeRenewal(of channel: ChannelID, _ bytes: [UInt8]) {
        let isPlain = watches.plainRenewals.remove(channel) != nil
        guard ownPosition(in: channel) == nil else { return }
        if let state = try? ReplyResult<WatchedChannel>.decode(bytes) {
            arrived(state)
            return visit(state)
        }
        guard !isPlain else {
            watches.visitsToRestart.remove(channel)
            return
        }
        // It may contain a message that this version can't read. An answer without messages is readable, and lists fetch them page by page.
        log(.notice, "The answer to the watch of \(channel) couldn't be read.")
        let position = saved.channels[channel]?.cursor ?? watches.forgottenVisits[channel]
        endVisit(of: channel)
        if let position { rememberVisit(of: channel, from: position) }
        renewWatch(of: channel, hasMessages: false)
    }

    // MARK: Ending

    /// Ends the visits of channels that nothing on this device watches any longer.
    mutating func endUnwantedVisits() {
        watches.mayEndVisits = false
        for channel in watches.visits.keys.sorted() where !wantsWatch(of: channel) { endVisit(of: channel) }
        watches.forgottenVisits = watches.forgottenVisits.filter { wantsWatch(of: $0.key) }
    }

    /// Does nothing for the user's own channels.
    mutating func endVisit(of channel: ChannelID) {
        guard forgetVisit(of: channel), ownPosition(in: channel) == nil else { return }
        saved.channels[channel] = nil
        permissionsToRequest.remove(channel)
        askedPermissions[channel] = nil
        store([.endVisit(channel)])
    }

    /// Remembers a forgotten visit that is still wanted: when it begins again, later events are reported as missed.
    mutating func rememberVisit(of channel: ChannelID, from seq: Seq) {
        watches.forgottenVisits[channel] = min(watches.forgottenVisits[channel] ?? .max, seq)
    }

    /// - Returns: Whether the channel was visited.
    @discardableResult
    mutating func forgetVisit(of channel: ChannelID) -> Bool {
        watches.visitsToRestart.remove(channel)
        watches.droppedSeqs[channel] = nil
        watches.forgottenVisits[channel] = nil
        return watches.visits.removeValue(forKey: channel) != nil
    }
}
