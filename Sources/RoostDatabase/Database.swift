public import RoostAPI
public import RoostCore

/// An engine that keeps Roost's rows, with one or more lanes in which transactions write, and several readers.
///
/// `write` and `read` block the calling thread, so they are called on the server's own threads, never on an event loop or in a task of the
/// concurrency runtime.
public protocol Database: Sendable {
    /// The number of transactions that can write at the same time.
    var laneCount: Int { get }
    /// The number of transactions that can read at the same time, besides those that write.
    var readerCount: Int { get }

    /// Runs the body in one durable transaction: when this returns, what the body wrote is on disk.
    ///
    /// By ``WriteTransaction/attempt(_:)`` the body decides for each of its parts whether it stays. The body can run more than once: an engine that
    /// conflicts with another writer rolls everything back and starts over.
    /// - Parameter lane: 0 up to ``laneCount``. A lane is used by one thread at a time.
    /// - Throws: ``DatabaseFailure`` if the engine itself failed. It isn't certain then whether the transaction is stored.
    func write<T>(lane: Int, _ body: (any WriteTransaction) throws -> T) throws -> T

    /// Runs the body on a snapshot of the committed data.
    func read<T>(_ body: (any Transaction) throws -> T) throws -> T

    /// Runs the body on a snapshot of the committed data if that needs no waiting, neither for a reading connection nor for the disk. An event loop
    /// may call it with a body that takes no time itself.
    ///
    /// - Returns: Nil if it would have to wait. The body may have run up to that point, and its result is dropped.
    func readWithoutBlocking<T>(_ body: (any Transaction) throws -> T) throws -> T?

    /// Does the engine's work that a lane has to do between two transactions: with SQLite, a checkpoint if one is due.
    ///
    /// - Parameter isIdle: Whether no operation has waited for the lane for a while, so work is better done now than later.
    /// - Returns: The work done; nil if none was due, or if it continues beside the lane.
    /// - Throws: ``DatabaseFailure`` of the kind `fatal` if it is no longer known what is on disk.
    func maintain(lane: Int, isIdle: Bool) throws -> Maintenance?

    /// Whether maintenance continues beside the lane, which then calls ``maintain(lane:isIdle:)`` again soon, even if nothing is written. Only on the
    /// lane.
    func isMaintaining(lane: Int) -> Bool

    /// Closes the database in good order, once it is no longer used. With SQLite the one file then contains everything.
    func close() throws

    /// The time that rules use: one clock for all nodes that use the database, because a time written by one node has to mean the same moment on the
    /// next.
    func now() -> Timestamp

    /// Checks that the database answers, and reads its time.
    func readClock() throws

    /// Returns a name for the line of commits that the database continues. A server begins another one when a standby takes over and when a backup is
    /// restored up to some moment, and each server has its own.
    ///
    /// - Returns: Nil if it is unknown, and for a database in files, which are checked when they are opened.
    func timeline() throws -> String?
}

extension Database {
    /// A database used by a single server has the machine's clock.
    public func now() -> Timestamp { .now }

    public func readClock() throws { _ = try read { try $0.first("SELECT 1") { $0.int() } } }

    public func timeline() throws -> String? { nil }
}

extension WriteTransaction {
    public func now() throws -> Timestamp { .now }
}

extension Database {
    /// A database behind a socket always needs waiting.
    public func readWithoutBlocking<T>(_ body: (any Transaction) throws -> T) throws -> T? { nil }

    public func maintain(lane: Int, isIdle: Bool) throws -> Maintenance? { nil }
    public func isMaintaining(lane: Int) -> Bool { false }
    public func close() throws {}
}

/// A checkpoint: the write-ahead log was written into the database file.
public struct Maintenance: Sendable {
    /// The number of log frames, which are pages.
    public let logFrames: Int
    /// How many of them are in the database file.
    public let framesDone: Int
    /// What held it up; nil if the whole log is in the database.
    public let obstacle: DatabaseFailure.Obstacle?
    public let nanoseconds: UInt64
    public var isComplete: Bool { obstacle == nil }
}

/// A transaction in which each operation of a batch can fail on its own.
public protocol WriteTransaction: Transaction {
    /// The number of the ``IDGenerator``, which is reserved for this lane's connection as long as it lasts. It can change with each transaction, and
    /// then has to be continued from the database, as it has to be after a `write` of the lane has thrown.
    var idGenerator: IDGenerator.Number { get }

    /// Returns a time after the earlier statements of the transaction, and so after its locks were granted.
    func now() throws -> Timestamp

    /// Runs one operation; if it throws, its writes are undone and the rest of the batch stays.
    func attempt<T>(_ body: () throws -> T) throws -> T
}

extension WriteTransaction {
    /// Brings the tables up to date. Tables made by a newer version are a fatal failure: only that version can use them.
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

/// The engine failed: a full or broken disk, a damaged file, an unreachable server.
public struct DatabaseFailure: Error, CustomStringConvertible {
    /// How far the failure reaches.
    public enum Kind: Sendable {
        /// One statement was refused; the transaction continues.
        case statement
        /// Another transaction held a lock for too long. This one is rolled back, and can be run again.
        case locked
        /// The transaction is lost: the disk is full, the file can't be written, the server is unreachable. The next one may succeed.
        case transaction
        /// A page that an operation needs is damaged. Other operations may not need it.
        case damage
        /// A statement exceeded the database's time limit, or was cancelled there. Other statements may take less time.
        case cancelled
        /// The state of the disk is unknown: after a failed fsync only a restart is safe, from what the disk really holds.
        case fatal
    }

    /// A cause outside the database that its operator can remove.
    public enum Obstacle: Sendable {
        /// The disk has no room.
        case fullDisk
        /// Another connection reads or writes: one of this process if it has several, otherwise another program's.
        case inUse
        /// The system refused to open, read or write a file. SQLite doesn't report the reason.
        case refusedFile
    }

    public let message: String
    public let kind: Kind
    /// Nil if no outside cause is known.
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
