import RoostAPI

/// The effects of a row's messages on a followed stream.
extension Rows {
    /// Returns the number of messages newer than a position. One that was also changed is twice among the changes.
    func messageCount(after position: Seq) -> Int {
        guard let messages else { return 0 }
        return messages.count == 1
            ? (messages[0].seq > position ? 1 : 0) : Set(messages.lazy.map(\.seq).filter { $0 > position }).count
    }

    /// Returns the writes that update the unread count, which new own messages change too.
    func countWrite(in channel: ChannelID, _ own: [Message]) -> [StoreWrite] {
        own.isEmpty && purged == nil ? [] : [.count(channel, own, purged ?? [])]
    }

    /// How many messages up to a position were deleted for good.
    func purgedCount(upTo position: Seq) -> Int { purged?.count { $0.seq <= position } ?? 0 }

    /// Messages that a user sent.
    func sent(by sender: UserID) -> [Message] { (messages ?? []).filter { $0.sender == sender } }
}
