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
        for channel in reading.keys.sorted() { send(StartReading(channel: channel), for: .reading(channel, nil)) }
    }

    /// A temporary refusal is retried on the next connection; a final one ends the watch.
    mutating func watchFailed(_ channel: ChannelID, _ error: RoostError) {
        guard !error.isRetryable else { return }
        log(.notice, "\(channel) isn't watched any more: \(error.code.rawValue): \(error.message)")
        watched.remove(channel)
    }

    /// Watches a channel as long as a live object is there.
    mutating func hold(_ channel: ChannelID, by holder: Int64, for token: CallToken) {
        guard isAuthenticated else {
            return emit(.reply(token, .failure(RoostError(.notConnected, "There is no connection to the server."))))
        }
        watchHolders[holder] = channel
        send(WatchChannel(channel: channel, limit: 0), for: .app(token, .hold(holder)))
    }

    /// A live object is gone: the last one that watched a channel ends that, unless the app watches it too.
    mutating func release(_ holder: Int64) {
        guard let channel = watchHolders.removeValue(forKey: holder), !watched.contains(channel),
            !watchHolders.values.contains(channel)
        else {
            return
        }
        if isAuthenticated { send(UnwatchChannel(channel: channel), for: .unwatch) }
    }

    /// The channel isn't watched any more, by the app or by live objects.
    mutating func endWatch(of channel: ChannelID) {
        watched.remove(channel)
        watchHolders = watchHolders.filter { $0.value != channel }
    }

    /// The app doesn't want to watch a channel any more. One that it names `type:id` is known by its id alone.
    mutating func unwatch(_ channel: ChannelID) {
        endWatchCalls(of: channel)
        let isKnown = watched.contains(channel) || watchHolders.values.contains(channel)
        endWatch(of: isKnown ? channel : withoutType(channel))
    }

    /// An answer that is still to come must not have a channel watched again that the app doesn't want to watch any more.
    private mutating func endWatchCalls(of channel: ChannelID) {
        let names = [channel, withoutType(channel)]
        for case (let number, .app(let token, let effect)) in calls {
            switch effect {
            case .watch(let asked) where names.contains(asked) || names.contains(withoutType(asked)):
                calls[number] = .app(token, .watchEnded)
            case .watchAll(let ended): calls[number] = .app(token, .watchAll(except: ended.union(names)))
            default: break
            }
        }
    }

    private func withoutType(_ channel: ChannelID) -> ChannelID {
        guard let colon = channel.rawValue.firstIndex(of: ":") else { return channel }
        return ChannelID(String(channel.rawValue[channel.rawValue.index(after: colon)...]))
    }
}
