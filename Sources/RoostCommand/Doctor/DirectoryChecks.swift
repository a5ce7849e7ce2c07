import Foundation
import RoostServer

/// Checks of the data directory and its disk.
struct DirectoryChecks {
    private typealias File = DataDirectoryExamination.File

    let directory: URL

    func findings() async -> [Finding] {
        let manager = FileManager.default
        var isDirectory: ObjCBool = false
        guard manager.fileExists(atPath: directory.path, isDirectory: &isDirectory) else {
            return [
                Finding(
                    "data directory", .warn, "\(directory.path) doesn't exist",
                    advice: "The first roost serve creates it. If a server has run, name its directory with --data")
            ] + disk(nearestParent())
        }
        guard isDirectory.boolValue else {
            return [
                Finding(
                    "data directory", .fail, "\(directory.path) isn't a directory",
                    advice: "Move it away, or choose another with --data")
            ]
        }
        let ring = await tokenKeys()
        return [access(), secret(), ring].compactMap { $0 } + disk(directory)
    }

    private static let ownerAdvice = "Run this as the user who runs the server: only that user can read it"

    /// The finding for a data directory that can't be read and written, with the number of the system's error.
    static func inaccessible(_ path: String, _ code: Int32) -> Finding {
        Finding(
            "data directory", .fail, "\(path) can't be read and written: \(String(cString: strerror(code)))",
            advice: writingAdvice(after: code, ifNotPermitted: "Run as its owner, or chown it"))
    }

    /// Returns what to do about a place that can't be written. Only a lack of permission is a matter of users and modes.
    static func writingAdvice(after code: Int32, ifNotPermitted: String) -> String {
        switch code {
        case EACCES, EPERM: ifNotPermitted
        case ENOSPC, EDQUOT: "Free some space: a full disk stops all writes"
        case EROFS: "Mount the file system so that it can be written, or name another directory with --data"
        default: "Check the disk, or name another directory with --data"
        }
    }

    private func access() -> Finding {
        let path = directory.path
        guard Foundation.access(path, R_OK | W_OK | X_OK) == 0 else {
            return Self.inaccessible(path, errno)
        }
        // A link's attributes are its own, with mode 777.
        let attributes = try? FileManager.default.attributesOfItem(atPath: directory.resolvingSymlinksInPath().path)
        let owner = attributes?[.ownerAccountName] as? String ?? "unknown"
        let mode = File(path: path)?.mode ?? 0
        let found = "\(path), owner \(owner), mode \(String(mode, radix: 8))"
        if let id = (attributes?[.ownerAccountID] as? NSNumber)?.uint32Value, id != geteuid() {
            return Finding("data directory", .warn, found, advice: "It isn't yours: run the server as \(owner)")
        }
        guard mode & 0o077 == 0 else {
            return Finding("data directory", .warn, found, advice: "Others can read it: chmod 700 \(path.shellWord)")
        }
        return Finding("data directory", .ok, found)
    }

    private func secret() -> Finding? {
        let file = SecretFile(directory: directory)
        let path = file.url.path
        // In another user's directory it can't be seen whether there is one.
        if Foundation.access(path, F_OK) != 0, errno == EACCES {
            return Finding("secret", .fail, "\(path) can't be read", advice: Self.ownerAdvice)
        }
        guard FileManager.default.fileExists(atPath: path) else {
            // If one belongs to a database, its absence is reported with the files.
            let isFirst = !FileManager.default.fileExists(atPath: directory.appending(path: "roost.sqlite").path)
            return isFirst ? Finding("secret", .ok, "none yet: the first roost serve creates it") : nil
        }
        do { _ = try file.read() } catch {
            guard Foundation.access(path, R_OK) == 0 else {
                return Finding("secret", .fail, "\(path) can't be read", advice: Self.ownerAdvice)
            }
            return Finding(
                "secret", .fail, (error as? SecretFile.Unusable).map { "\($0.path) \($0.reason)" } ?? "\(error)",
                advice: "Restore it from a backup, or copy another node's. Without a copy, and on SQLite only: move it away, "
                    + "then roost serve --data \(directory.relativePath.shellWord) --accept-data-loss. The new one invalidates all tokens"
            )
        }
        let mode = File(path: path)?.mode ?? 0
        guard mode & 0o077 == 0 else {
            return Finding(
                "secret", .fail, "\(path) has mode \(String(mode, radix: 8))",
                advice: "Others can make tokens with it: chmod 600 it. If somebody may have read it, retire it: roost keys --help")
        }
        return Finding("secret", .ok, "\(path), mode \(String(mode, radix: 8))")
    }

    /// Checks the key ring as on a start, which refuses an unusable one. Nil if there is none.
    private func tokenKeys() async -> Finding? {
        let ring = TokenKeyRing(directory: directory)
        let path = ring.url.path
        guard FileManager.default.fileExists(atPath: path) else { return nil }
        let mode = File(path: path)?.mode ?? 0
        guard mode & 0o077 == 0 else {
            return Finding(
                "token keys", .fail, "\(path) has mode \(String(mode, radix: 8))",
                advice: "Others can make tokens with it: chmod 600 it. If somebody may have read it, replace the keys: "
                    + "roost keys --help")
        }
        do {
            let entries = try await ring.entries()
            return Finding("token keys", .ok, "\(path), \(entries.map(\.kid).joined(separator: ", "))".safe())
        } catch {
            return Finding(
                "token keys", .fail, "\(error)".safe(),
                advice: "Put it back from a backup, or from another node; no server will start with this one")
        }
    }

    /// The nearest existing parent directory. A start creates the missing ones below it, so it shows the state of the disk.
    private func nearestParent() -> URL {
        var parent = directory.absoluteURL.standardizedFileURL
        repeat {
            parent.deleteLastPathComponent()
        } while parent.path.count > 1 && !FileManager.default.fileExists(atPath: parent.path)
        return parent
    }

    private func disk(_ directory: URL) -> [Finding] { [space(in: directory), syncing(in: directory)] }

    /// A restore ends if another process makes a file in the directory that it fills, as this measurement does.
    private func syncing(in directory: URL) -> Finding {
        guard FileChecks(directory: directory, isDatabaseHere: true).isBeingFilled else { return DiskSync.finding(in: directory) }
        return Finding("fsync", .ok, "not measured while another process restores a backup here or starts")
    }

    private func space(in directory: URL) -> Finding {
        let attributes = try? FileManager.default.attributesOfFileSystem(forPath: directory.path)
        guard let free = (attributes?[.systemFreeSize] as? NSNumber)?.int64Value else {
            return Finding(
                "disk space", .warn, "can't be read for \(directory.path)", advice: "Check the free space with df")
        }
        let mebibytes = free / 1_048_576
        return switch mebibytes {
        case ..<100: Finding("disk space", .fail, "\(mebibytes) MiB free", advice: "Free some space: a full disk stops all writes")
        case ..<1024: Finding("disk space", .warn, "\(mebibytes) MiB free", advice: "Free some space before it is full")
        default: Finding("disk space", .ok, "\(mebibytes / 1024) GiB free")
        }
    }
}
