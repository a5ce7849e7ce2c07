import RoostAPI

/// Reports every few seconds which messages have arrived, in channels with delivery events. The driver decides which channels these are,
/// because it has the store.
extension Sync {
    /// Of several messages of a channel only the last one counts, without the user's own and replies in threads. Only members report it.
    mutating func noteArrivals(_ messages: [Message]) {
        var newest: [ChannelID: Seq] = [:]
        for message in messages where message.sender != user && message.parentId == nil && Unread.counts(message) {
            guard !isVisited(message.channelId) else { continue }
            newest[message.channelId] = max(newest[message.channelId] ?? 0, message.seq)
        }
        if !newest.isEmpty { note(newest) }
    }

    /// Keeps what couldn't be reported for later. A seq beyond the stream's position belongs to another history, before a backup was restored.
    mutating func noteUnreported(_ unreported: [ChannelID: Seq]) {
        note(unreported.filter { channel, seq in saved.channels[channel].map { seq <= $0.cursor } ?? false })
    }

    mutating func note(_ newest: [ChannelID: Seq]) {
        arrivals.merge(newest) { max($0, $1) }
        guard !isReportingArrivals, !arrivals.isEmpty else { return }
        isReportingArrivals = true
        emit(.startTimer(.arrivals, settings.arrivalPause))
    }

    /// By now they are stored. Without a connection they are reported on the next one.
    mutating func reportArrivals() {
        isReportingArrivals = false
        guard phase == .online, !arrivals.isEmpty else { return }
        emit(.arrived(arrivals))
        arrivals = [:]
    }
}
