import RoostAPI
import RoostCore

/// Who gets signals.
extension Subscriptions {
    /// Sends a signal to its audience.
    func send(_ frame: SignalFrame, to audience: Audience, _ perform: (Action) -> Void) {
        // Few users get their own form, so it isn't looked up for everyone.
        let own = Dictionary(
            frame.formsOfUsers.keys.flatMap { user in connections(of: user).map { ($0, user) } },
            uniquingKeysWith: { first, _ in first })
        for (connection, receiver) in receivers(of: audience, receiving: frame.key.kind) {
            perform(.signal(own[connection].map(frame.form(for:)) ?? frame, to: receiver.socket))
        }
        for (connection, socket) in unattachedWatchers(in: audience, receiving: frame.key.kind) {
            perform(.signal(own[connection].map(frame.form(for:)) ?? frame, to: socket))
        }
    }

    /// Returns the connections of an audience that watch the channel and don't get its events yet. Only the signal says whether they may have
    /// it: they haven't been sent the channel's last event.
    private func unattachedWatchers(in audience: Audience, receiving signal: Signal.Kind) -> [(ConnectionID, Socket)] {
        switch audience {
        case .user: return []
        case .channel(let channel, let readers), .watchers(let channel, let readers):
            return (unattached[channel] ?? []).compactMap { connection in
                guard let subscriber = subscribers[connection] else { return nil }
                let isMember = subscriber.joined.contains(channel)
                let isReader = subscriber.isReader(of: channel, readers, isMember: isMember)
                let isWatcher = signal.isForWatchers && subscriber.mayWatch(channel, readers, isMember: isMember)
                return isReader || isWatcher ? (connection, subscriber.socket) : nil
            }
        }
    }

    /// Notes whether a connection watches a channel without getting its events yet.
    mutating func setUnattached(_ isUnattached: Bool, _ connection: ConnectionID, _ channel: ChannelID) {
        if isUnattached {
            if unattached[channel] == nil { interest?.add(.channel(channel)) }
            unattached[channel, default: []].insert(connection)
        } else if !unattached.isEmpty {
            unattached[channel]?.remove(connection)
            guard unattached[channel]?.isEmpty == true else { return }
            unattached[channel] = nil
            interest?.remove(.channel(channel))
        }
    }
}
