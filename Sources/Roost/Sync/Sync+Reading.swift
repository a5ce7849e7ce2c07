import Logging
import RoostAPI

/// Channels that the user reads at this moment (AM-45): they are shown as read, as far as this device has them. The server moves the position by
/// itself while this connection lasts; on the next one reading starts again once it has caught up.
///
/// A report that the server can't accept now is sent again later, whether a channel is read, no longer is, or is paused. Callers that start reading wait for
/// the outcome. What the user had marked as unread before is sent first, because that ends reading.
///
/// In the background nobody sees what arrives. Should the app connect there, the server isn't told that the user reads until the app is back.
extension Sync {
    /// A report on the reading of a channel that the server couldn't accept.
    struct ReadingRetry: Hashable, Sendable {
        var refusals = TransientRefusals()
        /// Whether it is sent once nothing in the outbox precedes it any longer.
        var isBehindOutbox = false
        /// The callers that wait for the start.
        var waiting: [CallToken] = []
    }

    mutating func startReading(_ channel: ChannelID, for token: CallToken) {
        if reading[channel] == nil {
            // It is from an earlier time in the channel.
            pausedReading?[channel] = nil
            reading[channel] = 0
        }
        showOverlay(of: channel)
        guard isAuthenticated else { return emit(.reply(token, .success([]))) }
        reportStart(of: channel, for: token)
    }

    /// Reports to the server that a channel is read, or delays that until what precedes it is sent.
    mutating func reportStart(of channel: ChannelID, for token: CallToken? = nil) {
        guard pausedReading == nil else {
            if let token { emit(.reply(token, .success([]))) }
            return
        }
        guard isUnreadFirst(channel) else { return send(StartReading(channel: channel), for: .startReading(channel, token)) }
        var retry = readingRetries[channel] ?? ReadingRetry()
        retry.isBehindOutbox = true
        if let token { retry.waiting.append(token) }
        readingRetries[channel] = retry
    }

    /// Reports to the server that a channel is read, if that has waited for the outbox and no longer must.
    mutating func reportDelayedStart(of channel: ChannelID) {
        guard isAuthenticated, readingRetries[channel]?.isBehindOutbox == true, !isUnreadFirst(channel) else { return }
        readingRetries[channel]?.isBehindOutbox = false
        reportStart(of: channel)
    }

    /// Whether the user marked messages of a channel as unread before they started to read it, and the server doesn't know yet. A mark that is
    /// refused until some time blocks nothing.
    private func isUnreadFirst(_ channel: ChannelID) -> Bool {
        guard reading[channel] != nil else { return false }
        return !pending(in: channel) { if case .unread = $0.operation { $0.failure == nil } else { false } }.isEmpty
    }

    /// Whether the server hasn't answered yet to a report that a channel is read.
    private func isStarting(_ channel: ChannelID) -> Bool {
        calls.values.contains { if case .startReading(channel, _) = $0 { true } else { false } }
    }

    /// The seq up to which a channel being read counts as read here: as far as this device has it, or had it when the app moved to the background. Nil
    /// if it isn't being read.
    func readHere(_ channel: ChannelID) -> Seq? {
        guard reading[channel] != nil, let cursor = saved.channels[channel]?.cursor else { return nil }
        guard let pausedReading else { return cursor }
        guard let seen = pausedReading[channel], seen > 0 else { return nil }
        return min(seen, cursor)
    }

    /// Pauses reading: the app is in the background. A connection that lasts there is told so.
    mutating func pauseReading() {
        guard pausedReading == nil else { return }
        var seen: [ChannelID: Seq] = [:]
        for channel in reading.keys { seen[channel] = saved.channels[channel]?.cursor }
        pausedReading = seen
        guard isAuthenticated else { return }
        for channel in reading.keys.sorted() { send(StopReading(channel: channel), for: .stopReading(channel)) }
    }

    /// Continues reading: the app is back, and shows what has arrived meanwhile.
    mutating func continueReading() {
        guard pausedReading != nil else { return }
        pausedReading = nil
        for channel in reading.keys.sorted() { showOverlay(of: channel) }
        // A connection that hasn't caught up yet is told then.
        guard isAuthenticated, !watches.mustRenew else { return }
        for channel in reading.keys.sorted() { reportStart(of: channel) }
    }

    /// Marks what this device has of the channel as read, as if by the user: without a connection the server doesn't know what was read. What has
    /// arrived in the background isn't marked.
    mutating func stopReading(_ channel: ChannelID, id: Int64, at time: Timestamp, serverReadSeq: Seq, for token: CallToken) {
        let serverReadSeq = max(serverReadSeq, reading[channel] ?? 0)
        let seen = readHere(channel)
        guard endReading(channel) else { return emit(.reply(token, .success([]))) }
        guard ownPosition(in: channel) != nil, let seen else {
            showOverlay(of: channel)
            return emit(.reply(token, .success([])))
        }
        enqueue(.read(MarkRead(channel: channel, seq: seen)), id: id, at: time, serverReadSeq: serverReadSeq, for: token)
    }

    /// Ends the reading of a channel. The server is notified whatever ends it: otherwise it would continue to mark what arrives here.
    ///
    /// - Returns: Whether the channel was read.
    @discardableResult
    mutating func endReading(_ channel: ChannelID) -> Bool {
        guard reading.removeValue(forKey: channel) != nil else { return false }
        endRetrying(channel, with: .success([]))
        if isAuthenticated {
            readBefore[channel] = saved.channels[channel]?.cursor
            send(StopReading(channel: channel), for: .stopReading(channel))
        }
        return true
    }

    /// The server has ended the reading that it knew of, not one that is still to be reported or that it hasn't confirmed: the notice may have been sent
    /// before that start, and a stop would end what it begins.
    mutating func readingHasEnded(_ channel: ChannelID) {
        guard !isUnreadFirst(channel), !isStarting(channel) else { return }
        endReading(channel)
        showOverlay(of: channel)
    }

    /// Ends the reading with the membership.
    mutating func forgetReading(_ channel: ChannelID) {
        reading[channel] = nil
        endRetrying(channel, with: .failure(RoostError(.notMember, "The membership in \(channel) has ended.")))
    }

    mutating func readingBegan(_ channel: ChannelID, _ result: Result<[UInt8], RoostError>, for token: CallToken?) {
        // If reading has started again since, callers get the answer to that start.
        let hasEnded = reading[channel] == nil || readingRetries[channel]?.isBehindOutbox == true
        guard case .failure(let error) = result else {
            // The answer to a resume may be older than this one, and arrive later.
            if !hasEnded, phase == .online, let answer = try? ReplyResult<UnreadCount>.decode(result.get()) {
                noteReading(of: channel, upTo: answer.readSeq)
            }
            guard !hasEnded, pausedReading == nil else {
                // It may be the end or the pause that is reported again.
                if let token { emit(.reply(token, .success([]))) }
                return
            }
            return endRetrying(channel, with: .success([]), token)
        }
        // Reading that has stopped meanwhile doesn't start again.
        guard !hasEnded else {
            if let token { emit(.reply(token, error.isRetryable ? .success([]) : .failure(error))) }
            return
        }
        guard !retriesReading(channel, after: error, token) else { return }
        log(.notice, "\(channel) is no longer read: \(error.code.rawValue): \(error.message)")
        reading[channel] = nil
        showOverlay(of: channel)
        endRetrying(channel, with: .failure(error), token)
    }

    mutating func readingEnded(_ channel: ChannelID, _ result: Result<[UInt8], RoostError>) {
        // If the user reads again, the server has been notified of that. A pause must reach it like an end.
        guard reading[channel] == nil || pausedReading != nil else { return }
        // Everything until now was sent to a connection whose user reads, as far as the server knew.
        if let before = readBefore[channel] { readBefore[channel] = max(before, saved.channels[channel]?.cursor ?? 0) }
        if case .failure(let error) = result, retriesReading(channel, after: error, nil) { return }
        endRetrying(channel, with: .success([]))
    }

    /// Schedules another report to the server, unless its refusal is final.
    private mutating func retriesReading(_ channel: ChannelID, after error: RoostError, _ token: CallToken?) -> Bool {
        var retry = readingRetries[channel] ?? ReadingRetry()
        guard let pause = retry.refusals.pause(after: error, settings) else { return false }
        if let token { retry.waiting.append(token) }
        readingRetries[channel] = retry
        log(.notice, "Whether \(channel) is read can't be reported now: \(error.code.rawValue): \(error.message)")
        emit(.startTimer(.reading(channel), pause))
        return true
    }

    /// Reports to the server again whether a channel is read.
    mutating func reportReading(of channel: ChannelID) {
        guard isAuthenticated, readingRetries[channel] != nil else { return }
        if reading[channel] != nil, pausedReading == nil {
            reportStart(of: channel)
        } else {
            send(StopReading(channel: channel), for: .stopReading(channel))
        }
    }

    private mutating func endRetrying(_ channel: ChannelID, with result: Result<[UInt8], RoostError>, _ token: CallToken? = nil) {
        let retry = readingRetries.removeValue(forKey: channel)
        if retry != nil { emit(.cancelTimer(.reading(channel))) }
        for waiting in (retry?.waiting ?? []) + [token].compactMap(\.self) { emit(.reply(waiting, result)) }
    }

    /// Ends the retries with the connection. Reading starts again on the next one, and no caller waits for that.
    mutating func endRetryingReading() {
        for channel in readingRetries.keys.sorted() { endRetrying(channel, with: .success([])) }
    }

    /// Whether the server may have moved one of these read positions because the user reads on this device, or did a moment ago: it marks what it sent this
    /// connection a second or two later, and continues as long as the end couldn't be reported. Another device may have moved it all the same.
    func isReadHere(anyOf memberships: [Membership]) -> Bool {
        memberships.contains { own in
            let channel = own.channelId
            if reading[channel] != nil || readingRetries[channel] != nil { return true }
            return readBefore[channel].map { own.readSeq <= $0 } ?? false
        }
    }

    private mutating func noteReading(of channel: ChannelID, upTo seq: Seq) {
        if let known = reading[channel] { reading[channel] = max(known, seq) }
    }

    /// Learns from the user's own row how far a channel that the user reads is read. If that falls, another device has marked messages as unread, now
    /// or while this one was away: reading ends here, and the server has ended it too.
    mutating func readingWrites(for membership: Membership) -> [StoreWrite] {
        let channel = membership.channelId
        // The user's own mark, which preceded the reading.
        guard !isUnreadFirst(channel) else { return [] }
        guard let known = reading[channel], membership.readSeq < known else {
            noteReading(of: channel, upTo: membership.readSeq)
            return []
        }
        // A mark that preceded a start that isn't answered yet. The answer has the current position.
        guard !isStarting(channel) else { return [] }
        endReading(channel)
        // The server no longer marks what it sent before.
        readBefore[channel] = nil
        return overlayWrite(of: channel)
    }

    /// The writes that show channels being read as read up to their current end.
    mutating func readingWrites(in channels: [ChannelID]) -> [StoreWrite] {
        channels.filter { reading[$0] != nil }.flatMap { overlayWrite(of: $0) }
    }
}
