import RoostAPI

/// Tells every few seconds which messages have arrived, where a channel wants to know. Which do, the driver knows: it has the store.
extension Sync {
    /// Of several messages of a channel the last one counts: those of others that aren't replies in a thread. Only members tell it.
    mutating func noteArrivals(_ messages: [Message]) {
        var newest: [ChannelID: Seq] = [:]
        for message in messages where message.sender != user && message.parentId == nil && Unread.counts(message) {
            guard !isVisited(message.channelId) else { continue }
            newest[message.channelId] = max(newest[message.channelId] ?? 0, message.seq)
        }
        if !newest.isEmpty { note(newest) }
    }

    /// What couldn't be told is told later. A seq that no stream has come to is of another history, before a backup was restored.
    mutating func noteUntold(_ untold: [ChannelID: Seq]) {
        note(untold.filter { channel, seq in saved.channels[channel].map { seq <= $0.cursor } ?? false })
    }

    mutating func note(_ newest: [ChannelID: Seq]) {
        arrivals.merge(newest) { max($0, $1) }
        guard !isTellingArrivals, !arrivals.isEmpty else { return }
        isTellingArrivals = true
        emit(.startTimer(.arrivals, settings.arrivalPause))
    }

    /// They are stored by now. Without a connection they are told with the next one.
    mutating func tellArrivals() {
        isTellingArrivals = false
        guard phase == .online, !arrivals.isEmpty else { return }
        emit(.arrived(arrivals))
        arrivals = [:]
    }
}
