import Foundation
import GRDB
import Logging
import RoostAPI
import Synchronization

/// The cache: the data that the client has from the server, in a file that can be deleted and rebuilt.
///
/// The writes of one ``Sync/Output/store(_:)`` are one transaction, so that a reader never sees rows without the position that they
/// belong to. It does not guarantee that the newest transactions survive a power cut: the server has them.
final class Store: Sendable {
    private let file: DatabaseFile
    private let queue: Mutex<DatabaseQueue>
    private let user: UserID
    private let kinds: CachedRowKinds
    let signals = ChangeSignals()

    /// Opens the cache. One that is damaged or from a newer version is moved aside and replaced.
    ///
    /// - Parameters:
    ///   - url: The file; nil for a cache in memory.
    ///   - kinds: The rows that it keeps.
    init(url: URL?, user: UserID, kinds: CachedRowKinds = .standard, logger: Logger) throws {
        self.user = user
        self.kinds = kinds
        file = DatabaseFile(
            url: url, isDurable: false, migrator: Self.migrator, prepare: { try Self.prepare($0, kinds) }, logger: logger)
        queue = Mutex(try file.open())
    }

    private var database: DatabaseQueue { queue.withLock { $0 } }

    /// Applies writes in one transaction, then notifies the live objects.
    func write(_ writes: [StoreWrite]) async throws {
        let (user, kinds) = (user, kinds)
        try await database.write { database in
            for write in writes { try database.apply(write, as: user, kinds) }
        }
        signals.signal(StoreChange(writes, kinds))
    }

    func read<Value: Sendable>(_ query: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        try await database.read(query)
    }

    /// Returns the positions of the streams in the cache.
    func savedState() async throws -> SavedState {
        try await read { try $0.savedState() }
    }

    /// Replaces the file after a write failed because it is damaged. After any other failure the file stays unchanged.
    func recover(from error: any Error) throws {
        guard let error = error as? DatabaseError, DatabaseFile.meansDamage(error) else { return }
        try queue.withLock { queue in
            try? queue.close()
            try file.putAside()
            queue = try file.open()
        }
        signals.signal(.everything)
    }
}

/// Models in the cache's columns.
enum StoredJSON {
    static func encode(_ value: some Encodable) throws -> Data { Data(try JSONWriter.bytes(of: value)) }

    static func decode<Value: Decodable>(_ type: Value.Type = Value.self, from data: Data) throws -> Value {
        try JSONDecoder().decode(type, from: data)
    }
}
