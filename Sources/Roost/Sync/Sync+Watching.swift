import Logging
import RoostAPI

/// A watch ends with its connection: the app's watches begin again once the next one has caught up. A server that can't take one now is asked
/// again a little later.
extension Sync {
    /// What is read at this moment goes on too.
    mutating func renewWatches() {
        guard mustRenewWatches else { return }
        mustRenewWatches = false
        for channel in watched.sorted() { renewWatch(of: channel) }
        for channel in reading.keys.sorted() { tellStart(of: channel) }
    }

    mutating func watchRenewed(_ channel: ChannelID, _ bytes: [UInt8]) {
        // One that begins with the connection does so before users are asked for.
        if watchRetries.removeValue(forKey: channel) != nil { recheckUsers() }
        takeRenewal(of: channel, bytes)
        emit(.watching(channel))
    }

    /// A refusal that doesn't pass ends the watch.
    mutating func watchFailed(_ channel: ChannelID, _ error: RoostError) {
        guard watched.contains(channel) || isVisited(channel) else {
            watchRetries[channel] = nil
            return
        }
        if let pause = watchRetries[channel, default: PassingRefusals()].pause(after: error, settings) {
            log(.notice, "\(channel) can't be watched now: \(error.code.rawValue): \(error.message)")
            return emit(.startTimer(.watch(channel), pause))
        }
        log(.notice, "\(channel) isn't watched any more: \(error.code.rawValue): \(error.message)")
        watchRetries[channel] = nil
        watched.remove(channel)
        endVisit(of: channel)
    }

    /// Asks once more for a watch, if it is wanted still.
    mutating func watchAgain(_ channel: ChannelID) {
        guard isAuthenticated, watchRetries[channel] != nil else { return }
        guard watched.contains(channel) || isVisited(channel) else {
            watchRetries[channel] = nil
            return
        }
        renewWatch(of: channel)
    }

    /// The connection is gone, and the next one renews all watches.
    mutating func endRetryingWatches() {
        for channel in watchRetries.keys.sorted() { emit(.cancelTimer(.watch(channel))) }
        watchRetries = [:]
        endingWatches = []
        owedVisits = []
        droppedSeqs = [:]
        plainRenewals = []
        mayEndVisits = true
    }

    /// Watches a channel as long as a live object is there.
    mutating func hold(_ channel: ChannelID, by holder: Int64, for token: CallToken) {
        guard isAuthenticated else {
            return emit(.reply(token, .failure(RoostError(.notConnected, "There is no connection to the server."))))
        }
        watchHolders[holder] = channel
        // Of a channel of others the answer is all that there is: its newest message is shown.
        let isOwn = ownPosition(in: channel) != nil
        let operation = WatchChannel(channel: channel, limit: isOwn ? 0 : 1, watchersLimit: isOwn ? nil : 0)
        send(operation, for: .app(token, .hold(holder), mayChange: false))
    }

    /// A live object is gone: the last one that watched a channel ends that, unless the app watches it too, or has just asked to.
    mutating func release(_ holder: Int64) {
        guard let channel = watchHolders.removeValue(forKey: holder) else { return }
        endingWatches.insert(channel)
        endUnwantedWatches()
    }

    /// Tells the server of watches that nothing here wants any more. Looked at again when a call ends that would have watched one.
    mutating func endUnwantedWatches() {
        mayEndVisits = true
        for channel in endingWatches.sorted() where !wantsWatch(of: channel) {
            endingWatches.remove(channel)
            if isAuthenticated { send(UnwatchChannel(channel: channel), for: .unwatch) }
        }
    }

    /// Nobody waits for the answer to a call any more: the user isn't to watch anything because of it. The server takes the calls of a connection in their order, so
    /// a channel that the call names can be unwatched at once, unless something else here watches it. Of the others only the late answer tells.
    ///
    /// - Parameter number: The call's, which isn't among the calls any more.
    mutating func giveUpWatching(_ number: Int64, _ purpose: Purpose) {
        guard case .app(_, let effect, _) = purpose else { return }
        switch effect {
        case .hold(let holder):
            if let channel = watchHolders.removeValue(forKey: holder) { endingWatches.insert(channel) }
        case .watch(let channel):
            endingWatches.insert(withoutType(channel))
            calls[number] = .watchGivenUp(effect)
        case .watchAll: calls[number] = .watchGivenUp(effect)
        default: break
        }
    }

    /// The late answer to a call that was given up says which channels it has watched.
    mutating func endWatches(thatBegan effect: CacheEffect, with bytes: [UInt8]) {
        switch effect {
        case .watchAll(let ended):
            let views = (try? ReplyResult<Page<ChannelView>>.decode(bytes))?.items ?? []
            endingWatches.formUnion(views.filter { $0.isWatched(except: ended) }.map(\.channel.channelId))
        case .watch(let asked):
            // A call that creates the channel may find another one than it names, which there is for the same members.
            let id = (try? ReplyResult<WatchedChannel>.decode(bytes))?.channel.channelId
            if let id, id != withoutType(asked) { endingWatches.insert(id) }
        default: return
        }
        endUnwantedWatches()
    }

    /// Whether the app or a live object watches a channel, or the app has asked to.
    func wantsWatch(of channel: ChannelID) -> Bool {
        watched.contains(channel) || watchHolders.values.contains(channel) || isAskedToWatch(channel)
    }

    /// Whether a call of the app's is under way that may have the channel watched, or its answer waits to be taken in.
    private func isAskedToWatch(_ channel: ChannelID) -> Bool {
        let isAsked = calls.values.contains { purpose in
            guard case .app(_, let effect, _) = purpose else { return false }
            return switch effect {
            case .watch(let asked): asked == channel || withoutType(asked) == channel
            case .watchAll(let ended): !ended.contains(channel)
            default: false
            }
        }
        return isAsked || earlyAnswers.values.contains { $0.watched.contains(channel) }
    }

    /// The channel isn't watched any more, by the app or by live objects.
    mutating func endWatch(of channel: ChannelID) {
        watched.remove(channel)
        endingWatches.remove(channel)
        watchHolders = watchHolders.filter { $0.value != channel }
        mayEndVisits = true
    }

    /// The app doesn't want to watch a channel any more. One that it names `type:id` is known by its id alone.
    ///
    /// - Returns: Whether live objects watch it still. Then the server isn't to be told.
    mutating func unwatch(_ channel: ChannelID) -> Bool {
        endWatchCalls(of: channel)
        let id = wantsWatch(of: channel) ? channel : withoutType(channel)
        watched.remove(id)
        mayEndVisits = true
        guard watchHolders.values.contains(id) else {
            endingWatches.remove(id)
            return false
        }
        endingWatches.insert(id)
        return true
    }

    /// An answer that is still to come must not have a channel watched again that the app doesn't want to watch any more.
    private mutating func endWatchCalls(of channel: ChannelID) {
        let names = [channel, withoutType(channel)]
        for case (let number, .app(let token, let effect, let mayChange)) in calls {
            switch effect {
            case .watch(let asked) where names.contains(asked) || names.contains(withoutType(asked)):
                calls[number] = .app(token, .watchEnded, mayChange: mayChange)
            case .watchAll(let ended): calls[number] = .app(token, .watchAll(except: ended.union(names)), mayChange: mayChange)
            default: break
            }
        }
        for token in earlyAnswers.keys { earlyAnswers[token]?.endWatches(of: names) }
    }

    /// The id that a name means if it is `type:id` (ST-03).
    func withoutType(_ channel: ChannelID) -> ChannelID {
        guard let colon = channel.rawValue.firstIndex(of: ":") else { return channel }
        return ChannelID(String(channel.rawValue[channel.rawValue.index(after: colon)...]))
    }
}
