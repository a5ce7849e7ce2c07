import RoostAPI

/// The effects of a row's messages on a followed stream.
extension Rows {
    /// Returns the number of messages after a position. One that was also changed appears twice in the changes.
    func messageCount(after position: Seq) -> Int {
        guard let messages else { return 0 }
        return messages.count == 1
            ? (messages[0].seq > position ? 1 : 0) : Set(messages.lazy.map(\.seq).filter { $0 > position }).count
    }

    /// The seqs of messages after a position.
    func messageSeqs(after position: Seq) -> some Sequence<Seq> { (messages ?? []).lazy.map(\.seq).filter { $0 > position } }

    /// The number of permanently deleted messages whose seqs meet a condition.
    func purgedCount(where isCounted: (Seq) -> Bool) -> Int { purged?.count { isCounted($0.seq) } ?? 0 }

    /// Returns the writes that update the unread count: for own messages after a position, and for permanently deleted messages.
    func countWrite(in channel: ChannelID, as user: UserID, after position: Seq) -> [StoreWrite] {
        let counted = Rows(sent(by: user).filter { $0.seq > position }, purged)
        return counted.isEmptyOfFeatures ? [] : [.count(channel, counted)]
    }

    /// Whether the rows include a message, or the place of one.
    var showsMessage: Bool { messages != nil || purged != nil }

    var newestMessage: Message? { messages?.last }

    /// The senders of the messages.
    var senders: [UserID] { messages?.map(\.sender) ?? [] }

    /// The messages sent by a user.
    func sent(by sender: UserID) -> [Message] { (messages ?? []).filter { $0.sender == sender } }
}

extension Membership {
    /// Returns the membership with own messages in the rows, and permanently deleted messages, no longer unread (``Unread/advancing(_:as:with:_:)``).
    func counting(_ rows: Rows, as user: UserID) -> Membership {
        Unread.advancing(self, as: user, with: rows.messages ?? [], rows.purged ?? [])
    }
}
