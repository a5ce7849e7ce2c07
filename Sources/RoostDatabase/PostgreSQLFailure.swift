#if Cluster
import CPostgres

/// A failure of a server or of the connection to it, classified by the possible reaction.
struct PostgreSQLFailure: Error {
    enum Kind {
        /// The statement was refused, and with it everything since the transaction's last savepoint.
        case statement
        /// Another transaction conflicted with this one. The whole transaction can be run again.
        case conflict
        /// Another transaction held a lock for longer than the time limit. The whole transaction can be run again.
        case locked
        /// The transaction is lost. The connection is still usable.
        case transaction
        /// A page that a statement needs is damaged, and the transaction is lost. Other statements may not need it.
        case damage
        /// The statement took too long or was cancelled, and the transaction is lost. Other statements may take less time.
        case cancelled
        /// The connection is lost, and with it the information whether a commit has happened.
        case connection
    }

    let kind: Kind
    let message: String
    /// Whether the statement was part of an operation, which has a savepoint or can get one.
    let isInOperation: Bool
    /// Whether the key of an inserted row already exists.
    var isKeyTaken = false

    /// The failure as users of a database see it.
    var failure: DatabaseFailure {
        switch kind {
        case .statement: DatabaseFailure(message: message, kind: .statement)
        case .locked: DatabaseFailure(message: message, kind: .locked)
        case .damage: DatabaseFailure(message: message, kind: .damage)
        case .cancelled: DatabaseFailure(message: message, kind: .cancelled)
        case .conflict, .transaction, .connection: DatabaseFailure(message: message, kind: .transaction)
        }
    }

    static func lost(_ message: String) -> PostgreSQLFailure {
        PostgreSQLFailure(kind: .connection, message: "The connection to PostgreSQL is lost: \(message)", isInOperation: false)
    }
}

extension PostgreSQLFailure {
    /// - Parameter sqlState: The server's five-character error code; empty if libpq itself failed.
    init(sqlState: String, severity: String, message: String, isInOperation: Bool) {
        kind = Self.kind(sqlState: sqlState, severity: severity)
        let state = sqlState.isEmpty ? "" : " \(sqlState)"
        self.message = "PostgreSQL error\(state): \(message)"
        self.isInOperation = isInOperation
        isKeyTaken = sqlState == "23505"
    }

    private static func kind(sqlState: String, severity: String) -> Kind {
        // The server ends the connection after these.
        let isEnd = ["FATAL", "PANIC"].contains(severity) || sqlState.hasPrefix("08") || sqlState.hasPrefix("57P0")
        if isEnd { return .connection }
        switch sqlState {
        // Serialization failure, deadlock.
        case "40001", "40P01": return .conflict
        // A lock that wasn't granted in time.
        case "55P03": return .locked
        // Read-only: the server is a replica, or has become one.
        case "25006": return .transaction
        // Query cancelled: it exceeded `statement_timeout`, or an operator cancelled it.
        case "57014": return .cancelled
        // A page or a long value of a table can't be read, or an index is wrong.
        case "XX001", "XX002": return .damage
        default: break
        }
        // Class 53: out of memory, a full disk, too many connections. 58: the system under the server failed. XX: the server itself failed.
        let isServerWide = ["53", "58", "XX"].contains { sqlState.hasPrefix($0) }
        return isServerWide ? .transaction : .statement
    }

    /// The failure in a result, without the server's detail, which contains values of the statement.
    init(_ result: PostgreSQLResult, isInOperation: Bool) {
        self.init(
            sqlState: result.errorField("C"), severity: result.errorField("V"), message: result.errorField("M"),
            isInOperation: isInOperation)
    }
}
#endif
