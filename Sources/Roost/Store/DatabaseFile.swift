import Dispatch
import Foundation
import GRDB
import Logging
import NIOConcurrencyHelpers

/// A SQLite file that is set aside if it can't be used: a damaged file never locks a user out.
struct DatabaseFile: Sendable {
    /// The file's URL; nil for a database in memory.
    var url: URL?
    /// Whether a commit must have reached the disk before it returns. A cache may lose its last commits in a power failure.
    var isDurable: Bool
    var migrator: DatabaseMigrator
    /// Whether the database already matches the migrator and `prepare`. At nearly every start it does, and nothing has to be written.
    var isPrepared: @Sendable (Database) throws -> Bool = { _ in false }
    /// Called with the database once it has the migrator's schema.
    var prepare: @Sendable (Database) throws -> Void = { _ in }
    var logger: Logger
    /// Called with the new name of a file that was set aside, and with the reason.
    var wasSetAside: @Sendable (URL, any Error) -> Void = { _, _ in }

    /// Opens the file, creating it if there is none.
    ///
    /// - Throws: `DatabaseError` or `CocoaError` if neither the file nor a new one in its place can be used.
    func open() throws -> DatabaseQueue {
        try open { path in
            let queue = try path.map { try DatabaseQueue(path: $0, configuration: configuration) }
            return try migrated(queue ?? DatabaseQueue(configuration: configuration))
        }
    }

    /// Opens the file with connections for readers beside the writer's: readers get the last committed state and don't wait. In memory, one
    /// connection serves both.
    ///
    /// - Throws: The errors of ``open()``.
    func openForReaders() throws -> any DatabaseWriter {
        try open { path -> any DatabaseWriter in
            guard let path else { return try migrated(DatabaseQueue(configuration: configuration)) }
            let pool = try migrated(DatabasePool(path: path, configuration: configuration))
            do {
                try Self.openReaders(of: pool)
            } catch {
                // If only released, it might close after another file has its name, and would remove that file's log.
                try? pool.close()
                throw error
            }
            return pool
        }
    }

    /// Opens both connections for readers. Otherwise the second one would be opened when first needed, and fail if the file was deleted meanwhile,
    /// although all open connections keep working.
    private static func openReaders(of pool: DatabasePool) throws {
        let touch: @Sendable (Database) throws -> Void = { _ = try $0.schemaVersion() }
        try pool.read { database in
            try touch(database)
            let second = NIOLockedValueBox<Result<Void, any Error>>(.success(()))
            let isOpen = DispatchSemaphore(value: 0)
            pool.asyncRead { result in
                second.withLockedValue { $0 = Result { try touch(result.get()) } }
                isOpen.signal()
            }
            isOpen.wait()
            try second.withLockedValue { $0 }.get()
        }
    }

    private func open<Connections>(_ connect: (_ path: String?) throws -> Connections) throws -> Connections {
        guard let url else { return try connect(nil) }
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        do {
            return try connect(url.path)
        } catch let error as DatabaseError where Self.meansDamage(error) {
            try setAside(because: error)
        } catch let error as NewerSchema {
            try setAside(because: error)
        }
        return try connect(url.path)
    }

    /// Renames the file with its log: messages that were never sent can still be recovered from it. Of files that can be fetched again, only the last
    /// one is kept, for diagnosis. A newer version's file that can't be fetched again gets another name: it isn't damaged, and a version that knows
    /// it takes it over (``newerFiles()``).
    func setAside(because reason: any Error) throws {
        guard let url else { return }
        logger.error("A database can't be used and is set aside.", metadata: ["file": "\(url.path)", "error": "\(reason)"])
        let files = FileManager.default
        let suffix = isDurable && reason is NewerSchema ? Self.newerSuffix : ".damaged-"
        let (folder, prefix) = (url.deletingLastPathComponent(), url.lastPathComponent + ".damaged-")
        let earlier = isDurable ? [] : try files.contentsOfDirectory(atPath: folder.path).filter { $0.hasPrefix(prefix) }
        var number = 1
        while files.fileExists(atPath: url.path + suffix + "\(number)") { number += 1 }
        let name = url.path + suffix + "\(number)"
        for part in Self.parts where files.fileExists(atPath: url.path + part) {
            try files.moveItem(atPath: url.path + part, toPath: name + part)
        }
        for former in earlier { try? files.removeItem(at: folder.appending(component: former)) }
        wasSetAside(URL(filePath: name, directoryHint: .notDirectory), reason)
    }

    private static let newerSuffix = ".newer-"
    /// The suffixes of the files of one database.
    private static let parts = ["", "-wal", "-shm"]

    /// The files that were set aside because a newer version had written them, most recent first.
    func newerFiles() -> [URL] {
        guard let url else { return [] }
        let (folder, prefix) = (url.deletingLastPathComponent(), url.lastPathComponent + Self.newerSuffix)
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        let numbers = names.filter { $0.hasPrefix(prefix) }.compactMap { Int($0.dropFirst(prefix.count)) }
        return numbers.sorted(by: >).map { folder.appending(component: prefix + "\($0)") }
    }

    /// Opens a file that was set aside; nil if this version doesn't know its schema yet.
    ///
    /// - Throws: `DatabaseError`.
    func openNewer(_ url: URL) throws -> DatabaseQueue? {
        do {
            return try migrated(try DatabaseQueue(path: url.path, configuration: configuration))
        } catch is NewerSchema {
            return nil
        }
    }

    /// Opens a file that was set aside for reading, whatever its schema. The file isn't changed.
    ///
    /// - Throws: `DatabaseError`.
    func openForReading(_ url: URL) throws -> DatabaseQueue {
        var configuration = configuration
        configuration.readonly = true
        return try DatabaseQueue(path: url.path, configuration: configuration)
    }

    /// Removes a file that was set aside, with its log.
    static func remove(_ url: URL) throws {
        for part in parts where FileManager.default.fileExists(atPath: url.path + part) {
            try FileManager.default.removeItem(atPath: url.path + part)
        }
    }

    /// Whether an error means that the file's content isn't what was written.
    static func meansDamage(_ error: any Error) -> Bool {
        switch error {
        case let error as DatabaseError: error.resultCode == .SQLITE_CORRUPT || error.resultCode == .SQLITE_NOTADB
        case is DamagedRow, is DecodingError: true
        default: false
        }
    }

    private struct NewerSchema: Error, CustomStringConvertible {
        var description: String { "It was written by a newer version." }
    }

    private func migrated<Connections: DatabaseWriter>(_ connections: Connections) throws -> Connections {
        let isReady = try connections.read { database in
            if try migrator.hasBeenSuperseded(database) { throw NewerSchema() }
            return try isPrepared(database)
        }
        if isReady { return connections }
        try migrator.migrate(connections)
        try connections.write(prepare)
        return connections
    }

    /// The page cache of the writer's connection, in KiB. With SQLite's default of 2,000, which readers have, writing thousands of channels at a
    /// first connection takes a tenth longer: pages are written to the log and read back within one transaction.
    private static let pageCacheKiB = 8000

    /// The pragmas of a connection.
    static func pragmas(isFile: Bool = true, isDurable: Bool, isReadOnly: Bool = false) -> [String] {
        var pragmas = ["synchronous = \(isDurable ? "FULL" : "NORMAL")"]
        if isFile, !isReadOnly { pragmas.insert("journal_mode = WAL", at: 0) }
        if !isReadOnly { pragmas.append("cache_size = -\(pageCacheKiB)") }
        return pragmas
    }

    private var configuration: Configuration {
        var configuration = Configuration()
        // An earlier client of the same files may still be closing them: SQLite then waits instead of failing.
        configuration.busyMode = .timeout(5)
        let isFile = url != nil
        let isDurable = isDurable
        // One for a list that reads much, one for everything else.
        configuration.maximumReaderCount = 2
        configuration.prepareDatabase { database in
            let isReadOnly = database.configuration.readonly
            for pragma in Self.pragmas(isFile: isFile, isDurable: isDurable, isReadOnly: isReadOnly) {
                try database.execute(sql: "PRAGMA \(pragma)")
            }
        }
        return configuration
    }
}
