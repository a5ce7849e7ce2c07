import RoostAPI

/// The messages of a channel that a chat in lines has printed. It tells new messages from printed ones, and detects changes of these.
struct PrintedMessages {
    /// A change of a printed message to report.
    enum Change: Hashable {
        case edited, deleted
    }

    private struct Entry {
        let id: MessageID
        var editedAt: Timestamp?
        var isDeleted: Bool
    }

    /// The number of printed messages whose changes are reported.
    static let rememberedMax = 1000

    /// Whether the initial messages of a channel have been printed: then all later ones are printed too, however many arrive at once.
    var hasBegun = false
    private var last: Seq = 0
    private var newestTime: Timestamp?
    private var entries: [Seq: Entry] = [:]

    /// Whether there may be unprinted messages before the first of these.
    func isMissingSome(before first: Seq?) -> Bool {
        guard hasBegun, let first else { return false }
        return first > last
    }

    func isNew(_ message: Message) -> Bool { message.seq > last }

    /// Notes a new message, whether it is printed or was already deleted.
    mutating func add(_ message: Message) {
        last = message.seq
        newestTime = max(message.createdAt, newestTime ?? message.createdAt)
        entries[message.seq] = Entry(id: message.messageId, editedAt: message.editedAt, isDeleted: message.deletedAt != nil)
        if entries.count > Self.rememberedMax, let first = entries.keys.min() { entries[first] = nil }
    }

    /// Notes the current version of a printed message.
    ///
    /// - Returns: The change to report; nil if it is unchanged or wasn't printed.
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

    /// A server restored from a backup assigns seqs again: the first message that differs from the previous one at its seq is new, with all after it.
    mutating func forgetOtherHistory(than messages: some Sequence<Message>) {
        guard let other = messages.first(where: { isOfOtherHistory($0) }) else { return }
        last = other.seq - 1
        entries = entries.filter { $0.key < other.seq }
    }

    private func isOfOtherHistory(_ message: Message) -> Bool {
        guard !isNew(message) else { return false }
        if let entry = entries[message.seq] { return entry.id != message.messageId }
        // In one history messages never get older with rising seqs.
        return newestTime.map { message.createdAt > $0 } ?? false
    }
}
