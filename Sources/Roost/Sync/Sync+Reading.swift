import Logging
import RoostAPI

/// Channels that the user reads at this moment (AM-45): they are shown as read, as far as this device has them. The server moves the position
/// by itself, as long as this connection lasts; the next one begins again once it has caught up.
extension Sync {
    mutating func startReading(_ channel: ChannelID, for token: CallToken) {
        reading[channel] = reading[channel] ?? 0
        showOverlay(of: channel)
        guard isAuthenticated else { return emit(.reply(token, .success([]))) }
        send(StartReading(channel: channel), for: .reading(channel, token))
    }

    /// What this device has of the channel is marked as read, as by the user: without a connection the server knows of nothing that was read.
    mutating func stopReading(_ channel: ChannelID, id: Int64, at time: Timestamp, for token: CallToken) {
        guard endReading(channel) else { return emit(.reply(token, .success([]))) }
        guard saved.channels[channel] != nil else {
            showOverlay(of: channel)
            return emit(.reply(token, .success([])))
        }
        enqueue(.read(MarkRead(channel: channel)), id: id, at: time, for: token)
    }

    /// Reads a channel no more. The server is told whatever ends it, or it would go on marking what arrives here.
    ///
    /// - Returns: Whether the channel was read.
    @discardableResult
    mutating func endReading(_ channel: ChannelID) -> Bool {
        guard reading.removeValue(forKey: channel) != nil else { return false }
        if isAuthenticated { send(StopReading(channel: channel), for: .reading(channel, nil)) }
        return true
    }

    /// A temporary refusal is retried on the next connection; a final one ends the reading.
    mutating func readingAnswered(_ channel: ChannelID, _ result: Result<[UInt8], RoostError>, for token: CallToken?) {
        guard case .failure(let error) = result, !error.isRetryable else {
            if let answer = try? ReplyResult<UnreadCount>.decode(result.get()) { noteReading(of: channel, upTo: answer.readSeq) }
            if let token { emit(.reply(token, .success([]))) }
            return
        }
        log(.notice, "\(channel) isn't read any more: \(error.code.rawValue): \(error.message)")
        reading[channel] = nil
        showOverlay(of: channel)
        if let token { emit(.reply(token, .failure(error))) }
    }

    private mutating func noteReading(of channel: ChannelID, upTo seq: Seq) {
        if let known = reading[channel] { reading[channel] = max(known, seq) }
    }

    /// Learns from the user's own row how far a channel is read that the user reads. Where that falls, another device has marked messages as unread,
    /// now or while this one was away: nobody goes on reading, and the server has ended it too.
    mutating func readingWrites(for membership: Membership) -> [StoreWrite] {
        let channel = membership.channelId
        guard let known = reading[channel], membership.readSeq < known else {
            noteReading(of: channel, upTo: membership.readSeq)
            return []
        }
        endReading(channel)
        return overlayWrite(of: channel)
    }

    /// What shows channels that are read as read up to where they are now.
    mutating func readingWrites(in channels: [ChannelID]) -> [StoreWrite] {
        channels.filter { reading[$0] != nil }.flatMap { overlayWrite(of: $0) }
    }
}
