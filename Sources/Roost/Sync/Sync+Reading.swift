import Logging
import RoostAPI

/// Channels that the user reads at this moment (AM-45): they are shown as read, as far as this device has them. The server moves the position
/// by itself, as long as this connection lasts; the next one begins again once it has caught up.
extension Sync {
    mutating func startReading(_ channel: ChannelID, for token: CallToken) {
        reading.insert(channel)
        showOverlay(of: channel)
        guard isAuthenticated else { return emit(.reply(token, .success([]))) }
        send(StartReading(channel: channel), for: .reading(channel, token))
    }

    /// What this device has of the channel is marked as read, as by the user: without a connection the server knows of nothing that was read.
    mutating func stopReading(_ channel: ChannelID, id: Int64, at time: Timestamp, for token: CallToken) {
        guard reading.remove(channel) != nil else { return emit(.reply(token, .success([]))) }
        if isAuthenticated { send(StopReading(channel: channel), for: .reading(channel, nil)) }
        guard saved.channels[channel] != nil else {
            showOverlay(of: channel)
            return emit(.reply(token, .success([])))
        }
        enqueue(.read(MarkRead(channel: channel)), id: id, at: time, for: token)
    }

    /// A temporary refusal is retried on the next connection; a final one ends the reading.
    mutating func readingAnswered(_ channel: ChannelID, _ result: Result<[UInt8], RoostError>, for token: CallToken?) {
        guard case .failure(let error) = result, !error.isRetryable else {
            if let token { emit(.reply(token, .success([]))) }
            return
        }
        log(.notice, "\(channel) isn't read any more: \(error.code.rawValue): \(error.message)")
        reading.remove(channel)
        showOverlay(of: channel)
        if let token { emit(.reply(token, .failure(error))) }
    }

    /// Ends the reading of channels of which another device has marked messages as unread: the server has ended it too.
    mutating func endReading(_ memberships: [Membership]) -> [StoreWrite] {
        memberships.filter { reading.remove($0.channelId) != nil }.flatMap { overlayWrite(of: $0.channelId) }
    }

    /// What shows channels that are read as read up to where they are now.
    mutating func readingWrites(in channels: [ChannelID]) -> [StoreWrite] {
        channels.filter(reading.contains).flatMap { overlayWrite(of: $0) }
    }
}
