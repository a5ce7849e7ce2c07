public import RoostAPI

extension LiveReceipts {
    /// The members who have read a message, without its sender, the last reader first.
    public func readers(of message: Message) -> [UserID] {
        positions.values.filter { $0.readSeq >= message.seq && $0.userId != message.sender }
            .sorted { ($0.lastReadAt?.milliseconds ?? 0, $1.userId) > ($1.lastReadAt?.milliseconds ?? 0, $0.userId) }
            .map(\.userId)
    }

    /// The members on whose devices a message has arrived, read or not, without its sender: for a second tick. Unless the channel's policy has
    /// `deliveryEvents`, these are just the ``readers(of:)``.
    public func recipients(of message: Message) -> Set<UserID> {
        Set(
            positions.values.filter { max($0.readSeq, $0.deliveredSeq ?? 0) >= message.seq && $0.userId != message.sender }
                .map(\.userId))
    }
}
