/// Rows that are hidden from a member, in the events that others get whole (SB-14, SB-26).
extension Event {
    /// The smallest seq of a message that the event's rows are about, where one of them is older than the event: an edit, a deletion, several
    /// changes in one event.
    ///
    /// Nil for an event that is about no message but a new one. A new message is hidden from nobody who gets events.
    public var oldestMessage: Seq? { rows.oldestMessage.flatMap { $0 < seq ? $0 : nil } }

    /// The event for who may not read messages up to a seq of the channel, which is their ``Membership/historyFloor``: without the rows that
    /// are about those messages, whatever their kind.
    ///
    /// All else stays as it is, its seq above all: whoever follows the stream finds no hole in it. Where no row is left that is about a
    /// message, `actor` is absent too, which would tell who wrote.
    public func concealing(messagesUpTo floor: Seq) -> Event {
        guard let oldest = rows.oldestMessage, oldest <= floor else { return self }
        var event = self
        event.rows = rows.withoutRows(aboutMessagesBefore: floor == .max ? floor : floor + 1)
        if event.rows.oldestMessage == nil { event.actor = nil }
        return event
    }
}
