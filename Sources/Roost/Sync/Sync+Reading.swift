import Logging
import RoostAPI

/// Channels that the user reads at this moment (AM-45): they are shown as read, as far as this device has them. The server moves the position
/// by itself, as long as this connection lasts; the next one begins again once it has caught up.
///
/// A server that can't take it now is told again a little later, that a channel is read as well as that it isn't any more. Whoever began to read
/// waits for what comes of it. What the user had marked as unread before is told first, since that ends reading.
extension Sync {
    /// What the server couldn't be told of a channel.
    struct ReadingRetry: Hashable, Sendable {
        var refusals = PassingRefusals()
        /// Whether it is told when the outbox has nothing more that comes first.
        var isBehindOutbox = false
        /// The callers who wait for the beginning.
        var waiting: [CallToken] = []
    }

    mutating func startReading(_ channel: ChannelID, for token: CallToken) {
        reading[channel] = reading[channel] ?? 0
        showOverlay(of: channel)
        guard isAuthenticated else { return emit(.reply(token, .success([]))) }
        tellStart(of: channel, for: token)
    }

    /// Tells the server that a channel is read, or has that wait for what comes first.
    mutating func tellStart(of channel: ChannelID, for token: CallToken? = nil) {
        guard isUnreadFirst(channel) else { return send(StartReading(channel: channel), for: .startReading(channel, token)) }
        var retry = readingRetries[channel] ?? ReadingRetry()
        retry.isBehindOutbox = true
        if let token { retry.waiting.append(token) }
        readingRetries[channel] = retry
    }

    /// Tells the server that a channel is read, if that has waited for the outbox and needn't any more.
    mutating func tellStartBehindOutbox(of channel: ChannelID) {
        guard isAuthenticated, readingRetries[channel]?.isBehindOutbox == true, !isUnreadFirst(channel) else { return }
        readingRetries[channel]?.isBehindOutbox = false
        tellStart(of: channel)
    }

    /// Whether the user marked messages of a channel as unread before they began to read it, and the server doesn't know. One that is refused until some time
    /// holds nobody up.
    private func isUnreadFirst(_ channel: ChannelID) -> Bool {
        guard reading[channel] != nil else { return false }
        return !pending(in: channel) { if case .unread = $0.operation { $0.failure == nil } else { false } }.isEmpty
    }

    /// What this device has of the channel is marked as read, as by the user: without a connection the server knows of nothing that was read.
    mutating func stopReading(_ channel: ChannelID, id: Int64, at time: Timestamp, told: Seq, for token: CallToken) {
        let told = max(told, reading[channel] ?? 0)
        guard endReading(channel) else { return emit(.reply(token, .success([]))) }
        guard ownPosition(in: channel) != nil else {
            showOverlay(of: channel)
            return emit(.reply(token, .success([])))
        }
        enqueue(.read(MarkRead(channel: channel)), id: id, at: time, told: told, for: token)
    }

    /// Reads a channel no more. The server is told whatever ends it, or it would go on marking what arrives here.
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

    /// The server has ended the reading that it knew of: not one that it is still to be told of.
    mutating func readingHasEnded(_ channel: ChannelID) {
        guard !isUnreadFirst(channel) else { return }
        endReading(channel)
        showOverlay(of: channel)
    }

    /// The membership is over, and the reading with it.
    mutating func forgetReading(_ channel: ChannelID) {
        reading[channel] = nil
        endRetrying(channel, with: .failure(RoostError(.notMember, "The membership in \(channel) has ended.")))
    }

    mutating func readingBegan(_ channel: ChannelID, _ result: Result<[UInt8], RoostError>, for token: CallToken?) {
        // Whoever has begun again since is told of that beginning.
        let hasEnded = reading[channel] == nil || readingRetries[channel]?.isBehindOutbox == true
        guard case .failure(let error) = result else {
            guard !hasEnded else {
                // It may be the end that is told again.
                if let token { emit(.reply(token, .success([]))) }
                return
            }
            // The answer to a resume may be older than this one, and come later.
            if phase == .online, let answer = try? ReplyResult<UnreadCount>.decode(result.get()) {
                noteReading(of: channel, upTo: answer.readSeq)
            }
            return endRetrying(channel, with: .success([]), token)
        }
        // Whoever has stopped meanwhile doesn't begin again.
        guard !hasEnded else {
            if let token { emit(.reply(token, error.isRetryable ? .success([]) : .failure(error))) }
            return
        }
        guard !retriesReading(channel, after: error, token) else { return }
        log(.notice, "\(channel) isn't read any more: \(error.code.rawValue): \(error.message)")
        reading[channel] = nil
        showOverlay(of: channel)
        endRetrying(channel, with: .failure(error), token)
    }

    mutating func readingEnded(_ channel: ChannelID, _ result: Result<[UInt8], RoostError>) {
        // Who reads again has told the server so.
        guard reading[channel] == nil else { return }
        // What came until now was given to a connection whose user reads, for all that the server knew.
        if let before = readBefore[channel] { readBefore[channel] = max(before, saved.channels[channel]?.cursor ?? 0) }
        if case .failure(let error) = result, retriesReading(channel, after: error, nil) { return }
        endRetrying(channel, with: .success([]))
    }

    /// Has the server told again in a while, unless it refuses for good.
    private mutating func retriesReading(_ channel: ChannelID, after error: RoostError, _ token: CallToken?) -> Bool {
        var retry = readingRetries[channel] ?? ReadingRetry()
        guard let pause = retry.refusals.pause(after: error, settings) else { return false }
        if let token { retry.waiting.append(token) }
        readingRetries[channel] = retry
        log(.notice, "The server can't be told now whether \(channel) is read: \(error.code.rawValue): \(error.message)")
        emit(.startTimer(.reading(channel), pause))
        return true
    }

    /// Tells the server once more whether a channel is read.
    mutating func tellReading(of channel: ChannelID) {
        guard isAuthenticated, readingRetries[channel] != nil else { return }
        if reading[channel] != nil {
            tellStart(of: channel)
        } else {
            send(StopReading(channel: channel), for: .stopReading(channel))
        }
    }

    private mutating func endRetrying(_ channel: ChannelID, with result: Result<[UInt8], RoostError>, _ token: CallToken? = nil) {
        let retry = readingRetries.removeValue(forKey: channel)
        if retry != nil { emit(.cancelTimer(.reading(channel))) }
        for waiting in (retry?.waiting ?? []) + [token].compactMap(\.self) { emit(.reply(waiting, result)) }
    }

    /// The connection is gone. What is read begins again with the next one, and nobody waits for that.
    mutating func endRetryingReading() {
        for channel in readingRetries.keys.sorted() { endRetrying(channel, with: .success([])) }
    }

    /// Whether the server may have moved one of these read positions because the user reads on this device, or did a moment ago: it marks a second or two later
    /// what it gave this connection, and goes on as long as it couldn't be told of the end. Another device may have moved it all the same.
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

    /// Learns from the user's own row how far a channel is read that the user reads. Where that falls, another device has marked messages as unread,
    /// now or while this one was away: nobody goes on reading, and the server has ended it too.
    mutating func readingWrites(for membership: Membership) -> [StoreWrite] {
        let channel = membership.channelId
        // The user's own mark, which came before the reading.
        guard !isUnreadFirst(channel) else { return [] }
        guard let known = reading[channel], membership.readSeq < known else {
            noteReading(of: channel, upTo: membership.readSeq)
            return []
        }
        endReading(channel)
        // The server marks nothing more of what it gave before.
        readBefore[channel] = nil
        return overlayWrite(of: channel)
    }

    /// What shows channels that are read as read up to where they are now.
    mutating func readingWrites(in channels: [ChannelID]) -> [StoreWrite] {
        channels.filter { reading[$0] != nil }.flatMap { overlayWrite(of: $0) }
    }
}
