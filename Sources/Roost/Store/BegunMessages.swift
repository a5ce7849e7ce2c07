import NIOConcurrencyHelpers

/// Which of the chats of this process that share an outbox has begun to send which of its messages. In an ephemeral channel, which knows no client ids, a message is
/// sent by that one alone.
///
/// It lasts no longer than the process: what an earlier one had begun to send, the next chat that is about to send it begins.
final class BegunMessages: Sendable {
    /// The numbers of the chats, by the ids of the operations.
    private let chats = NIOLockedValueBox<[Int64: Int]>([:])

    /// Notes that a chat is about to send a message, unless another one has begun to. It is called while nobody else writes the outbox.
    ///
    /// - Parameter isUnsent: Whether the outbox says that nobody has begun to. Whoever had noted it here couldn't write it then.
    /// - Returns: Whether the chat is the one that sends it.
    @discardableResult
    func begin(_ id: Int64, by chat: Int, isUnsent: Bool) -> Bool {
        chats.withLockedValue { chats in
            guard isUnsent || chats[id] == nil || chats[id] == chat else { return false }
            chats[id] = chat
            return true
        }
    }

    /// Returns the messages that others than this chat have begun to send.
    func others(than chat: Int) -> Set<Int64> {
        chats.withLockedValue { chats in Set(chats.filter { $0.value != chat }.keys) }
    }

    /// The messages aren't in the outbox any more.
    func end(_ ids: [Int64]) {
        guard !ids.isEmpty else { return }
        chats.withLockedValue { chats in for id in ids { chats[id] = nil } }
    }

    /// A chat is gone: what it was sending, another one sends.
    func leave(_ chat: Int) {
        chats.withLockedValue { chats in chats = chats.filter { $0.value != chat } }
    }
}
