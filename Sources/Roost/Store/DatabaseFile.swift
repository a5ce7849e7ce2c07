import Foundation
import GRDB
import Logging

/// A SQLite file that is set aside when it can't be used, so that a damaged one never locks a user out.
struct DatabaseFile: Sendable {
    /// The file's URL; nil for a database in memory.
    var url: URL?
    /// Whether a commit must have reached the disk before it returns. Of a cache, the last commits may be lost with the power.
    var isDurable: Bool
    /// Whether the file is in a directory that an app shares with its extensions.
    var isShared = false
    var migrator: DatabaseMigrator
    /// Called with the database once it has the migrator's schema.
    var prepare: @Sendable (Database) throws -> Void = { _ in }
    var logger: Logger
    /// Called with the new name of a file that was set aside, and with the reason.
    var wasSetAside: @Sendable (URL, any Error) -> Void = { _, _ in }

    /// Opens the file, creating it when there is none.
    ///
    /// - Throws: `DatabaseError` or `CocoaError` when neither the file nor a new one in its place can be used.
    func open() throws -> DatabaseQueue {
        guard let url else { return try migrated(DatabaseQueue(configuration: configuration)) }
        try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
        do {
            return try migrated(DatabaseQueue(path: url.path, configuration: configuration))
        } catch let error as DatabaseError where Self.meansDamage(error) {
            try setAside(because: error)
        } catch let error as NewerSchema {
            try setAside(because: error)
        }
        return try migrated(DatabaseQueue(path: url.path, configuration: configuration))
    }

    /// Renames the file and what belongs to it: nothing is deleted, so that a message that was never sent can still be dug out.
    func setAside(because reason: any Error) throws {
        guard let url else { return }
        logger.error("A database can't be used and is set aside.", metadata: ["file": "\(url.path)", "error": "\(reason)"])
        let files = FileManager.default
        var number = 1
        while files.fileExists(atPath: url.path + ".damaged-\(number)") { number += 1 }
        let name = url.path + ".damaged-\(number)"
        for suffix in ["", "-wal", "-shm"] where files.fileExists(atPath: url.path + suffix) {
            try files.moveItem(atPath: url.path + suffix, toPath: name + suffix)
        }
        wasSetAside(URL(filePath: name, directoryHint: .notDirectory), reason)
    }

    static func meansDamage(_ error: DatabaseError) -> Bool {
        error.resultCode == .SQLITE_CORRUPT || error.resultCode == .SQLITE_NOTADB
    }

    private struct NewerSchema: Error, CustomStringConvertible {
        var description: String { "It was written by a newer version." }
    }

    private func migrated(_ queue: DatabaseQueue) throws -> DatabaseQueue {
        if try queue.read(migrator.hasBeenSuperseded) { throw NewerSchema() }
        try migrator.migrate(queue)
        try queue.write(prepare)
        return queue
    }

    private var configuration: Configuration {
        var configuration = Configuration()
        // An earlier client of the same files may still be closing them: SQLite then waits instead of refusing.
        configuration.busyMode = .timeout(5)
        let synchronous = isDurable ? "FULL" : "NORMAL"
        let isFile = url != nil
        // An app in the background mustn't hold locks in a directory that it shares (``SyncFiles/suspend()``).
        configuration.observesSuspensionNotifications = isShared
        configuration.prepareDatabase { database in
            if isFile { try database.execute(sql: "PRAGMA journal_mode = WAL") }
            try database.execute(sql: "PRAGMA synchronous = \(synchronous)")
        }
        return configuration
    }
}
