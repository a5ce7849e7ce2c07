import Foundation

/// Checks that the files that a server has open are still the ones in the data directory.
///
/// Writes to a file that was removed, replaced or truncated are lost: a server that continued would acknowledge commits that the next start doesn't
/// find. Three calls of `stat` take about two microseconds.
struct FileWatch: Sendable {
    private struct Identity: Equatable, Sendable {
        var device: UInt64
        var number: UInt64
    }

    private struct Watched: Sendable {
        let path: String
        let identity: Identity
        var sizeMin: off_t
        /// When its content last changed, if only this server changes it and reports it.
        var changed: [Int]?
    }

    private var files: [Watched] = []

    /// Starts watching a file.
    mutating func add(_ path: String, noticesChanges: Bool = false) throws {
        guard let status = Self.status(of: path) else { throw DatabaseFailure.system("Can't find \(path)") }
        files.removeAll { $0.path == path }
        files.append(
            Watched(
                path: path, identity: Self.identity(of: status), sizeMin: noticesChanges ? status.st_size : 0,
                changed: noticesChanges ? Self.changed(status) : nil))
    }

    /// Allows a file to change and grow until ``noteChange(of:)``, while the server itself writes it.
    mutating func allowChanges(of path: String) {
        guard let index = files.firstIndex(where: { $0.path == path }) else { return }
        files[index].changed = nil
    }

    /// Records the current size and time of a file after the server itself has written it.
    mutating func noteChange(of path: String) {
        guard let index = files.firstIndex(where: { $0.path == path }), let status = Self.status(of: path) else { return }
        files[index].sizeMin = status.st_size
        files[index].changed = Self.changed(status)
    }

    /// The log holds everything written to it: a shorter one was truncated, and the next write would hide that.
    func checkLog(_ path: String, frames: Int32) throws {
        guard frames > 0 else { return }
        guard let status = Self.status(of: path), status.st_size >= DataFiles.logSizeBytes(frames: frames) else {
            throw DatabaseFailure(message: "\(path) was cut off or removed while the server was running.", kind: .fatal)
        }
    }

    /// - Throws: A failure that names the file.
    func check() throws {
        for file in files {
            guard let status = Self.status(of: file.path) else {
                throw DatabaseFailure(message: "\(file.path) was removed while the server was running.", kind: .fatal)
            }
            guard Self.identity(of: status) == file.identity else {
                throw DatabaseFailure(message: "\(file.path) was replaced while the server was running.", kind: .fatal)
            }
            guard status.st_size >= file.sizeMin, file.changed == nil || file.changed == Self.changed(status) else {
                throw DatabaseFailure(
                    message: "\(file.path) was changed by another program while the server was running.", kind: .fatal)
            }
        }
    }

    private static func status(of path: String) -> stat? {
        var status = stat()
        return stat(path, &status) == 0 ? status : nil
    }

    private static func identity(of status: stat) -> Identity {
        Identity(device: UInt64(truncatingIfNeeded: status.st_dev), number: UInt64(truncatingIfNeeded: status.st_ino))
    }

    private static func changed(_ status: stat) -> [Int] {
        #if os(Linux)
        [Int(status.st_mtim.tv_sec), Int(status.st_mtim.tv_nsec), Int(status.st_size)]
        #else
        [Int(status.st_mtimespec.tv_sec), Int(status.st_mtimespec.tv_nsec), Int(status.st_size)]
        #endif
    }
}
