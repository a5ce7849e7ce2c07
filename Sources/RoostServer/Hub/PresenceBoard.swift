import RoostAPI
import RoostCore
import Synchronization

/// Connected users and watchers, over all shards: the rules' `Presence`.
final class PresenceBoard: Presence, Sendable {
    fileprivate struct State {
        /// Users with a connection, each with the number of their connections.
        var connections: [UserID: Int] = [:]
        /// The same for users who share that they are online.
        var shown: [UserID: Int] = [:]
        /// For each channel its connected members, each with the number of their connections.
        var online: [ChannelID: [UserID: Int]] = [:]
        /// The same for watchers.
        var watchers: [ChannelID: ArrivalOrder<UserID, Int>] = [:]
        /// For each channel the number of connections that watch it, including those of users who don't share that: they are notified all the same.
        var watches: [ChannelID: Int] = [:]
        /// For each channel the watchers who don't share that, each with the number of their connections.
        var hidden: [ChannelID: [UserID: Int]] = [:]
    }
    private let state = Mutex(State())
    private let listeners = Mutex(Listeners())
    private let shownLock = Mutex(())

    /// The board's listeners. They are set once, before the first socket, and copied out together: a closure by itself is wrapped at each use.
    private struct Listeners {
        var change: (@Sendable (ChannelID) -> Void)?
        var firstWatch: (@Sendable (ChannelID) -> Void)?
        var watching: (@Sendable (UserID, ChannelID) -> Void)?
        var online: (@Sendable (UserID, ChannelID) -> Void)?
        var answer: (@Sendable (Int, ChannelID) -> Void)?
        var connection: (@Sendable (UserID, Bool) -> Void)?
    }

    /// Reports every change of a channel, to be shared with other nodes.
    func onChange(_ report: @escaping @Sendable (ChannelID) -> Void) { listeners.withLock { $0.change = report } }

    /// Reports that the first connection here watches a channel, whether or not its user shares it.
    func onFirstWatch(_ report: @escaping @Sendable (ChannelID) -> Void) { listeners.withLock { $0.firstWatch = report } }

    /// Reports that a user began or stopped watching a channel here.
    func onWatching(_ report: @escaping @Sendable (UserID, ChannelID) -> Void) { listeners.withLock { $0.watching = report } }

    /// Reports that a member of a channel that is watched here came online on this node, or went offline.
    func onOnline(_ report: @escaping @Sendable (UserID, ChannelID) -> Void) { listeners.withLock { $0.online = report } }

    /// Reports how many members of a channel were online according to the answer to a new watcher.
    func onAnswer(_ report: @escaping @Sendable (_ online: Int, ChannelID) -> Void) { listeners.withLock { $0.answer = report } }

    /// Reports that the first connection here of a user who shares their presence has begun, or the last has ended.
    func onConnection(_ report: @escaping @Sendable (_ user: UserID, _ isConnected: Bool) -> Void) {
        listeners.withLock { $0.connection = report }
    }

    private func reportChange(in channels: some Sequence<ChannelID>) {
        guard let report = listeners.withLock({ $0 }).change else { return }
        for channel in channels { report(channel) }
    }

    func onlineMemberCount(of channel: ChannelID) -> Int { state.withLock { $0.online[channel]?.count ?? 0 } }

    func onlineMembers(of channel: ChannelID) -> Set<UserID> { state.withLock { Set($0.online[channel, default: [:]].keys) } }

    func isOnline(_ user: UserID, _ channel: ChannelID) -> Bool { state.withLock { $0.online[channel]?[user] != nil } }

    /// Whether any user's connection watches a channel here.
    func isWatched(_ channel: ChannelID) -> Bool { state.withLock { $0.watches[channel] != nil } }

    func watcherCount(of channel: ChannelID) -> Int { state.withLock { $0.watchers[channel]?.count ?? 0 } }

    /// The number of users who watch a channel here and don't share that.
    func hiddenWatcherCount(of channel: ChannelID) -> Int { state.withLock { $0.hidden[channel]?.count ?? 0 } }

    func isCrowded(_ channel: ChannelID, above count: Int) -> Bool {
        watcherCount(of: channel) + hiddenWatcherCount(of: channel) > count
    }

    func watchers(of channel: ChannelID, offset: Int, limit: Int, elsewhere: [UserID]? = nil) -> [UserID] {
        state.withLock { $0.watchers[channel]?.elements(offset: offset, limit: limit) ?? [] }
    }

    func isWatching(_ user: UserID, _ channel: ChannelID) -> Bool { state.withLock { $0.watchers[channel]?[user] != nil } }

    func isConnected(_ user: UserID) -> Bool { state.withLock { $0.connections[user] != nil } }

    func connected(_ user: UserID) { _ = state.withLock { $0.count(user, in: \.connections, by: 1) } }
    func disconnected(_ user: UserID) { _ = state.withLock { $0.count(user, in: \.connections, by: -1) } }

    /// Notes that a connection of a user who shares that they are online has begun, or that the user now shares it.
    func appeared(_ user: UserID) { countShown(user, by: 1) }
    func disappeared(_ user: UserID) { countShown(user, by: -1) }

    private func countShown(_ user: UserID, by step: Int) {
        // Counted and reported under one lock: if a user leaves on one event loop and returns on another, the listener could otherwise hear
        // of it in the wrong order.
        shownLock.withLock { _ in
            let (before, count) = state.withLock { $0.count(user, in: \.shown, by: step) }
            guard (before > 0) != (count > 0), let report = listeners.withLock({ $0 }).connection else { return }
            report(user, count > 0)
        }
    }

    func cameOnline(_ user: UserID, in channels: some Sequence<ChannelID>) {
        reportOnline(user, channels, state.withLock { $0.countOnline(user, in: channels, by: 1) })
    }

    func wentOffline(_ user: UserID, in channels: some Sequence<ChannelID>) {
        reportOnline(user, channels, state.withLock { $0.countOnline(user, in: channels, by: -1) })
    }

    /// Notes that a connection now watches a channel.
    ///
    /// - Parameter isShown: Whether its user shares that.
    func startedWatching(_ user: UserID, _ channel: ChannelID, isShown: Bool = true) {
        let (isFirst, began) = state.withLock { state in
            let isFirst = state.countWatches(of: channel, by: 1) == 1
            if !isShown { state.countHidden(user, in: channel, by: 1) }
            return (isFirst, isShown ? state.countWatching(user, in: [channel], by: 1) : [])
        }
        if isFirst, let report = listeners.withLock({ $0 }).firstWatch { report(channel) }
        reportWatching(user, began)
    }

    func stoppedWatching(_ user: UserID, _ channels: some Sequence<ChannelID>, isShown: Bool = true) {
        let ended = state.withLock { state in
            for channel in channels {
                state.countWatches(of: channel, by: -1)
                if !isShown { state.countHidden(user, in: channel, by: -1) }
            }
            return isShown ? state.countWatching(user, in: channels, by: -1) : []
        }
        reportWatching(user, ended)
    }

    /// Notes how many of a channel's members were online according to the answer to a new watcher.
    func answeredOnline(_ count: Int, in channel: ChannelID) { listeners.withLock { $0 }.answer?(count, channel) }

    private func reportOnline(_ user: UserID, _ channels: some Sequence<ChannelID>, _ watched: [ChannelID]) {
        reportChange(in: channels)
        guard !watched.isEmpty, let report = listeners.withLock({ $0 }).online else { return }
        for channel in watched { report(user, channel) }
    }

    private func reportWatching(_ user: UserID, _ channels: [ChannelID]) {
        guard !channels.isEmpty else { return }
        reportChange(in: channels)
        guard let report = listeners.withLock({ $0 }).watching else { return }
        for channel in channels { report(user, channel) }
    }
}

extension PresenceBoard.State {
    /// Counts a user's connections.
    ///
    /// - Returns: Their number before and after.
    fileprivate mutating func count(
        _ user: UserID, in counts: WritableKeyPath<Self, [UserID: Int]>, by step: Int
    ) -> (before: Int, after: Int) {
        let before = self[keyPath: counts][user] ?? 0
        self[keyPath: counts][user] = before + step > 0 ? before + step : nil
        return (before, before + step)
    }

    /// Counts connections of a user in channels that they are a member of.
    ///
    /// - Returns: The watched channels in which the user thereby came online or went offline.
    fileprivate mutating func countOnline(_ user: UserID, in channels: some Sequence<ChannelID>, by step: Int) -> [ChannelID] {
        channels.filter { channel in
            let before = online[channel]?[user] ?? 0
            let count = before + step
            if count > 0 {
                online[channel, default: [:]][user] = count
            } else {
                online[channel]?[user] = nil
                if online[channel]?.isEmpty == true { online[channel] = nil }
            }
            return (before > 0) != (count > 0) && watches[channel] != nil
        }
    }

    /// Counts connections that watch a channel.
    ///
    /// - Returns: Their number.
    @discardableResult
    fileprivate mutating func countWatches(of channel: ChannelID, by step: Int) -> Int {
        let count = max(0, (watches[channel] ?? 0) + step)
        watches[channel] = count > 0 ? count : nil
        return count
    }

    /// Counts connections that watch a channel, of a user who doesn't share it.
    fileprivate mutating func countHidden(_ user: UserID, in channel: ChannelID, by step: Int) {
        let count = (hidden[channel]?[user] ?? 0) + step
        hidden[channel, default: [:]][user] = count > 0 ? count : nil
        if hidden[channel]?.isEmpty == true { hidden[channel] = nil }
    }

    /// Counts connections that watch channels, of a user who shares it.
    ///
    /// - Returns: The channels that the user began or stopped watching.
    fileprivate mutating func countWatching(_ user: UserID, in channels: some Sequence<ChannelID>, by step: Int) -> [ChannelID] {
        channels.filter { channel in
            let before = watchers[channel]?[user] ?? 0
            let count = before + step
            watchers[channel, default: ArrivalOrder()][user] = count > 0 ? count : nil
            if watchers[channel]?.isEmpty == true { watchers[channel] = nil }
            return (before > 0) != (count > 0)
        }
    }
}
