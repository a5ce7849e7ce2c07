import NIOConcurrencyHelpers
import RoostAPI

/// Whom the user's messages and edits name and don't mention, as the server's answers say. No row has that, so it is known as long as the chat is there, and
/// holds until the message is edited again, by whomever.
final class DroppedMentions: Sendable {
    /// Messages beyond these are forgotten, the oldest answers first.
    private static let messagesMax = 1000

    struct Known: Hashable, Sendable {
        fileprivate var users: [MessageID: [UserID]] = [:]
        fileprivate var editedAt: [MessageID: Timestamp] = [:]

        var count: Int { users.count }

        /// Whom a message, as it is now, names and doesn't mention.
        subscript(_ message: Message) -> [UserID] {
            guard let users = users[message.messageId], message.editedAt == editedAt[message.messageId] else { return [] }
            return users
        }
    }

    private struct State {
        var known = Known()
        var order: [MessageID] = []
    }

    private let state = NIOLockedValueBox(State())

    /// Takes in an answer with a message of the user's, or one that the user has edited.
    func note(_ message: Message) {
        state.withLockedValue { state in
            // Nearly every message mentions all whom it names.
            guard message.droppedMentions != nil || state.known.count > 0 else { return }
            state.known.users[message.messageId] = message.droppedMentions
            state.known.editedAt[message.messageId] = message.droppedMentions == nil ? nil : message.editedAt
            state.order.removeAll { $0 == message.messageId }
            guard message.droppedMentions != nil else { return }
            state.order.append(message.messageId)
            guard state.order.count > Self.messagesMax else { return }
            let oldest = state.order.removeFirst()
            (state.known.users[oldest], state.known.editedAt[oldest]) = (nil, nil)
        }
    }

    /// All that are known.
    var all: Known { state.withLockedValue { $0.known } }
}
