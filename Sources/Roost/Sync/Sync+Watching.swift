import Logging
import RoostAPI

/// A watch ends with its connection: the app's watches begin again once the next one has caught up.
extension Sync {
    mutating func renewWatches() {
        guard mustRenewWatches else { return }
        mustRenewWatches = false
        // The channel's state came with the resume. One message is the least that a watch answers with.
        for channel in watched.sorted() { send(WatchChannel(channel: channel, limit: 1), for: .watch(channel)) }
    }

    /// A temporary refusal is retried on the next connection; a final one ends the watch.
    mutating func watchFailed(_ channel: ChannelID, _ error: RoostError) {
        guard !error.isRetryable else { return }
        log(.notice, "\(channel) isn't watched any more: \(error.code.rawValue): \(error.message)")
        watched.remove(channel)
    }
}
