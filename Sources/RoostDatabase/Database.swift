public import RoostCore

/// An engine that keeps Roost's rows: one writer, several readers.
///
/// `write` and `read` block the calling thread, which is therefore one of the server's own threads and never an event loop or a task of the
/// concurrency runtime.
public protocol Database: Sendable {
    /// Runs the body in one durable transaction: when this returns, what the body wrote is on disk.
    ///
    /// The body decides for each of its parts whether it stays, by ``WriteTransaction/attempt(_:)``.
    /// - Throws: ``DatabaseFailure`` when the engine itself failed; nothing of the transaction is then stored for sure.
    func write<T>(_ body: (any WriteTransaction) throws -> T) throws -> T

    /// Runs the body on a snapshot of what is committed.
    func read<T>(_ body: (any Transaction) throws -> T) throws -> T
}

/// A transaction in which each operation of a batch can fail on its own.
public protocol WriteTransaction: Transaction {
    /// Runs one operation; when it throws, what it wrote is undone and the rest of the batch stays.
    func attempt<T>(_ body: () throws -> T) throws -> T
}

/// The engine failed: a full or broken disk, a damaged file.
public struct DatabaseFailure: Error, CustomStringConvertible {
    /// How far the failure reaches.
    public enum Kind: Sendable {
        /// One statement was refused; the transaction stands.
        case statement
        /// The transaction is lost: the disk is full, the file can't be written. The next one may succeed.
        case transaction
        /// It is no longer known what is on disk: after a failed fsync only starting anew, from what the disk really holds, is safe.
        case fatal
    }

    public let message: String
    public let kind: Kind

    public init(message: String, kind: Kind) {
        self.message = message
        self.kind = kind
    }
    public var description: String { message }
}
