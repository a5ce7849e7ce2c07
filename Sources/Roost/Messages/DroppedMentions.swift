import NIOConcurrencyHelpers
import RoostAPI

/// The users whom the user's messages and edits name without mentioning them, as reported by the server's answers. No row has this information, so it
/// is kept in memory as long as the chat exists, and holds until the message is edited again, by any user.
final class DroppedMentions: Sendable {
    /// The maximum number of messages; beyond it the oldest answers are forgotten.
    private static let messagesMax = 1000

    struct Known: Hashable, Sendable {
        fileprivate var users: [MessageID: [UserID]] = [:]
        fileprivate var editedAt: [MessageID: Timestamp] = [:]

        var count: Int { users.count }

        /// The users whom the current version of a message names without mentioning them.
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

    /// Records an answer with a message that the user has sent or edited.
    func note(_ message: Message) {
        state.withLockedValue { state in
            // Nearly every message mentions all the users whom it names.
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

    /// Everything known.
    var all: Known { state.withLockedValue { $0.known } }
}
