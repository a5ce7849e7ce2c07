import NIOConcurrencyHelpers

/// Tracks which of this process's chats that share an outbox has begun to send which message. An ephemeral channel knows no client ids, so there a
/// message is sent by that chat alone.
///
/// The record ends with the process: the next chat that is about to send a message begun by an earlier process begins it again.
final class BegunMessages: Sendable {
    /// The numbers of the chats, by operation id.
    private let chats = NIOLockedValueBox<[Int64: Int]>([:])

    /// Notes that a chat is about to send a message, unless another chat has begun to. Must be called while nothing else writes the outbox.
    ///
    /// - Parameter isUnsent: Whether the outbox says that no chat has begun to. A chat that is noted here then failed to write it.
    /// - Returns: Whether the chat is the one that sends it.
    @discardableResult
    func begin(_ id: Int64, by chat: Int, isUnsent: Bool) -> Bool {
        chats.withLockedValue { chats in
            guard isUnsent || chats[id] == nil || chats[id] == chat else { return false }
            chats[id] = chat
            return true
        }
    }

    /// Returns the messages that chats other than this one have begun to send.
    func others(than chat: Int) -> Set<Int64> {
        chats.withLockedValue { chats in Set(chats.filter { $0.value != chat }.keys) }
    }

    /// Forgets messages that are no longer in the outbox.
    func end(_ ids: [Int64]) {
        guard !ids.isEmpty else { return }
        chats.withLockedValue { chats in for id in ids { chats[id] = nil } }
    }

    /// Forgets a chat that is gone: another one sends what it was sending.
    func leave(_ chat: Int) {
        chats.withLockedValue { chats in chats = chats.filter { $0.value != chat } }
    }
}
