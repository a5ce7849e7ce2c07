import RoostAPI

/// What a chat in lines has printed of its channel. It tells which messages are new, and what became of those that were printed.
struct PrintedMessages {
    /// What is to be told of a printed message.
    enum Change: Hashable {
        case edited, deleted
    }

    private struct Entry {
        let id: MessageID
        var editedAt: Timestamp?
        var isDeleted: Bool
    }

    /// Printed messages whose changes are told too.
    static let rememberedMax = 1000

    /// Whether the messages that a channel is entered with have been printed: then all later ones are, however many come at once.
    var hasBegun = false
    private var last: Seq = 0
    private var newestTime: Timestamp?
    private var entries: [Seq: Entry] = [:]

    /// Whether messages that aren't printed may come before the first of these.
    func isMissingSome(before first: Seq?) -> Bool {
        guard hasBegun, let first else { return false }
        return first > last
    }

    func isNew(_ message: Message) -> Bool { message.seq > last }

    /// Notes a new message, whether it is printed or was deleted before.
    mutating func add(_ message: Message) {
        last = message.seq
        newestTime = max(message.createdAt, newestTime ?? message.createdAt)
        entries[message.seq] = Entry(id: message.messageId, editedAt: message.editedAt, isDeleted: message.deletedAt != nil)
        if entries.count > Self.rememberedMax, let first = entries.keys.min() { entries[first] = nil }
    }

    /// Notes what a printed message is now.
    ///
    /// - Returns: What is to be told of it; nil if it is as it was, or isn't one that was printed.
    mutating func noteChange(of message: Message) -> Change? {
        guard let entry = entries[message.seq], entry.id == message.messageId, !entry.isDeleted else { return nil }
        if message.deletedAt != nil {
            entries[message.seq]?.isDeleted = true
            return .deleted
        }
        guard message.editedAt != entry.editedAt else { return nil }
        entries[message.seq]?.editedAt = message.editedAt
        return .edited
    }

    /// A server that was restored from a backup gives seqs once more: the first message that isn't the one at its place before is new, with all after it.
    mutating func forgetOtherHistory(than messages: some Sequence<Message>) {
        guard let other = messages.first(where: { isOfOtherHistory($0) }) else { return }
        last = other.seq - 1
        entries = entries.filter { $0.key < other.seq }
    }

    private func isOfOtherHistory(_ message: Message) -> Bool {
        guard !isNew(message) else { return false }
        if let entry = entries[message.seq] { return entry.id != message.messageId }
        // In one history no message comes before an older one.
        return newestTime.map { message.createdAt > $0 } ?? false
    }
}
