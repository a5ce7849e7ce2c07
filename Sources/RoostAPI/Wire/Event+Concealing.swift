/// Messages that are hidden from a member, in the events that others get whole (SB-14, SB-26).
extension Event {
    /// The smallest seq of the event's messages, where one of them is older than the event: an edit, a deletion, several changes in one event.
    ///
    /// Nil for an event that holds no message but a new one. A new message is hidden from nobody who gets events.
    public var oldestMessage: Seq? {
        guard let messages = rows.messages, messages.contains(where: { $0.seq < seq }) else { return nil }
        return messages.lazy.map(\.seq).min()
    }

    /// The event for who may not read messages up to a seq of the channel, which is their ``Membership/historyFloor``: without those messages.
    ///
    /// All else stays as it is, its seq above all: whoever follows the stream finds no hole in it. Where no message is left, `messages` is
    /// absent, and so is `actor`, which would tell who wrote.
    public func concealing(messagesUpTo floor: Seq) -> Event {
        guard let messages = rows.messages, messages.contains(where: { $0.seq <= floor }) else { return self }
        let shown = messages.filter { $0.seq > floor }
        var event = self
        event.rows.messages = shown.isEmpty ? nil : shown
        if shown.isEmpty { event.actor = nil }
        return event
    }
}
