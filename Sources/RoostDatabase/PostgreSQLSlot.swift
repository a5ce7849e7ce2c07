#if Cluster
import Synchronization

/// The place of one connection, which is made on first use, and again after it was lost.
final class PostgreSQLSlot: Sendable {
    private let address: PostgreSQLAddress
    private let isLane: Bool
    private struct State {
        /// The connection while it isn't in use.
        var free: PostgreSQLConnection?
        var isClosed = false
    }
    private let state = Mutex(State())
    private let silence: SharedConnectBackoff?

    /// - Parameter silence: The silence that the lanes of a database have met; nil for a reader, whose silence says nothing about commits.
    init(_ address: PostgreSQLAddress, isLane: Bool, silence: SharedConnectBackoff? = nil) {
        self.address = address
        self.isLane = isLane
        self.silence = silence
    }

    /// Takes the connection, or makes one. The caller must give it back, so only one thread uses it at a time.
    func take() throws -> PostgreSQLConnection {
        // A connection that the server has ended meanwhile was idle, so nothing is lost with it.
        let (free, isClosed) = state.withLock { ($0.free.take(), $0.isClosed) }
        guard !isClosed else { throw DatabaseFailure(message: "The server is shutting down.", kind: .transaction) }
        if let free, !free.isEnded() { return free }
        if let pause = silence?.remaining {
            let seconds = pause.components.seconds + 1
            throw DatabaseFailure(
                message: "PostgreSQL didn't answer several times in a row. No connection is tried for another \(seconds) s.",
                kind: .transaction)
        }
        return try make()
    }

    /// Replaces a lost connection.
    func make() throws -> PostgreSQLConnection {
        do {
            return try PostgreSQLConnection(address, isLane: isLane)
        } catch let failure as DatabaseFailure {
            // A server that was usable when this process started can become usable again.
            throw DatabaseFailure(message: failure.message, kind: .transaction)
        }
    }

    /// Makes the first connection, and keeps it. A server that Roost can't use is a fatal failure here.
    func open() throws { giveBack(try PostgreSQLConnection(address, isLane: isLane)) }

    /// Keeps the connection for the next use; a lost one is closed.
    func giveBack(_ connection: PostgreSQLConnection) {
        guard !connection.isLost else {
            if connection.wasSilent { silence?.noteTimeout(after: .milliseconds(connection.responseTimeoutMilliseconds ?? 0)) }
            return
        }
        state.withLock { if !$0.isClosed { $0.free = connection } }
    }

    /// Closes the connection: now, or when its user gives it back.
    func close() { state.withLock { ($0.free, $0.isClosed) = (nil, true) } }
}
#endif
