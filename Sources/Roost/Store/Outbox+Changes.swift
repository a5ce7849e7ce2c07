import Foundation
import GRDB
import RoostAPI

/// The rows that change a message on its way, whichever chat of the same files has put them: what becomes of the message becomes of them in one transaction.
extension Outbox {
    /// Whether a message is in the file, on its way or refused.
    static func holdsMessage(_ key: MessageKey, in database: Database) throws -> Bool {
        let sql = "SELECT EXISTS (SELECT 1 FROM operations WHERE channel_id = ? AND client_id = ? AND name = 'message.send')"
        let arguments: StatementArguments = [key.channel.rawValue, key.clientId.rawValue]
        return try Bool.fetchOne(database.cachedStatement(sql: sql), arguments: arguments) ?? false
    }

    /// Has the changes of a message name it by its id. One that can't be read stays as it is, for a version that can.
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

    /// Removes the changes of a message; none if that isn't one, or isn't there any more.
    static func removeChanges(ofMessage id: Int64, in database: Database) throws {
        let sql = "SELECT channel_id, client_id FROM operations WHERE id = ? AND name = 'message.send'"
        guard let message = try Row.fetchOne(database.cachedStatement(sql: sql), arguments: [id]) else { return }
        let (channel, client): (String?, String?) = (try message.decode(atIndex: 0), try message.decode(atIndex: 1))
        try database.cachedStatement(
            sql: "DELETE FROM operations WHERE channel_id = ? AND client_id = ? AND name <> 'message.send'"
        ).execute(arguments: [channel, client])
    }
}
