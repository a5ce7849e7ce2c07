import Crypto
package import Foundation
import RoostAPI
import RoostCore
package import RoostDatabase

/// A backup of a server on SQLite: a directory with a copy of the database and a manifest.
///
/// The manifest, `backup.json`, is written last. A directory without it isn't a complete backup.
package struct Backup: Codable, Sendable {
    /// Increases when a later version writes backups that this one can't read.
    package var format = 1
    /// The version of the server that made it.
    package let version: String
    /// When it was made, in ISO 8601.
    package let madeAt: String
    /// The epoch of the database.
    package let epoch: String
    /// The copy of the database.
    package let database: DatabaseCopy
    /// Whether the token secret is in the directory too.
    package let hasSecret: Bool
    /// Where the key ring is (`token-keys.json`). Nil in a backup by a version that didn't record it.
    package let keys: KeyRing?
    /// The fingerprint of the secret that the database was used with. Nil in a backup by a version that didn't record it.
    package let secretFingerprint: String?
    /// Whether the data directory's configuration file is in the directory too. Nil in a backup by a version that left it out.
    package let hasSettings: Bool?

    /// Where the server's key ring was when the backup was made. Without the ring, a retired secret would be valid again.
    package enum KeyRing: String, Codable, Sendable {
        /// The server had none.
        case none
        /// In the directory, next to the secret.
        case included
        /// In the server's data directory only.
        case separate
    }

    /// The number of rows in a table of the copy.
    package func rows(in table: String) -> Int64 { database.rows[table] ?? 0 }
    /// The number of pages of the copy.
    package var pages: Int64 { database.pages }
    /// The checksum of the copy's content.
    package var checksum: String { database.checksum }

    static let databaseName = "roost.sqlite"
    static let manifestName = "backup.json"
    static let secretName = "token-secret"
    static let keysName = "token-keys.json"
    /// The configuration file that a server reads from its data directory.
    package static let settingsName = "roost.json"

    /// Why a backup can't be made or used, and what to do.
    package struct Unusable: Error, CustomStringConvertible {
        package let description: String
        init(_ description: String) { self.description = description }

        /// A directory that can't be made or written.
        ///
        /// - Parameter user: The user who writes there, as a sentence names them.
        init(writing path: String, _ code: Int32, as user: String) {
            let advice =
                switch code {
                case ENOSPC, EDQUOT: "Free some space, or name a directory on another disk."
                case EACCES, EPERM, EROFS: "Name a directory that \(user) may write to."
                case ENOTDIR, EEXIST: "A file is in its way: name another directory."
                default: "Name another directory."
                }
            self.init("\(path) can't be written: \(String(cString: strerror(code))). \(advice)")
        }

        /// A file or directory that can't be read.
        init(reading path: String, _ error: any Error) {
            let code = SystemError.code(of: error)
            let advice = code == EACCES || code == EPERM ? " Run this as a user who may." : ""
            self.init("\(path) can't be read: \(SystemError.reason(of: error)).\(advice)")
        }

        /// A file that the running server has in memory, and that has changed since so that no server would start with it.
        ///
        /// - Parameter fault: Worded to follow the file's name.
        init(wrong file: URL, _ fault: String) {
            self.init("\(file.path) \(fault). Put the right one back before the server ends: the next start would need it.")
        }
    }

    /// Turns a failure to write a directory into sentences that name it and say what to do: Foundation's and SQLite's errors are for programmers.
    /// Call it before the written files are removed, since removing them makes room on a full disk.
    static func explained(_ error: any Error, writing directory: URL, as user: String) -> any Error {
        if (error as? DatabaseFailure)?.obstacle == .fullDisk { return Unusable(writing: directory.path, ENOSPC, as: user) }
        guard let code = SystemError.code(of: error) else { return error }
        return Unusable(writing: directory.path, code, as: user)
    }

    private static func contents(of file: URL) throws -> Data {
        do {
            return try Durable.read(file)
        } catch {
            throw Unusable(reading: file.path, error)
        }
    }

    // MARK: Making

    /// The prefix of the temporary directory, next to the final one, in which a backup is made. It is left behind if the server is killed
    /// meanwhile.
    package static func partialPrefix(of directory: URL) -> String { ".\(directory.lastPathComponent).partial-" }

    /// Makes a backup in a temporary directory, reads it back, and only then renames it. The configuration file of the data directory is copied as
    /// it is.
    ///
    /// - Parameters:
    ///   - data: The data directory of the server.
    ///   - withSecret: Whether the token secret and the key ring are copied too.
    ///   - needsKeyRing: Whether the server uses keys of a key ring, so its file mustn't be missing.
    ///   - pace: The pace of the copy: a server's by default. Tests pass one that counts.
    /// - Throws: ``Unusable`` if the directory exists or can't be written, the copy isn't intact, or the secret or the key ring isn't the server's;
    ///   `DatabaseFailure`.
    package static func make(
        of database: SQLiteDatabase, data: URL, withSecret: Bool, needsKeyRing: Bool = false, in directory: URL,
        pace: CopyPace = .whileServing
    ) throws -> Backup {
        let manager = FileManager.default
        guard directory.path.hasPrefix("/") else { throw Unusable("The directory of a backup must begin with a slash.") }
        guard !manager.fileExists(atPath: directory.path) else {
            throw Unusable("\(directory.path) already exists. A backup never overwrites anything: name another directory.")
        }
        let above = directory.deletingLastPathComponent()
        let missing = MissingDirectories(upTo: above)
        let partial = above.appending(
            path: partialPrefix(of: directory) + UUID().uuidString.prefix(8), directoryHint: .isDirectory)
        do {
            try manager.createDirectory(
                at: partial, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            let file = partial.appending(path: databaseName).path
            try database.copy(to: file, pace: pace)
            try SQLiteDatabase.seal(copy: file)
            let copy = try verify(copy: file, "The copy was removed: check the disk, and make another backup.", pace: pace)
            var keys = KeyRing.none
            if manager.fileExists(atPath: data.appending(path: keysName).path) {
                keys = withSecret ? .included : .separate
            } else if needsKeyRing {
                throw Unusable(wrong: data.appending(path: keysName), "is missing, and the server still uses what it said")
            }
            let hasSettings = manager.fileExists(atPath: data.appending(path: settingsName).path)
            var names = withSecret ? [secretName] : []
            if keys == .included { names.append(keysName) }
            if hasSettings { names.append(settingsName) }
            let fingerprint = try database.read { try $0.setting(Storage.fingerprintName) }
            for name in names {
                let file = data.appending(path: name)
                let content = try contents(of: file)
                try requireRestorable(content, of: file, fingerprint)
                try Durable.write(content, to: partial.appending(path: name))
            }
            guard let epoch = try database.read({ try $0.setting("epoch") }) else {
                throw Unusable("The database has no epoch: no server has started on it.")
            }
            let backup = Backup(
                version: RoostVersion.current, madeAt: Date.now.ISO8601Format(),
                epoch: epoch, database: copy, hasSecret: withSecret, keys: keys,
                secretFingerprint: fingerprint, hasSettings: hasSettings)
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
            try Durable.write(encoder.encode(backup), to: partial.appending(path: manifestName))
            try Durable.syncIfExists(partial.appending(path: databaseName))
            try Durable.syncIfExists(partial)
            // Of two backups made to one directory at the same time, one fails here: `rename` doesn't replace a directory with files in it.
            guard rename(partial.path, directory.path) == 0 else {
                throw Unusable("\(directory.path) can't be created: \(String(cString: strerror(errno))).")
            }
            try Durable.syncIfExists(above)
            try missing.syncNames()
            return backup
        } catch {
            let failure = explained(error, writing: directory, as: "the server's user")
            try? manager.removeItem(at: partial)
            throw failure
        }
    }

    /// Reads the key ring of a data directory, if it has one, as a start does. The server has its own in memory.
    ///
    /// - Parameter isSecretRetired: Whether the server has retired its token secret, so the ring has to say so.
    /// - Throws: ``Unusable``.
    package static func requireUsableKeyRing(of data: URL, isSecretRetired: Bool) async throws {
        let file = data.appending(path: keysName)
        guard FileManager.default.fileExists(atPath: file.path) else { return }
        let content = try contents(of: file)
        let ring: TokenKeySet
        do { ring = try await TokenKeySet(content) } catch { throw Unusable(wrong: file, "isn't a key ring: \(error)") }
        guard ring.isTokenSecretRetired || !isSecretRetired else {
            throw Unusable(wrong: file, "doesn't say any longer that the token secret is retired")
        }
    }

    /// Checks a secret or a key ring that a backup includes. The server has its own in memory, and doesn't notice what became of the file. The content
    /// of the ring's keys is checked before (``requireUsableKeyRing(of:isSecretRetired:)``).
    private static func requireRestorable(_ content: Data, of file: URL, _ fingerprint: String?) throws {
        switch file.lastPathComponent {
        case secretName:
            let secret = try? SecretFile.secret(in: String(decoding: content, as: UTF8.self), path: file.path)
            guard let secret, fingerprint == nil || fingerprint == Storage.fingerprint(of: secret) else {
                throw Unusable(wrong: file, "isn't the secret that the server uses")
            }
        case keysName:
            do { _ = try TokenKeySet.document(in: content) } catch {
                throw Unusable(wrong: file, "isn't a key ring: \(error)")
            }
        default: break
        }
    }

    /// Reads a copy of the database back.
    ///
    /// - Parameters:
    ///   - advice: What to do if it isn't intact, as sentences.
    ///   - pace: Nil to read without pauses.
    private static func verify(copy path: String, _ advice: String, pace: CopyPace? = nil) throws -> DatabaseCopy {
        do {
            return try SQLiteDatabase.verify(copy: path, pace: pace)
        } catch let damaged as DamagedFiles {
            throw Unusable("\(damaged.found) \(advice)")
        }
    }

    // MARK: Using

    /// Reads a backup: every page of its database, and the secret, the key ring and the configuration file if they are in it.
    ///
    /// - Parameter secret: The secret and the key ring to read for a restore with them. A new secret needs neither.
    /// - Throws: ``Unusable``; `SecretFile.Unusable`; `DatabaseFailure` if the database can't be read.
    package static func verify(_ directory: URL, secret: Secret = .backup) async throws -> Backup {
        let backup = try verifyDatabase(of: directory)
        switch secret {
        case .backup:
            // What isn't in the backup may be kept elsewhere.
            if backup.hasSecret { try verify(secret: directory.appending(path: secretName), of: backup) }
            if backup.keys == .included { _ = try await keyRing(in: directory.appending(path: keysName)) }
        case .file(let file, _):
            try verify(secret: file, of: backup)
            _ = try await keyRing(of: secret, in: directory, backup)
        case .new: break
        }
        _ = try settings(in: directory, backup)
        return backup
    }

    private static func verify(secret file: URL, of backup: Backup) throws {
        let secret = try SecretFile.secret(in: String(decoding: contents(of: file), as: UTF8.self), path: file.path)
        guard backup.secretFingerprint == nil || backup.secretFingerprint == Storage.fingerprint(of: secret) else {
            throw Unusable(
                "\(file.path) isn't the secret that the database was used with. Restore with the right one, named by --secret, or with "
                    + "--new-secret, which invalidates all tokens.")
        }
    }

    /// Reads a backup's manifest and every page of its database.
    private static func verifyDatabase(of directory: URL) throws -> Backup {
        let manifest = directory.appending(path: manifestName)
        let data: Data
        do {
            data = try Data(contentsOf: manifest)
        } catch {
            let code = SystemError.code(of: error)
            guard code == ENOENT || code == ENOTDIR else { throw Unusable(reading: manifest.path, error) }
            let isThere = FileManager.default.fileExists(atPath: directory.path)
            let found = isThere ? "isn't a complete backup: it has no \(manifestName)" : "doesn't exist"
            throw Unusable("\(directory.path) \(found). Name the directory that roost backup made.")
        }
        // Another format may lack any member, so only its number and the version's name are read.
        let heading = try? JSONDecoder().decode(JSONValue.self, from: data)
        if let format = heading?["format"]?.intValue, format > 1 {
            let version = heading?["version"]?.stringValue
            let named = version.map { " (\($0))" } ?? ""
            throw Unusable("\(directory.path) was made by a newer version of Roost\(named). Restore it with that version.")
        }
        guard let backup = try? JSONDecoder().decode(Backup.self, from: data), backup.format == 1 else {
            throw Unusable("\(manifest.path) doesn't describe a backup: it was changed or damaged. Use another backup.")
        }
        let found = try verify(
            copy: directory.appending(path: databaseName).path, "The backup is damaged: use another one.")
        guard found == backup.database else {
            throw Unusable(
                "\(directory.path) has changed since it was made: its database was changed or damaged. Use another backup.")
        }
        return backup
    }

    /// The source of a restored server's secret and key ring.
    package enum Secret: Sendable {
        case backup
        /// - Parameter keys: The key ring, if the backup says that it is kept elsewhere.
        case file(URL, keys: URL? = nil)
        /// A new one, made by the restore. All tokens become invalid.
        case new
    }

    /// Makes a data directory from a backup, with a new epoch: clients that are ahead of the backup resync.
    ///
    /// The directory is locked until it is complete. If the restore fails, only what it has made is removed.
    /// - Throws: ``Unusable`` if the data directory isn't new, the backup isn't complete, the secret isn't the database's, or the key ring can't be
    ///   read as one; `DirectoryLock.Held` if a server or another restore has the directory.
    package static func restore(_ backup: URL, to directory: URL, secret: Secret) async throws -> Backup {
        let user = "this user"
        var made = try NewDataDirectory(directory, for: user)
        do {
            // A secret in the backup isn't checked here: it doesn't matter if another one is named.
            let verified = try verifyDatabase(of: backup)
            let secretText = try text(of: secret, in: backup, verified)
            let keysData = try await keyRing(of: secret, in: backup, verified)
            let settingsData = try settings(in: backup, verified)
            try made.requireNothingElse()
            // The secret first, and the database last: no server starts with a secret next to a missing or incomplete database. Otherwise what a
            // killed restore leaves could be taken for a new directory, or for one without keys and settings.
            try made.write(Data((secretText ?? SecretFile.makeSecret().text).utf8), as: secretName)
            if let keysData { try made.write(keysData, as: keysName) }
            if let settingsData { try made.write(settingsData, as: settingsName) }
            try made.syncNames()
            try made.copy(backup.appending(path: databaseName), as: databaseName)
            try made.reserve(databaseFileNames)
            try renew(made, secretText)
            try made.complete()
            return verified
        } catch {
            let failure = explained(error, writing: directory, as: user)
            made.remove()
            throw failure
        }
    }

    /// The files that a database makes next to its own.
    private static let databaseFileNames = ["roost.state", "\(databaseName)-wal", "\(databaseName)-shm"]

    /// Gives the database of a new directory its own lineage and epoch, as any database without a state file gets, and checks the secret against
    /// the one it was used with.
    private static func renew(_ directory: NewDataDirectory, _ secretText: String?) throws {
        let database = try SQLiteDatabase(directory: directory.url, acceptsDataLoss: true, base: nil, lock: directory.lock)
        do {
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
        } catch {
            // The caller removes its files next.
            try? database.close()
            throw error
        }
        try database.close()
    }

    /// Returns the text of the secret's file; nil for a new secret.
    private static func text(of secret: Secret, in backup: URL, _ verified: Backup) throws -> String? {
        let file: URL
        switch secret {
        case .new: return nil
        case .file(let given, _): file = given
        case .backup:
            guard verified.hasSecret else {
                throw Unusable(
                    "The backup has no token secret. Name the file with --secret, or make a new one with --new-secret, which invalidates all tokens."
                )
            }
            file = backup.appending(path: secretName)
        }
        let text = String(decoding: try contents(of: file), as: UTF8.self)
        _ = try SecretFile.secret(in: text, path: file.path)
        return text
    }

    /// Returns the key ring that belongs to the secret; nil if there was none, and for a new secret.
    private static func keyRing(of secret: Secret, in backup: URL, _ verified: Backup) async throws -> Data? {
        let file: URL
        switch (secret, verified.keys) {
        case (.new, _): return nil
        case (.file(_, let given?), _): file = given
        case (_, .included?): file = backup.appending(path: keysName)
        case (_, .separate?):
            throw Unusable(
                "The server also had keys in \(keysName), and they aren't in the backup. Name the file with --keys, or make a new secret with --new-secret, which invalidates all tokens."
            )
        case (_, nil), (_, KeyRing.none?): return nil
        }
        return try await keyRing(in: file)
    }

    /// Returns the configuration file unchecked: the server reports what it can't use. Nil if there was none.
    private static func settings(in backup: URL, _ verified: Backup) throws -> Data? {
        verified.hasSettings == true ? try contents(of: backup.appending(path: settingsName)) : nil
    }

    /// Returns the bytes of a key ring after reading it as a server would: one that can't be read keeps the server from starting.
    private static func keyRing(in file: URL) async throws -> Data {
        let data = try contents(of: file)
        do {
            _ = try await TokenKeySet(data)
        } catch {
            throw Unusable(
                "\(file.path) isn't a key ring: \(error). Name a copy of the server's \(keysName) with --secret and --keys.")
        }
        return data
    }
}
