import Foundation
import GRDB
import RoostAPI

/// The rows that change a pending message, whichever chat of the same files added them: they share the fate of the message, in one transaction.
extension Outbox {
    /// Returns the messages that other chats of this process have begun to send.
    ///
    /// - Parameter other: The number of the asking chat, if it isn't the one that has opened the file.
    func startedByOtherChats(than other: Int? = nil) -> Set<Int64> { begun.others(than: other ?? chat) }

    /// Whether a message is in the file, pending or refused.
    static func holdsMessage(_ key: MessageKey, in database: Database) throws -> Bool {
        let sql = "SELECT EXISTS (SELECT 1 FROM operations WHERE channel_id = ? AND client_id = ? AND name = 'message.send')"
        let arguments: StatementArguments = [key.channel.rawValue, key.clientId.rawValue]
        return try Bool.fetchOne(database.cachedStatement(sql: sql), arguments: arguments) ?? false
    }

    /// Makes the changes of a message name it by its id. A change that can't be read stays as it is, for a version that can.
    func resolveChanges(of key: MessageKey, as message: MessageID, in database: Database) throws {
        let sql = "\(Self.selectionOfItems) WHERE channel_id = ? AND client_id = ? AND name <> 'message.send'"
        let arguments: StatementArguments = [key.channel.rawValue, key.clientId.rawValue]
        for row in try Row.fetchAll(database.cachedStatement(sql: sql), arguments: arguments) {
            let id: Int64 = row[0]
            guard let change = try? item(id, row) else { continue }
            let fields = try change.operation.resolved(message).columns().fields
            try database.cachedStatement(sql: "UPDATE operations SET operation = ?, client_id = NULL WHERE id = ?")
                .execute(arguments: [fields, id])
        }
    }

    /// Removes an operation, and if it is a message, also its changes.
    ///
    /// - Parameter onlyUnsent: Whether it stays if a chat has sent it and the server hasn't refused it since.
    /// - Returns: Whether it existed and was removed.
    @discardableResult
    static func removeWithChanges(_ id: Int64, ifUnsent onlyUnsent: Bool = false, in database: Database) throws -> Bool {
        let condition = onlyUnsent ? "AND (o.first_sent_at IS NULL OR o.failure IS NOT NULL)" : ""
        // One statement, because most are marks and drafts that are superseded, and that nothing changes. All rows are found before any is deleted:
        // with two conditions joined by OR, SQLite would look for the changes once the message is gone.
        try database.cachedStatement(
            sql: """
                DELETE FROM operations WHERE id IN (
                    SELECT o.id FROM operations o WHERE o.id = ?1 \(condition)
                    UNION ALL
                    SELECT c.id FROM operations o JOIN operations c ON c.channel_id = o.channel_id AND c.client_id = o.client_id
                    WHERE o.id = ?1 AND o.name = 'message.send' AND c.name <> 'message.send' \(condition))
                """
        ).execute(arguments: [id])
        return database.changesCount > 0
    }
}
