import NIOConcurrencyHelpers
import RoostAPI

/// Whom the user's messages and edits name and don't mention, as the server's answers say. No row has that, so it is known as long as the chat is there.
final class DroppedMentions: Sendable {
    /// Messages beyond these are forgotten, the oldest answers first.
    private static let messagesMax = 1000

    private struct State {
        var users: [MessageID: [UserID]] = [:]
        var order: [MessageID] = []
    }

    private let state = NIOLockedValueBox(State())

    /// Takes in an answer with a message of the user's, or one that the user has edited.
    func note(_ message: Message) {
        state.withLockedValue { state in
            // Nearly every message mentions all whom it names.
            guard message.droppedMentions != nil || !state.users.isEmpty else { return }
            state.users[message.messageId] = message.droppedMentions
            state.order.removeAll { $0 == message.messageId }
            guard message.droppedMentions != nil else { return }
            state.order.append(message.messageId)
            if state.order.count > Self.messagesMax { state.users[state.order.removeFirst()] = nil }
        }
    }

    /// All that are known.
    var all: [MessageID: [UserID]] { state.withLockedValue { $0.users } }
}
