import Foundation
import GRDB
import Logging
import NIOConcurrencyHelpers
import RoostAPI

/// The cache: the server's data that the client has, in a file that can be deleted and rebuilt.
///
/// The writes of one ``Sync/Output/store(_:)`` are one transaction, so a reader never sees rows without the position they belong to. Readers don't
/// wait for a transaction; they get the state before it. The newest transactions may not survive a power failure: the server has them.
final class Store: Sendable {
    private let file: DatabaseFile
    private let connections: Leases<any DatabaseWriter>
    /// How often the file was replaced.
    private let replacements = NIOLockedValueBox(0)
    /// What the machine knows of the positions.
    private let known = NIOLockedValueBox(OpenFiles.Known())
    /// Whether it has released the file: another store may have created a new one in its place.
    private let hasLeft = NIOLockedValueBox(false)
    /// The number of this store among those that have the file.
    private let number = Int64.random(in: 1...Int64.max)
    private let user: UserID
    private let kinds: CachedRowKinds
    private let gate: WriteGate
    let signals = ChangeSignals()

    /// Opens the cache. A damaged one, or one of a newer version, is set aside and replaced.
    ///
    /// - Parameters:
    ///   - url: The file; nil for a cache in memory.
    ///   - gate: Every write passes through it.
    ///   - kinds: The rows that it keeps.
    ///   - sizeBytesMax: The size it is trimmed to here (``CacheUpkeep`` does so later), unless another store has the file open.
    ///   - report: Called with problems of the file.
    init(
        url: URL?, user: UserID, gate: WriteGate = WriteGate(), kinds: CachedRowKinds = .standard, sizeBytesMax: Int = .max,
        logger: Logger,
        report: @escaping @Sendable (StorageProblem) -> Void = { _ in }
    ) throws {
        self.user = user
        self.kinds = kinds
        self.gate = gate
        file = DatabaseFile(
            url: url, isDurable: false, migrator: Self.migrator,
            isPrepared: { try Self.isPrepared($0, kinds) }, prepare: { try Self.prepare($0, kinds) }, logger: logger,
            wasSetAside: { report(StorageProblem(.cacheSetAside, $0, $1)) })
        let file = file
        connections = Leases(
            try OpenFiles.add(url, number) { isFirst in
                let connections = try file.openForReaders()
                // By the first store, before any other knows the positions.
                if isFirst, url != nil {
                    do {
                        // A separate transaction: it isn't rolled back if there is no room to trim.
                        try connections.write { try $0.endVisits(as: user, kinds) }
                        let isTrimmed = try connections.write { database in
                            let isTrimmed = try database.trim(to: sizeBytesMax, kinds)
                            try database.trimUsers(of: user)
                            return isTrimmed
                        }
                        if isTrimmed { try connections.writeWithoutTransaction { try $0.pack() } }
                    } catch {
                        logger.error("The cache couldn't be trimmed.", metadata: ["error": "\(error)"])
                    }
                }
                return connections
            })
    }

    /// Opens a cache for reading while another process may write it.
    ///
    /// - Throws: `RoostError` with `storage_gone` if another version has created it; `DatabaseError`.
    static func openForReading(_ url: URL) throws -> DatabaseQueue {
        var configuration = Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(5)
        let queue = try DatabaseQueue(path: url.path, configuration: configuration)
        let isOwn = try queue.read { try isPrepared($0, .standard) }
        guard isOwn else { throw RoostError(.storageGone, "The data on this device was stored by another version.") }
        return queue
    }

    deinit { leave() }

    /// Removes the store from those that have the file. Calling it again does nothing.
    private func leave() {
        let isFirst = hasLeft.withLockedValue { left in
            defer { left = true }
            return !left
        }
        if isFirst { OpenFiles.remove(file.url, number) }
    }

    /// The file that it has open; nil for one in memory.
    private var openURL: URL? { hasLeft.withLockedValue { $0 } ? nil : file.url }

    /// Applies writes in one transaction, then notifies the live objects.
    ///
    /// - Throws: `DatabaseError`; ``OpenFiles/RestartedElsewhere`` if another store of this process has invalidated the positions that were read.
    func write(_ writes: [StoreWrite]) async throws {
        let (user, kinds, url, known, store) = (user, kinds, openURL, known, number)
        let beginning = NIOLockedValueBox<OpenFiles.Beginning?>(nil)
        defer { OpenFiles.end(beginning.withLockedValue { $0 }) }
        let introduced = try await gate.pass {
            try await connections.use {
                try await $0.write { database in
                    let ending = try database.endingVisits(writes, store)
                    let shared = try database.besideOthers(ending, of: store, in: url, known.withLockedValue { $0 })
                    let begun = try known.withLockedValue { try OpenFiles.note(shared, by: store, to: url, &$0) }
                    beginning.withLockedValue { $0 = begun }
                    return try shared.writes.flatMap { try database.apply($0, as: user, kinds, by: store) }
                }
            }
        }
        signals.signal(StoreChange(writes, kinds, introducing: introduced))
    }

    /// Writes without notifying live objects.
    func change(_ body: @escaping @Sendable (Database) throws -> Void) async throws {
        try await gate.pass { try await connections.use { try await $0.write(body) } }
    }

    /// Whether another store of this process also has the file open.
    var isShared: Bool { OpenFiles.isShared(openURL) }

    /// Rewrites the file without the gaps left by deleted rows (``Database/pack()``).
    func pack() async throws {
        try await gate.pass { try await connections.use { try await $0.writeWithoutTransaction { try $0.pack() } } }
    }

    /// - Throws: ``DamagedCache`` if the file is damaged; otherwise the errors of the query, and `DatabaseError`.
    func read<Value: Sendable>(_ query: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        let number = replacementCount
        do {
            return try await connections.use { connection in
                // A cache in memory has one connection. SQLite recompiles all its statements after it was made read-only for a query.
                guard let queue = connection as? DatabaseQueue else { return try await connection.read(query) }
                return try await queue.unsafeRead(query)
            }
        } catch {
            guard DatabaseFile.meansDamage(error) else { throw error }
            throw DamagedCache(reason: error, number: number)
        }
    }

    private var replacementCount: Int { replacements.withLockedValue { $0 } }

    /// A read found damage.
    struct DamagedCache: Error, CustomStringConvertible {
        let reason: any Error
        /// How often the file had been replaced when the read began.
        fileprivate let number: Int
        var description: String { "\(reason)" }
    }

    /// Returns the positions of the streams in the cache.
    func savedState() async throws -> SavedState {
        readsPositions()
        return try await read { try $0.savedState() }
    }

    /// Restarts from now on may be missing in what is read.
    private func readsPositions() { known.withLockedValue { $0 = OpenFiles.known(of: openURL) } }

    /// The same at the start, with the overlays. A file that is found damaged is replaced, and has none.
    func recoveredState() async throws -> (saved: SavedState, overlays: [ChannelID?: Overlay]) {
        func stored() async throws -> (saved: SavedState, overlays: [ChannelID?: Overlay]) {
            readsPositions()
            let (saved, overlays) = try await read { (try $0.savedState(), try $0.overlays()) }
            return (saved, overlays)
        }
        do {
            return try await stored()
        } catch {
            try await recover(from: error)
            return try await stored()
        }
    }

    /// Replaces the file after a write or a read failed because of damage. The file stays unchanged after any other failure, and if it was replaced
    /// since the failed read began.
    ///
    /// - Returns: Whether it was replaced.
    /// - Throws: `RoostError` with `storage_in_use` while the files are released, because another process may have them; `DatabaseError` or
    ///   `CocoaError` if neither the file nor a new one in its place can be used.
    @discardableResult
    func recover(from failure: any Error) async throws -> Bool {
        let damage = failure as? DamagedCache
        let error = damage?.reason ?? failure
        guard DatabaseFile.meansDamage(error), damage?.number ?? replacementCount == replacementCount else { return false }
        try await gate.pass {
            // Reads meanwhile find nothing.
            let damaged = await connections.replace(with: try empty())
            replacements.withLockedValue { $0 += 1 }
            try? await Blocking.perform { try damaged.close() }
            try file.setAside(because: error)
            _ = await connections.replace(with: try file.openForReaders())
        }
        signals.signal(.everything)
        return true
    }

    /// Releases the file because the user logs out. From here on the store is an empty one in memory, and live objects show that.
    ///
    /// - Throws: `DatabaseError` if the file can't be closed. The store then keeps it.
    func detachFile() async throws {
        let former = await connections.replace(with: try empty())
        do {
            try await Blocking.perform { try former.close() }
        } catch {
            _ = await connections.replace(with: former)
            throw error
        }
        // The app may keep the chat that has ended, beside a new one.
        leave()
        signals.end()
    }

    /// An empty cache in memory.
    private func empty() throws -> any DatabaseWriter {
        var memory = file
        memory.url = nil
        return try memory.openForReaders()
    }
}

/// Encodes and decodes JSON in the columns of the cache and the outbox.
enum StoredJSON {
    static func encode(_ value: some Encodable) throws -> Data { Data(try JSONWriter.bytes(of: value)) }

    static func decode<Value: Decodable>(_ type: Value.Type = Value.self, from data: Data) throws -> Value {
        try JSONDecoder().decode(type, from: data)
    }

    /// Decodes what a server sent. A newer version of the app may have stored it, with values that this one doesn't know.
    static func decodeAnswer<Value: Decodable>(_ type: Value.Type, from data: Data) throws -> Value {
        try JSONDecoder.forAnswers.decode(type, from: data)
    }
}
