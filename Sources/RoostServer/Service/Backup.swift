import Crypto
public import Foundation
import RoostCore
public import RoostDatabase

/// A backup of a server on SQLite: a directory with a copy of the database and a file that shows whether it is complete.
///
/// `backup.json` is written last. A directory without it isn't a backup.
public struct Backup: Codable, Sendable {
    /// Increases when a later version writes backups that this one can't read.
    public var format = 1
    public let version: String
    public let madeAt: String
    public let epoch: String
    public let database: DatabaseCopy
    /// Whether the token secret is in the directory too.
    public let hasSecret: Bool
    /// Where the key ring is (`token-keys.json`). Nil in a backup of a version that didn't tell.
    public let keys: KeyRing?

    /// Where a server's key ring is when a backup has been made. Without it, a secret that was retired would be valid again.
    public enum KeyRing: String, Codable, Sendable {
        /// The server had none.
        case none
        /// In the directory, beside the secret.
        case included
        /// In the server's data directory only.
        case separate
    }

    /// Rows of a table of the copy.
    public func rows(in table: String) -> Int64 { database.rows[table] ?? 0 }
    public var pages: Int64 { database.pages }
    public var checksum: String { database.checksum }

    static let databaseName = "roost.sqlite"
    static let manifestName = "backup.json"
    static let secretName = "token-secret"
    static let keysName = "token-keys.json"

    /// Why a backup can't be made or used, and what to do.
    public struct Unusable: Error, CustomStringConvertible {
        public let description: String
        init(_ description: String) { self.description = description }
    }

    // MARK: Making

    /// Makes a backup in a new directory, reads it back, and only then gives the directory its name.
    ///
    /// - Parameters:
    ///   - data: The data directory of the server.
    ///   - withSecret: Whether the token secret and the key ring are copied too.
    /// - Throws: ``Unusable`` if the directory exists; `DatabaseFailure`; `DamagedFiles` if the copy isn't intact.
    static func make(of database: SQLiteDatabase, data: URL, withSecret: Bool, in directory: URL) throws -> Backup {
        let manager = FileManager.default
        guard directory.path.hasPrefix("/") else { throw Unusable("The directory of a backup must begin with a slash.") }
        guard !manager.fileExists(atPath: directory.path) else {
            throw Unusable("\(directory.path) already exists. A backup never overwrites anything: name another directory.")
        }
        let partial = directory.deletingLastPathComponent().appending(
            path: ".\(directory.lastPathComponent).partial-\(UUID().uuidString.prefix(8))", directoryHint: .isDirectory)
        do {
            try manager.createDirectory(
                at: partial, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            let file = partial.appending(path: databaseName).path
            try database.copy(to: file)
            try SQLiteDatabase.seal(copy: file)
            let copy = try SQLiteDatabase.verify(copy: file)
            var keys = KeyRing.none
            if manager.fileExists(atPath: data.appending(path: keysName).path) { keys = withSecret ? .included : .separate }
            if withSecret { try manager.copyItem(at: data.appending(path: secretName), to: partial.appending(path: secretName)) }
            if keys == .included { try manager.copyItem(at: data.appending(path: keysName), to: partial.appending(path: keysName)) }
            guard let epoch = try database.read({ try $0.setting("epoch") }) else {
                throw Unusable("The database has no epoch: no server has started on it.")
            }
            let backup = Backup(
                version: RoostVersion.current, madeAt: Date.now.ISO8601Format(),
                epoch: epoch, database: copy, hasSecret: withSecret, keys: keys)
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
            try Durable.write(encoder.encode(backup), to: partial.appending(path: manifestName))
            for name in [databaseName, secretName, keysName] { try Durable.syncIfThere(partial.appending(path: name)) }
            try Durable.syncIfThere(partial)
            // Of two backups made at the same time, one fails here: a directory that isn't empty isn't replaced.
            guard rename(partial.path, directory.path) == 0 else {
                throw Unusable("\(directory.path) can't be made: \(String(cString: strerror(errno))).")
            }
            try Durable.syncIfThere(directory.deletingLastPathComponent())
            return backup
        } catch {
            try? manager.removeItem(at: partial)
            throw error
        }
    }

    // MARK: Using

    /// Reads a backup and every page of its database.
    public static func verify(_ directory: URL) throws -> Backup {
        let manifest = directory.appending(path: manifestName)
        guard let data = FileManager.default.contents(atPath: manifest.path),
            let backup = try? JSONDecoder().decode(Backup.self, from: data)
        else { throw Unusable("\(directory.path) isn't a complete backup: it has no readable \(manifestName).") }
        guard backup.format == 1 else {
            throw Unusable("\(directory.path) was made by a newer version of Roost (\(backup.version)). Restore it with that one.")
        }
        let found = try SQLiteDatabase.verify(copy: directory.appending(path: databaseName).path)
        guard found == backup.database else {
            throw Unusable("\(directory.path) isn't what it was when it was made: its database was changed or damaged.")
        }
        return backup
    }

    /// The source of a restored server's secret and key ring.
    public enum Secret: Sendable {
        case backup
        /// - Parameter keys: The key ring, if the backup says that there is one elsewhere.
        case file(URL, keys: URL? = nil)
        /// A new one. All tokens become invalid.
        case new
    }

    /// Makes a data directory from a backup, with a new epoch: clients that are ahead of the backup resync.
    ///
    /// - Throws: ``Unusable`` if the data directory isn't new, the backup isn't whole, or the secret isn't its database's.
    public static func restore(_ backup: URL, to directory: URL, secret: Secret) throws -> Backup {
        let manager = FileManager.default
        let there = (try? manager.contentsOfDirectory(atPath: directory.path)) ?? []
        guard there.isEmpty, !manager.fileExists(atPath: directory.path) || manager.isWritableFile(atPath: directory.path) else {
            throw Unusable("\(directory.path) isn't empty. A backup is restored into a new directory.")
        }
        let verified = try verify(backup)
        let secretText = try text(of: secret, in: backup, verified)
        let keysData = try keyRing(of: secret, in: backup, verified)
        try manager.createDirectory(at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        do {
            let file = directory.appending(path: databaseName)
            try manager.copyItem(at: backup.appending(path: databaseName), to: file)
            try manager.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file.path)
            try Durable.syncIfThere(file)
            // A database without a state file: the new server gets a lineage and an epoch of its own.
            let database = try SQLiteDatabase(directory: directory, acceptsDataLoss: true)
            try database.write(lane: 0) { transaction in
                let known = try transaction.setting(Storage.fingerprintName)
                guard let secretText else { return try transaction.forget(Storage.fingerprintName) }
                let given = try SecretFile.secret(in: secretText, path: "The secret")
                guard known == nil || known == Storage.fingerprint(of: given) else {
                    throw Unusable(
                        "The secret isn't the one that this database was used with: all existing tokens would become invalid. "
                            + "To accept that, use --new-secret.")
                }
            }
            try database.close()
            // The key ring first: without it, a secret that was retired would be valid again.
            if let keysData { try Durable.write(keysData, to: directory.appending(path: keysName)) }
            if let secretText { try SecretFile(directory: directory).write(secretText) }
            return verified
        } catch {
            // The directory was empty, and what is in it now is ours.
            for name in (try? manager.contentsOfDirectory(atPath: directory.path)) ?? [] {
                try? manager.removeItem(at: directory.appending(path: name))
            }
            throw error
        }
    }

    private static func text(of secret: Secret, in backup: URL, _ verified: Backup) throws -> String? {
        let file: URL
        switch secret {
        case .new: return nil
        case .file(let given, _): file = given
        case .backup:
            guard verified.hasSecret else {
                throw Unusable(
                    "The backup has no token secret. Name the file with --secret, or make a new one with --new-secret, which ends all tokens."
                )
            }
            file = backup.appending(path: secretName)
        }
        guard let text = try? String(contentsOf: file, encoding: .utf8) else { throw Unusable("\(file.path) can't be read.") }
        _ = try SecretFile.secret(in: text, path: file.path)
        return text
    }

    /// Returns the key ring that the secret goes with; nil if there was none, and for a new secret.
    private static func keyRing(of secret: Secret, in backup: URL, _ verified: Backup) throws -> Data? {
        let file: URL
        switch (secret, verified.keys) {
        case (.new, _): return nil
        case (.file(_, let given?), _): file = given
        case (_, .included?): file = backup.appending(path: keysName)
        case (_, .separate?):
            throw Unusable(
                "The server also had keys in \(keysName), and they aren't in the backup. Name the file with --keys, or make a new secret with --new-secret, which ends all tokens."
            )
        case (_, nil), (_, KeyRing.none?): return nil
        }
        guard let data = try? Data(contentsOf: file) else { throw Unusable("\(file.path) can't be read.") }
        return data
    }
}

/// Files that are on disk when the call returns.
enum Durable {
    static func write(_ data: Data, to url: URL) throws {
        try data.write(to: url)
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: url.path)
        try syncIfThere(url)
    }

    static func syncIfThere(_ url: URL) throws {
        let descriptor = open(url.path, O_RDONLY | O_CLOEXEC)
        if descriptor < 0, errno == ENOENT { return }
        defer { close(descriptor) }
        guard descriptor >= 0, fsync(descriptor) == 0 else {
            throw Backup.Unusable("\(url.path) can't be brought to disk: \(String(cString: strerror(errno))).")
        }
    }
}
