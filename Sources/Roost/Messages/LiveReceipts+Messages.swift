public import RoostAPI

extension LiveReceipts {
    /// The members who have read a message, without its sender: who read last comes first.
    public func readers(of message: Message) -> [UserID] {
        positions.values.filter { $0.readSeq >= message.seq && $0.userId != message.sender }
            .sorted { ($0.lastReadAt?.milliseconds ?? 0, $1.userId) > ($1.lastReadAt?.milliseconds ?? 0, $0.userId) }
            .map(\.userId)
    }
}
