import Foundation
import RoostDatabase

/// A data directory while it is being filled:
/// 1. It is made if it doesn't exist, and locked, so no server starts on it before it is complete. It must be empty.
/// 2. Files are made in it; none is overwritten.
/// 3. At the end everything is flushed to disk. If anything fails, the files made here are removed, and files that others put there meanwhile stay.
struct NewDataDirectory {
    let url: URL
    let lock: DirectoryLock
    /// The directories that were made, the outermost first.
    private let directories: [String]
    /// The names of the files that were made.
    private var names: [String] = []

    /// The name of the lock file. A directory with nothing else in it is new too: a restore that was killed early leaves that.
    private static let lockName = "roost.lock"

    /// - Parameter user: The user who writes there, as a sentence names them.
    /// - Throws: ``Backup/Unusable`` if the directory isn't empty or can't be made; `DirectoryLock.Held`.
    init(_ url: URL, for user: String) throws {
        self.url = url
        try Self.requireUsable(url, for: user)
        directories = try Self.make(url, for: user)
        let hasLock = access(url.appending(path: Self.lockName).path, F_OK) == 0
        do {
            lock = try DirectoryLock(directory: url)
        } catch {
            Self.remove(directories)
            throw Backup.explained(error, writing: url, as: user)
        }
        if !hasLock { names.append(Self.lockName) }
        do {
            try requireNothingElse()
        } catch {
            remove()
            throw error
        }
    }

    private static func requireUsable(_ url: URL, for user: String) throws {
        var isDirectory: ObjCBool = false
        guard FileManager.default.fileExists(atPath: url.path, isDirectory: &isDirectory) else { return }
        guard isDirectory.boolValue else { throw Backup.Unusable("\(url.path) is a file. Name a new directory with --data.") }
        guard access(url.path, R_OK | W_OK | X_OK) == 0 else { throw Backup.Unusable(writing: url.path, errno, as: user) }
        try requireEmpty(url, but: [lockName])
    }

    /// Makes a directory and its missing parents.
    ///
    /// - Returns: The paths of those it made, the outermost first.
    private static func make(_ url: URL, for user: String) throws -> [String] {
        var made: [String] = []
        for path in MissingDirectories(upTo: url).paths {
            if mkdir(path, 0o700) == 0 {
                made.append(path)
            } else if errno != EEXIST {
                let failure = Backup.Unusable(writing: url.path, errno, as: user)
                remove(made)
                throw failure
            }
        }
        return made
    }

    private static func requireEmpty(_ url: URL, but names: [String]) throws {
        guard try FileManager.default.contentsOfDirectory(atPath: url.path).allSatisfy(names.contains) else {
            throw Backup.Unusable(
                "\(url.path) isn't empty. A backup is restored into a new directory: name one with --data.")
        }
    }

    // MARK: Filling

    /// Refuses a directory in which another process has put something since it was made.
    func requireNothingElse() throws { try Self.requireEmpty(url, but: names + [Self.lockName]) }

    /// Makes a file with a copy of another.
    mutating func copy(_ source: URL, as name: String) throws {
        try Durable.copy(source, to: url.appending(path: name))
        names.append(name)
    }

    /// Makes a file.
    mutating func write(_ data: Data, as name: String) throws {
        try Durable.write(data, to: url.appending(path: name))
        names.append(name)
    }

    /// Takes the names of files that the database makes here, none of which exists yet. They are removed with the others.
    mutating func reserve(_ names: [String]) throws {
        try requireNothingElse()
        self.names += names
    }

    /// Flushes the names of the files that were made so far to disk, before others are made.
    func syncNames() throws { try Durable.syncIfExists(url) }

    // MARK: Ending

    /// Flushes the directory to disk, with the names of everything that was made, and unlocks it.
    func complete() throws {
        try syncNames()
        for path in directories.reversed() {
            try Durable.syncIfExists(URL(filePath: path, directoryHint: .isDirectory).deletingLastPathComponent())
        }
        lock.release()
    }

    /// Removes what was made, the lock file last, and unlocks the directory.
    func remove() {
        for name in names.reversed() { unlink(url.appending(path: name).path) }
        lock.release()
        Self.remove(directories)
    }

    /// Directories in which another process has put something stay.
    private static func remove(_ directories: [String]) {
        for path in directories.reversed() { rmdir(path) }
    }
}
