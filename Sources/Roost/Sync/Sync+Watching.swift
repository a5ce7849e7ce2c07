import Logging
import RoostAPI

/// A watch ends with its connection: the app's watches begin again once the next one has caught up.
extension Sync {
    /// What is read at this moment goes on too.
    mutating func renewWatches() {
        guard mustRenewWatches else { return }
        mustRenewWatches = false
        // The channel's state came with the resume.
        for channel in watched.sorted() { send(WatchChannel(channel: channel, limit: 0), for: .watch(channel)) }
        for channel in reading.sorted() { send(StartReading(channel: channel), for: .reading(channel, nil)) }
    }

    /// A temporary refusal is retried on the next connection; a final one ends the watch.
    mutating func watchFailed(_ channel: ChannelID, _ error: RoostError) {
        guard !error.isRetryable else { return }
        log(.notice, "\(channel) isn't watched any more: \(error.code.rawValue): \(error.message)")
        watched.remove(channel)
    }
}
