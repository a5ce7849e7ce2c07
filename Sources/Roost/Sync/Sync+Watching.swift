import Logging
import RoostAPI

/// A watch ends with its connection: the app's watches are renewed once the next one has caught up. A server that can't begin one now is asked again later.
extension Sync {
    /// What is watched beside the channels that the app itself watches, and the visits that begin with watches.
    struct Watches: Hashable, Sendable {
        /// What live objects watch while they exist, by their numbers. They ask again with each connection.
        var holders: [Int64: ChannelID] = [:]
        /// Channels that something here no longer watches, while something else did or had asked to: once nothing does, the server is notified.
        var ending: Set<ChannelID> = []
        /// Whether this connection watches none of the app's channels yet.
        var mustRenew = false
        /// Watches that the server couldn't begin yet, with its refusals.
        var retries: [ChannelID: TransientRefusals] = [:]
        /// The visited channels (``Position/isVisit``).
        var visits: [ChannelID: Visit] = [:]
        /// Visits that are no longer followed but still wanted, each with a seq after which the app may not have been notified of everything.
        var forgottenVisits: [ChannelID: Seq] = [:]
        /// The visits that must start over because events are missing.
        var visitsToRestart: Set<ChannelID> = []
        /// The newest events that weren't applied in watched channels that aren't the user's own, since the last renewal of the watch: an earlier answer
        /// lacks them.
        var droppedSeqs: [ChannelID: Seq] = [:]
        /// The channels whose watch is being renewed without messages, because an answer with messages couldn't be read.
        var plainRenewals: Set<ChannelID> = []
        /// Whether something that watched a channel may have ended: only then are unwanted visits looked for.
        var mayEndVisits = false
    }

    /// Renews the app's watches, and starts reading again.
    mutating func renewWatches() {
        guard watches.mustRenew else { return }
        watches.mustRenew = false
        for channel in watched.sorted() { renewWatch(of: channel) }
        for channel in reading.keys.sorted() { reportStart(of: channel) }
    }

    mutating func watchRenewed(_ channel: ChannelID, _ bytes: [UInt8]) {
        // A watch that begins with the connection does so before users are requested.
        if watches.retries.removeValue(forKey: channel) != nil { recheckUsers() }
        takeRenewal(of: channel, bytes)
        emit(.watching(channel))
    }

    /// A permanent refusal ends the watch.
    mutating func watchFailed(_ channel: ChannelID, _ error: RoostError) {
        guard watched.contains(channel) || isVisited(channel) else {
            watches.retries[channel] = nil
            return
        }
        if let pause = watches.retries[channel, default: TransientRefusals()].pause(after: error, settings) {
            log(.notice, "\(channel) can't be watched now: \(error.code.rawValue): \(error.message)")
            return emit(.startTimer(.watch(channel), pause))
        }
        log(.notice, "\(channel) is no longer watched: \(error.code.rawValue): \(error.message)")
        watches.retries[channel] = nil
        watched.remove(channel)
        endVisit(of: channel)
    }

    /// Requests a watch again, if it is still wanted.
    mutating func watchAgain(_ channel: ChannelID) {
        guard isAuthenticated, watches.retries[channel] != nil else { return }
        guard watched.contains(channel) || isVisited(channel) else {
            watches.retries[channel] = nil
            return
        }
        renewWatch(of: channel)
    }

    /// The connection has ended, and the next one renews all watches.
    mutating func endRetryingWatches() {
        for channel in watches.retries.keys.sorted() { emit(.cancelTimer(.watch(channel))) }
        watches.retries = [:]
        watches.ending = []
        watches.visitsToRestart = []
        watches.droppedSeqs = [:]
        watches.plainRenewals = []
        watches.mayEndVisits = true
    }

    /// Watches a channel while a live object exists.
    mutating func hold(_ channel: ChannelID, by holder: Int64, for token: CallToken) {
        guard isAuthenticated else {
            return emit(.reply(token, .failure(RoostError(.notConnected, "There is no connection to the server."))))
        }
        watches.holders[holder] = channel
        // If the user isn't a member, the answer is all there is: its newest message is shown.
        let isOwn = ownPosition(in: channel) != nil
        let operation = WatchChannel(channel: channel, limit: isOwn ? 0 : 1, watchersLimit: isOwn ? nil : 0)
        send(operation, for: .app(token, .hold(holder), mayChange: false))
    }

    /// A live object is gone: the last one that watched a channel ends the watch, unless the app watches the channel too, or has just asked to.
    mutating func release(_ holder: Int64) {
        guard let channel = watches.holders.removeValue(forKey: holder) else { return }
        watches.ending.insert(channel)
        endUnwantedWatches()
    }

    /// Ends the watches at the server that nothing here wants any longer. Called again when a call ends that would have watched a channel.
    mutating func endUnwantedWatches() {
        watches.mayEndVisits = true
        for channel in watches.ending.sorted() where !wantsWatch(of: channel) {
            watches.ending.remove(channel)
            if isAuthenticated { send(UnwatchChannel(channel: channel), for: .unwatch) }
        }
    }

    /// Handles a call whose answer is no longer awaited: the user must not watch anything because of it. The server handles the calls of a connection in order,
    /// so a channel that the call names can be unwatched at once, unless something else here watches it. The others are known only from the late answer.
    ///
    /// - Parameter number: The number of the call, which is no longer among the calls.
    mutating func giveUpWatching(_ number: Int64, _ purpose: Purpose) {
        guard case .app(_, let effect, _) = purpose else { return }
        switch effect {
        case .hold(let holder):
            if let channel = watches.holders.removeValue(forKey: holder) { watches.ending.insert(channel) }
        case .watch(let channel):
            watches.ending.insert(withoutType(channel))
            calls[number] = .watchGivenUp(effect)
        case .watchAll: calls[number] = .watchGivenUp(effect)
        default: break
        }
    }

    /// Ends the watches that the late answer to an abandoned call names.
    mutating func endWatches(thatBegan effect: CacheEffect, with bytes: [UInt8]) {
        switch effect {
        case .watchAll(let ended):
            let views = (try? ReplyResult<Page<ChannelView>>.decode(bytes))?.items ?? []
            watches.ending.formUnion(views.filter { $0.isWatched(except: ended) }.map(\.channel.channelId))
        case .watch(let asked):
            // A call that creates the channel may return an existing one of the same members instead of the one that it names.
            let id = (try? ReplyResult<WatchedChannel>.decode(bytes))?.channel.channelId
            if let id, id != withoutType(asked) { watches.ending.insert(id) }
        default: return
        }
        endUnwantedWatches()
    }

    /// Whether the app or a live object watches a channel, or the app has asked to.
    func wantsWatch(of channel: ChannelID) -> Bool {
        watched.contains(channel) || watches.holders.values.contains(channel) || isAskedToWatch(channel)
    }

    /// Whether a call of the app that may watch the channel is in flight, or its answer waits to be handled.
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

    /// Ends the watches of a channel, by the app and by live objects.
    mutating func endWatch(of channel: ChannelID) {
        watched.remove(channel)
        watches.ending.remove(channel)
        watches.holders = watches.holders.filter { $0.value != channel }
        watches.mayEndVisits = true
    }

    /// Ends the app's watch of a channel. A channel named `type:id` is known by its id alone.
    ///
    /// - Returns: Whether live objects still watch it. The server must not be notified then.
    mutating func unwatch(_ channel: ChannelID) -> Bool {
        endWatchCalls(of: channel)
        let id = wantsWatch(of: channel) ? channel : withoutType(channel)
        watched.remove(id)
        watches.mayEndVisits = true
        guard watches.holders.values.contains(id) else {
            watches.ending.remove(id)
            return false
        }
        watches.ending.insert(id)
        return true
    }

    /// Makes sure that a pending answer doesn't watch a channel again that the app no longer wants to watch.
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
