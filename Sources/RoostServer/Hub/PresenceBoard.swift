import RoostAPI
import RoostCore
import Synchronization

/// Connected users and watchers, over all shards: the rules' `Presence`.
final class PresenceBoard: Presence, Sendable {
    private struct State {
        /// For each channel its connected members, each with the number of their connections.
        var online: [ChannelID: [UserID: Int]] = [:]
        var watchers: [ChannelID: [UserID: Int]] = [:]
    }
    private let state = Mutex(State())
    /// In a structure, since a closure stored directly in a mutex is wrapped again with each use.
    private struct Listener {
        var tell: @Sendable (ChannelID) -> Void
    }
    private let listener = Mutex<Listener?>(nil)

    /// Reports every change of a channel, to be shared with other nodes. Set once, before the first socket.
    func onChange(_ tell: @escaping @Sendable (ChannelID) -> Void) { listener.withLock { $0 = Listener(tell: tell) } }

    private func tellChange(in channels: some Sequence<ChannelID>) {
        guard let listener = listener.withLock({ $0 }) else { return }
        for channel in channels { listener.tell(channel) }
    }

    func onlineMemberCount(of channel: ChannelID) -> Int { state.withLock { $0.online[channel]?.count ?? 0 } }

    func onlineMembers(of channel: ChannelID) -> Set<UserID> { state.withLock { Set($0.online[channel, default: [:]].keys) } }

    func watchers(of channel: ChannelID) -> Set<UserID> { state.withLock { Set($0.watchers[channel, default: [:]].keys) } }

    func cameOnline(_ user: UserID, in channels: some Sequence<ChannelID>) {
        state.withLock { state in
            for channel in channels { state.online.count(user, in: channel, by: 1) }
        }
        tellChange(in: channels)
    }

    func wentOffline(_ user: UserID, in channels: some Sequence<ChannelID>) {
        state.withLock { state in
            for channel in channels { state.online.count(user, in: channel, by: -1) }
        }
        tellChange(in: channels)
    }

    func startedWatching(_ user: UserID, _ channel: ChannelID) {
        state.withLock { $0.watchers.count(user, in: channel, by: 1) }
        tellChange(in: [channel])
    }

    func stoppedWatching(_ user: UserID, _ channels: some Sequence<ChannelID>) {
        state.withLock { state in
            for channel in channels { state.watchers.count(user, in: channel, by: -1) }
        }
        tellChange(in: channels)
    }
}

extension [ChannelID: [UserID: Int]] {
    fileprivate mutating func count(_ user: UserID, in channel: ChannelID, by step: Int) {
        let count = (self[channel]?[user] ?? 0) + step
        if count > 0 {
            self[channel, default: [:]][user] = count
        } else {
            self[channel]?[user] = nil
            if self[channel]?.isEmpty == true { self[channel] = nil }
        }
    }
}
