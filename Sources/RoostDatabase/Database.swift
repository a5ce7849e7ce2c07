import Foundation
public import RoostAPI
public import RoostCore

/// An engine that keeps Roost's rows, with one lane or several in which transactions write, and several readers.
///
/// `write` and `read` block the calling thread, which is therefore one of the server's own threads and never an event loop or a task of the
/// concurrency runtime.
public protocol Database: Sendable {
    /// Transactions that can write at the same time.
    var laneCount: Int { get }
    /// Transactions that can read at the same time, beside those that write.
    var readerCount: Int { get }

    /// Runs the body in one durable transaction: when this returns, what the body wrote is on disk.
    ///
    /// The body decides for each of its parts whether it stays, by ``WriteTransaction/attempt(_:)``. It can run more than once: an engine
    /// that finds itself in conflict with another writer takes everything back and begins again.
    /// - Parameter lane: 0 up to ``laneCount``. A lane is used by one thread at a time.
    /// - Throws: ``DatabaseFailure`` when the engine itself failed. Whether the transaction is stored is then not known for sure.
    func write<T>(lane: Int, _ body: (any WriteTransaction) throws -> T) throws -> T

    /// Runs the body on a snapshot of what is committed.
    func read<T>(_ body: (any Transaction) throws -> T) throws -> T

    /// Runs the body on a snapshot of what is committed if nothing has to be waited for: neither a connection that reads, nor the disk. An event loop may
    /// call it with a body that takes no time itself.
    ///
    /// - Returns: Nil if it would have to wait. The body may have run up to there, and what it made of it is dropped.
    func readAtOnce<T>(_ body: (any Transaction) throws -> T) throws -> T?

    /// Work that a lane owes its engine between two transactions: with SQLite, a checkpoint if one is due.
    ///
    /// - Parameter isIdle: Whether nobody has waited for the lane for a while, so that work is better done now than later.
    /// - Returns: The work done; nil if none was due, or it goes on beside the lane.
    /// - Throws: ``DatabaseFailure`` of the kind `fatal` if it is no longer known what is on disk.
    func maintain(lane: Int, isIdle: Bool) throws -> Maintenance?

    /// Whether maintenance goes on beside the lane, which then calls ``maintain(lane:isIdle:)`` again soon, also if nobody writes. Only on the lane.
    func isMaintaining(lane: Int) -> Bool

    /// Ends it in good order, once nobody uses it any more. With SQLite the one file is then everything.
    func close() throws

    /// The time by which rules go: one clock for all who use the database, or else times that one node wrote would mean another moment on the
    /// next.
    func now() -> Timestamp

    /// Asks the database whether it is there, and what time it is.
    func lookAtClock() throws
}

extension Database {
    /// A database used by one server alone has the machine's clock.
    public func now() -> Timestamp { .system }

    public func lookAtClock() throws { _ = try read { try $0.first("SELECT 1") { $0.int() } } }
}

extension WriteTransaction {
    public func now() throws -> Timestamp { .system }
}

extension Timestamp {
    /// The machine's clock.
    package static var system: Timestamp { Timestamp(milliseconds: Int64((Date().timeIntervalSince1970 * 1000).rounded(.down))) }
}

extension Database {
    /// A database beyond a socket is always waited for.
    public func readAtOnce<T>(_ body: (any Transaction) throws -> T) throws -> T? { nil }

    public func maintain(lane: Int, isIdle: Bool) throws -> Maintenance? { nil }
    public func isMaintaining(lane: Int) -> Bool { false }
    public func close() throws {}
}

/// A checkpoint: the write-ahead log was written into the database file.
public struct Maintenance: Sendable {
    /// Frames of the log, which are pages.
    public let logFrames: Int
    /// How many of them are in the database file.
    public let framesDone: Int
    /// What held it up; nil if all of the log is in the database.
    public let obstacle: DatabaseFailure.Obstacle?
    public let nanoseconds: UInt64
    public var isComplete: Bool { obstacle == nil }
}

/// A transaction in which each operation of a batch can fail on its own.
public protocol WriteTransaction: Transaction {
    /// The number of the ``IDGenerator`` that nobody else uses as long as this lane's connection lasts. It can be another one with
    /// each transaction, and then has to be continued from the database, as it has after a `write` of the lane has thrown.
    var idGenerator: IDGenerator.Number { get }

    /// Returns the time after the earlier statements of the transaction, and so after its locks were granted.
    func now() throws -> Timestamp

    /// Runs one operation; when it throws, what it wrote is undone and the rest of the batch stays.
    func attempt<T>(_ body: () throws -> T) throws -> T
}

extension WriteTransaction {
    /// Brings the tables up to date. Tables that a newer version has made are a fatal failure: nothing but that version can use them.
    func migrate() throws { try DatabaseFailure.ofNewerTables { try Migrations.apply(in: self) } }
}

extension DatabaseFailure {
    static func ofNewerTables(_ body: () throws -> Void) throws {
        do {
            try body()
        } catch let newer as Migrations.NewerDatabase {
            throw DatabaseFailure(message: newer.description, kind: .fatal)
        }
    }
}

/// The engine failed: a full or broken disk, a damaged file, a server that is gone.
public struct DatabaseFailure: Error, CustomStringConvertible {
    /// How far the failure reaches.
    public enum Kind: Sendable {
        /// One statement was refused; the transaction continues.
        case statement
        /// Somebody else held a lock for too long. The transaction is taken back, and can be run again.
        case locked
        /// The transaction is lost: the disk is full, the file can't be written, the server is gone. The next one may succeed.
        case transaction
        /// A page that an operation needs is damaged. Others may not need it.
        case damage
        /// A statement took longer than the database lets one, or somebody ended it there. Others may not take as long.
        case cancelled
        /// The state of the disk is unknown: after a failed fsync only a restart, from what the disk really holds, is safe.
        case fatal
    }

    /// A cause outside of the database, which its operator can remove.
    public enum Obstacle: Sendable {
        /// The disk has no room.
        case fullDisk
        /// Another connection reads or writes: one of this process if it has several, otherwise another program's.
        case inUse
        /// The system refused to open, read or write a file. SQLite doesn't tell why.
        case refusedFile
    }

    public let message: String
    public let kind: Kind
    /// Nil if nothing outside is known to be in the way.
    public var obstacle: Obstacle?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(message: String, kind: Kind, obstacle: Obstacle? = nil) {
        self.message = message
        self.kind = kind
        self.obstacle = obstacle
    }
    public var description: String { message }
}
