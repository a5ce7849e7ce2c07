import GRDB
import RoostAPI

extension SyncDriver {
    /// Whether the server may have deleted the message that an operation restores, as far as this device knows; false for any other operation.
    func serverMayHaveDeleted(messageOf operation: OutboxOperation) async -> Bool {
        guard case .undelete(let undelete) = operation else { return false }
        // In a separate task: in a cancelled task nothing can be read.
        let answer = try? await Task {
            try await files().store.read { try $0.serverMayHaveDeleted(undelete.message, in: undelete.channel) }
        }.value
        return answer ?? true
    }
}

extension Database {
    /// Whether the server may have deleted a message: its cached row says so, or there is none.
    func serverMayHaveDeleted(_ id: MessageID, in channel: ChannelID) throws -> Bool {
        guard let cached = try message(id, in: channel) else { return true }
        return cached.deletedAt != nil
    }
}
