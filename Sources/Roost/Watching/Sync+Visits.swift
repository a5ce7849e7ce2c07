import Logging
import RoostAPI

/// Channels of others that the user watches and may read (ST-01, ST-06). The server sends their events as long as the watch lasts, and as long as that they are
/// followed: that is a *visit*.
///
/// - It begins with the answer to the watch, at the seq that the channel has there and with the messages that are in it. From then on its events are applied as
///   those of the user's own channels are.
/// - No resume brings the channel. If events are missing, or the connection was another, it is watched once more: whatever has happened since, the visit begins
///   afresh at the seq of that answer. Another answer on the same connection says nothing of events that aren't missing: it may come before or behind them.
/// - It ends when nothing here watches the channel any more, when the user may not read it, when it is deleted, and when the files are read anew after another
///   process may have had them. Its messages are deleted then. If the user becomes a member, the membership takes its place.
///
/// It gives the user nothing that only members have: no unread messages, no place among their channels, no reports of what has arrived.
extension Sync {
    /// A channel of others that is followed.
    struct Visit: Hashable, Sendable {
        /// The connection whose events it goes on with.
        var connection: Int64
        /// The seq at which it began, for the last time.
        let start: Seq
    }

    /// Whether the channel is followed only because it is watched.
    func isVisited(_ channel: ChannelID) -> Bool { saved.channels[channel]?.isVisit == true }

    /// Where a channel of the user's own is followed to; nil for those of others.
    func ownPosition(in channel: ChannelID) -> Position? { saved.channels[channel].flatMap { $0.isVisit ? nil : $0 } }

    // MARK: Beginning

    /// Begins a visit with the answer to a watch, if the channel is one of others. One that lacks no events goes on.
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
        // Events were here up to this one, and those that the answer lacks don't come again.
        var last = droppedSeqs[id] ?? 0
        if let known = saved.channels[id] {
            guard mustBeginAfresh(id, known, at: seq) else {
                visits[id]?.connection = connection
                return fill(id, known, with: newest, isWhole: isWhole, at: seq)
            }
            last = max(last, known.cursor)
            miss(id, after: known.cursor)
        } else if let told = forgottenVisits[id], told < seq {
            miss(id, after: told)
        }
        forgottenVisits[id] = nil
        visits[id] = Visit(connection: connection, start: seq)
        let begun = begunWrites(of: channel, newest, isWhole: isWhole)
        let rows: [StoreWrite] = newest.isEmptyOfFeatures ? [] : [.rows(newest, of: .channel(id))]
        store(begun + rows, bringing: [newest])
        if phase == .online { tellMissed() }
        guard last <= seq else { return renewVisit(of: id) }
        owedVisits.remove(id)
        droppedSeqs[id] = nil
    }

    /// Returns the writes of a visit that begins, but for its messages.
    private mutating func begunWrites(of channel: Channel, _ newest: Rows, isWhole: Bool) -> [StoreWrite] {
        let (id, seq) = (channel.channelId, channel.counters.seq)
        if channel.isEphemeral, let known = saved.channels[id] {
            // What it has brought can't be fetched: lists go on with what they show.
            saved.channels[id]?.cursor = max(known.cursor, seq)
            return [.channel(channel)] + advanceWrite(of: id)
        }
        // Of an ephemeral channel there is nothing older to be had.
        let start = isWhole || channel.isEphemeral ? 0 : newest.oldestMessage ?? seq.addingWithSaturation(1)
        let position = Position(
            cursor: seq, windowStart: start, messageCount: channel.isEphemeral ? nil : channel.counters.messageCount,
            isVisit: true)
        saved.channels[id] = position
        outdateLoads(in: id)
        return [.visit(id, position), .channel(channel)]
    }

    /// Takes the messages of an answer into a visit that goes on and has none: it began with an answer without any.
    private mutating func fill(_ channel: ChannelID, _ known: Position, with newest: Rows, isWhole: Bool, at seq: Seq) {
        // Those that the answer is ahead by come with their events.
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

    /// Whether a visit that is under way begins afresh with an answer to a watch at a seq. The server's answer isn't in the order of the
    /// events: those that it is ahead by are still to come on the same connection, and those that it lacks were here before.
    private func mustBeginAfresh(_ channel: ChannelID, _ known: Position, at seq: Seq) -> Bool {
        // What was asked for before may lack what is missing. The answer that is still to come has it.
        if owedVisits.contains(channel) { return !calls.values.contains(.watch(channel)) }
        return known.hasHole || (visits[channel]?.connection != connection && known.cursor < seq)
    }

    // MARK: Gaps

    /// Watches a channel once more. Of one of others the answer brings its newest messages; the state of the user's own channels comes with the resume.
    ///
    /// - Parameter hasMessages: Whether the answer may have messages.
    mutating func renewWatch(of channel: ChannelID, hasMessages: Bool = true) {
        // What was dropped until now is in the answer.
        droppedSeqs[channel] = nil
        let bringsMessages = hasMessages && ownPosition(in: channel) == nil
        if hasMessages { plainRenewals.remove(channel) } else { plainRenewals.insert(channel) }
        let operation = WatchChannel(
            channel: channel, limit: bringsMessages ? nil : 0, watchersLimit: bringsMessages ? 0 : nil)
        send(operation, for: .watch(channel))
    }

    /// Events of a visited channel are missing, or can't be applied. The visit begins afresh.
    ///
    /// - Parameter event: The event that isn't applied.
    mutating func renewVisit(of channel: ChannelID, instead event: IncomingEvent? = nil) {
        if let event { noteDropped(event) }
        owedVisits.insert(channel)
        renewVisits()
    }

    /// An event isn't applied. If it is of a channel of others that is watched, an answer to the watch of before it lacks it.
    mutating func noteDropped(_ event: IncomingEvent) {
        guard let channel = event.stream.channel, ownPosition(in: channel) == nil, wantsWatch(of: channel) else { return }
        droppedSeqs[channel] = max(droppedSeqs[channel] ?? 0, event.seq)
    }

    /// Begins the visits afresh whose events are missing, now that nothing of the user's own is.
    mutating func renewVisits() {
        guard phase == .online else { return }
        for channel in owedVisits.sorted() {
            guard wantsWatch(of: channel) else {
                owedVisits.remove(channel)
                continue
            }
            // They are owed until the answer has come. What is dropped before it may not be in it.
            if watchRetries[channel] == nil, !calls.values.contains(.watch(channel)) { renewWatch(of: channel) }
        }
    }

    /// The answer to a watch that was renewed.
    mutating func takeRenewal(of channel: ChannelID, _ bytes: [UInt8]) {
        let isPlain = plainRenewals.remove(channel) != nil
        guard ownPosition(in: channel) == nil else { return }
        if let state = try? ReplyResult<WatchedChannel>.decode(bytes) {
            arrived(state)
            return visit(state)
        }
        guard !isPlain else {
            owedVisits.remove(channel)
            return
        }
        // A message that this version can't read, say. Without messages the answer can be read, and lists fetch them page by page.
        log(.notice, "The answer to the watch of \(channel) couldn't be read.")
        let told = saved.channels[channel]?.cursor ?? forgottenVisits[channel]
        endVisit(of: channel)
        if let told { rememberVisit(of: channel, from: told) }
        renewWatch(of: channel, hasMessages: false)
    }

    // MARK: Ending

    /// Ends the visits of channels that nothing here watches any more.
    mutating func endUnwantedVisits() {
        mayEndVisits = false
        for channel in visits.keys.sorted() where !wantsWatch(of: channel) { endVisit(of: channel) }
        forgottenVisits = forgottenVisits.filter { wantsWatch(of: $0.key) }
    }

    /// Does nothing for the user's own channels.
    mutating func endVisit(of channel: ChannelID) {
        guard forgetVisit(of: channel), ownPosition(in: channel) == nil else { return }
        saved.channels[channel] = nil
        owedPermissions.remove(channel)
        askedPermissions[channel] = nil
        store([.endVisit(channel)])
    }

    /// A visit is forgotten that is still wanted: what has happened since is told as missed when it begins anew.
    mutating func rememberVisit(of channel: ChannelID, from seq: Seq) {
        forgottenVisits[channel] = min(forgottenVisits[channel] ?? .max, seq)
    }

    /// - Returns: Whether the channel was visited.
    @discardableResult
    mutating func forgetVisit(of channel: ChannelID) -> Bool {
        owedVisits.remove(channel)
        droppedSeqs[channel] = nil
        forgottenVisits[channel] = nil
        return visits.removeValue(forKey: channel) != nil
    }
}
