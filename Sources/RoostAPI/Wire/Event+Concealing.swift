/// Removes rows hidden from a member from events that others receive in full (SB-14, SB-26).
extension Event {
    /// The smallest seq of a message that the event's rows are concealed with, if one of them is older than the event: an edit, a deletion, several
    /// changes in one event.
    ///
    /// Nil for an event about no message, or only about a new one. A new message isn't hidden from anyone who receives events.
    public var oldestMessage: Seq? { rows.oldestConcealed.flatMap { $0 < seq ? $0 : nil } }

    /// Returns the event as a member with this history floor sees it (``Membership/historyFloor``): without the rows of any kind about
    /// messages up to it.
    ///
    /// Everything else stays unchanged, including its seq, so followers of the stream see no gap. If no row about a message is left,
    /// `actor` is removed too, since it would reveal the sender.
    public func concealing(messagesUpTo floor: Seq) -> Event {
        guard let oldest = rows.oldestConcealed, oldest <= floor else { return self }
        var event = self
        event.rows = rows.withoutRows(concealedBefore: floor == .max ? floor : floor + 1)
        // Other messages' mentions of the channel, sent when one ends, don't reveal who ended it.
        if event.rows.oldestMessage == nil { event.actor = nil }
        return event
    }
}
