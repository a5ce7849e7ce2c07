public import RoostAPI

extension LiveReceipts {
    /// The members who have read a message, without its sender and members who joined after it, the last reader first. ``user(_:)`` has their names.
    public func readers(of message: Message) -> [UserID] {
        positions.values.filter { $0.readSeq >= message.seq && $0.isAbout(message) }
            .sorted { ($0.lastReadAt?.milliseconds ?? 0, $1.userId) > ($1.lastReadAt?.milliseconds ?? 0, $0.userId) }
            .map(\.userId)
    }

    /// Does the same for a row of a list; empty while its message is on its way.
    public func readers(of item: MessageItem) -> [UserID] { item.message.map { readers(of: $0) } ?? [] }

    /// The members on whose devices a message has arrived, read or not, without its sender: for a second tick. Unless the channel's policy has
    /// `deliveryEvents`, these are just the ``readers(of:)-(Message)``.
    public func recipients(of message: Message) -> Set<UserID> {
        Set(
            positions.values.filter { max($0.readSeq, $0.deliveredSeq ?? 0) >= message.seq && $0.isAbout(message) }.map(\.userId))
    }

    /// Does the same for a row of a list; empty while its message is on its way.
    public func recipients(of item: MessageItem) -> Set<UserID> { item.message.map { recipients(of: $0) } ?? [] }
}

extension ReadPosition {
    /// Whether the position says anything about a message: it doesn't for the message's sender, or for members who joined after it and count it as
    /// read from the start.
    fileprivate func isAbout(_ message: Message) -> Bool { userId != message.sender && joinedSeq ?? 0 < message.seq }
}
