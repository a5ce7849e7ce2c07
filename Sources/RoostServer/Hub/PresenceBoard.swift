import RoostAPI
import RoostCore
import Synchronization

/// Connected users and watchers, over all shards: the rules' `Presence`.
final class PresenceBoard: Presence, Sendable {
    fileprivate struct State {
        /// Users with a connection, each with the number of their connections.
        var connections: [UserID: Int] = [:]
        /// The same of those who share that they are online.
        var shown: [UserID: Int] = [:]
        /// For each channel its connected members, each with the number of their connections.
        var online: [ChannelID: [UserID: Int]] = [:]
        /// The same of those who watch.
        var watchers: [ChannelID: ArrivalOrder<UserID, Int>] = [:]
    }
    private let state = Mutex(State())
    /// In a structure, since a closure stored directly in a mutex is wrapped again with each use.
    private struct Listener {
        var tell: @Sendable (ChannelID) -> Void
    }
    private struct WatchListener {
        var tell: @Sendable (UserID, ChannelID) -> Void
    }
    private struct ConnectionListener {
        var tell: @Sendable (UserID, Bool) -> Void
    }
    private let listener = Mutex<Listener?>(nil)
    private let watchListener = Mutex<WatchListener?>(nil)
    private let onlineListener = Mutex<WatchListener?>(nil)
    private let connectionListener = Mutex<ConnectionListener?>(nil)

    /// Reports every change of a channel, to be shared with other nodes. Set once, before the first socket.
    func onChange(_ tell: @escaping @Sendable (ChannelID) -> Void) { listener.withLock { $0 = Listener(tell: tell) } }

    /// Reports that a user began to watch a channel here, or doesn't any more. Set once, before the first socket.
    func onWatching(_ tell: @escaping @Sendable (UserID, ChannelID) -> Void) {
        watchListener.withLock { $0 = WatchListener(tell: tell) }
    }

    /// Reports that a member of a channel that is watched here came online on this node, or went offline. Set once, before the first socket.
    func onOnline(_ tell: @escaping @Sendable (UserID, ChannelID) -> Void) {
        onlineListener.withLock { $0 = WatchListener(tell: tell) }
    }

    /// Reports that the first connection of a user who shares it has begun here, or the last has ended. Set once, before the first socket.
    func onConnection(_ tell: @escaping @Sendable (_ user: UserID, _ isConnected: Bool) -> Void) {
        connectionListener.withLock { $0 = ConnectionListener(tell: tell) }
    }

    private func tellChange(in channels: some Sequence<ChannelID>) {
        guard let listener = listener.withLock({ $0 }) else { return }
        for channel in channels { listener.tell(channel) }
    }

    func onlineMemberCount(of channel: ChannelID) -> Int { state.withLock { $0.online[channel]?.count ?? 0 } }

    func onlineMembers(of channel: ChannelID) -> Set<UserID> { state.withLock { Set($0.online[channel, default: [:]].keys) } }

    func isOnline(_ user: UserID, _ channel: ChannelID) -> Bool { state.withLock { $0.online[channel]?[user] != nil } }

    func watcherCount(of channel: ChannelID) -> Int { state.withLock { $0.watchers[channel]?.count ?? 0 } }

    func watchers(of channel: ChannelID, offset: Int, limit: Int, elsewhere: [UserID]? = nil) -> [UserID] {
        state.withLock { $0.watchers[channel]?.elements(offset: offset, limit: limit) ?? [] }
    }

    func isWatching(_ user: UserID, _ channel: ChannelID) -> Bool { state.withLock { $0.watchers[channel]?[user] != nil } }

    func isConnected(_ user: UserID) -> Bool { state.withLock { $0.connections[user] != nil } }

    func connected(_ user: UserID) { _ = state.withLock { $0.count(user, in: \.connections, by: 1) } }
    func disconnected(_ user: UserID) { _ = state.withLock { $0.count(user, in: \.connections, by: -1) } }

    /// A connection of a user who shares that they are online has begun, or the user shares it from now on.
    func appeared(_ user: UserID) { countShown(user, by: 1) }
    func disappeared(_ user: UserID) { countShown(user, by: -1) }

    private func countShown(_ user: UserID, by step: Int) {
        let (before, count) = state.withLock { $0.count(user, in: \.shown, by: step) }
        guard (before > 0) != (count > 0), let listener = connectionListener.withLock({ $0 }) else { return }
        listener.tell(user, count > 0)
    }

    func cameOnline(_ user: UserID, in channels: some Sequence<ChannelID>) {
        tellOnline(user, channels, state.withLock { $0.countOnline(user, in: channels, by: 1) })
    }

    func wentOffline(_ user: UserID, in channels: some Sequence<ChannelID>) {
        tellOnline(user, channels, state.withLock { $0.countOnline(user, in: channels, by: -1) })
    }

    func startedWatching(_ user: UserID, _ channel: ChannelID) {
        tellWatching(user, state.withLock { $0.countWatching(user, in: [channel], by: 1) })
    }

    func stoppedWatching(_ user: UserID, _ channels: some Sequence<ChannelID>) {
        tellWatching(user, state.withLock { $0.countWatching(user, in: channels, by: -1) })
    }

    private func tellOnline(_ user: UserID, _ channels: some Sequence<ChannelID>, _ watched: [ChannelID]) {
        tellChange(in: channels)
        guard !watched.isEmpty, let listener = onlineListener.withLock({ $0 }) else { return }
        for channel in watched { listener.tell(user, channel) }
    }

    private func tellWatching(_ user: UserID, _ channels: [ChannelID]) {
        guard !channels.isEmpty else { return }
        tellChange(in: channels)
        guard let listener = watchListener.withLock({ $0 }) else { return }
        for channel in channels { listener.tell(user, channel) }
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
    /// - Returns: The channels with watchers in which the user came online by it, or went offline.
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
            return (before > 0) != (count > 0) && watchers[channel] != nil
        }
    }

    /// Counts connections of a user that watch channels.
    ///
    /// - Returns: The channels that the user began to watch, or doesn't watch any more.
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
