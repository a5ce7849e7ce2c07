import RoostAPI
import RoostCore
import Synchronization

/// Who is connected and who watches, over all shards: what rules ask through `Presence`.
final class PresenceBoard: Presence, Sendable {
    private struct State {
        /// For each channel its connected members, each with the number of their connections.
        var online: [ChannelID: [UserID: Int]] = [:]
        var watchers: [ChannelID: [UserID: Int]] = [:]
    }
    private let state = Mutex(State())

    func onlineMemberCount(of channel: ChannelID) -> Int { state.withLock { $0.online[channel]?.count ?? 0 } }

    func watchers(of channel: ChannelID) -> Set<UserID> { state.withLock { Set($0.watchers[channel, default: [:]].keys) } }

    func cameOnline(_ user: UserID, in channels: some Sequence<ChannelID>) {
        state.withLock { state in
            for channel in channels { state.online.count(user, in: channel, by: 1) }
        }
    }

    func wentOffline(_ user: UserID, in channels: some Sequence<ChannelID>) {
        state.withLock { state in
            for channel in channels { state.online.count(user, in: channel, by: -1) }
        }
    }

    func startedWatching(_ user: UserID, _ channel: ChannelID) { state.withLock { $0.watchers.count(user, in: channel, by: 1) } }

    func stoppedWatching(_ user: UserID, _ channels: some Sequence<ChannelID>) {
        state.withLock { state in
            for channel in channels { state.watchers.count(user, in: channel, by: -1) }
        }
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
