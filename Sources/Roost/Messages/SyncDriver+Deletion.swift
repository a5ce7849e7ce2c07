import GRDB
import RoostAPI

extension SyncDriver {
    /// Whether the server may have deleted the message that an operation deletes or restores, as far as this device knows; false for any other
    /// operation.
    func serverMayHaveDeleted(messageOf operation: OutboxOperation) async -> Bool {
        guard operation.deletedOrRestored != nil else { return false }
        // In a separate task: in a cancelled task nothing can be read.
        let answer = try? await Task {
            try await files().store.read { try $0.serverMayHaveDeleted(messageOf: operation) }
        }.value
        return answer ?? true
    }
}

extension Database {
    /// Whether the server may have deleted the message that an operation deletes or restores for everyone: its cached row says so, or there is none.
    /// False for any other operation.
    func serverMayHaveDeleted(messageOf operation: OutboxOperation) throws -> Bool {
        guard let id = operation.deletedOrRestored, let channel = operation.channel else { return false }
        guard let cached = try message(id, in: channel) else { return true }
        // A message that the user has deleted for themselves has that time, unless it was deleted for everyone before.
        if cached.isDeletedForMe { return try cached.deletedAt != ownDeletionTime(of: cached.seq, in: channel) }
        return cached.deletedAt != nil
    }
}

extension OutboxOperation {
    /// The stored message that it alone deletes for everyone, or restores.
    fileprivate var deletedOrRestored: MessageID? {
        switch self {
        case .delete(let operation, let client): client == nil ? operation.message : nil
        case .purge(let operation): operation.message
        case .undelete(let operation): operation.message
        default: nil
        }
    }
}
