/// Removes rows that are hidden from a member from events that others get whole (SB-14, SB-26).
extension Event {
    /// The smallest seq of a message that the event's rows are concealed with, if one of them is older than the event: an edit, a deletion, several
    /// changes in one event.
    ///
    /// Nil for an event about no message, or only about a new one. A new message is hidden from nobody who gets events.
    public var oldestMessage: Seq? { rows.oldestConcealed.flatMap { $0 < seq ? $0 : nil } }

    /// Returns the event as a member with this history floor sees it (``Membership/historyFloor``): without the rows about messages up to
    /// it, whatever their kind.
    ///
    /// Everything else stays unchanged, including its seq, so followers of the stream find no hole. If no message is left of which a row tells,
    /// `actor` is absent too, since it would reveal the sender.
    public func concealing(messagesUpTo floor: Seq) -> Event {
        guard let oldest = rows.oldestConcealed, oldest <= floor else { return self }
        var event = self
        event.rows = rows.withoutRows(concealedBefore: floor == .max ? floor : floor + 1)
        // Other messages' mentions of the channel, which come when one ends, don't say who ended it.
        if event.rows.oldestMessage == nil { event.actor = nil }
        return event
    }
}
