import Foundation
import RoostServer

/// Checks of the files in the data directory: that none is missing, that nobody else can open them, that the log is checkpointed, and that
/// a running server writes to these very files.
struct FileChecks {
    private typealias File = DataDirectoryExamination.File

    let directory: URL
    /// Whether the database is a file here. With PostgreSQL only the secret is.
    let isDatabaseHere: Bool

    private var database: String { directory.appending(path: "roost.sqlite").path }
    private var log: String { database + "-wal" }
    private var lock: String { Self.lockPath(of: directory) }
    private var secret: String { SecretFile(directory: directory).url.path }

    private static func lockPath(of directory: URL) -> String { directory.appending(path: "roost.lock").path }

    /// A larger log means that checkpoints don't complete, whatever was written meanwhile.
    private static let logSizeBytesMax: Int64 = 256 << 20

    func findings() -> [Finding] {
        guard isDatabaseHere else { return [] }
        return [pieces(), checksums(), modes(), logSize(), openFiles()].compactMap { $0 }
    }

    // MARK: What is there

    private func pieces() -> Finding? {
        let size = File(path: database)?.sizeBytes
        let hasSecret = File(path: secret) != nil
        switch (size, hasSecret) {
        case (nil, false): return nil
        case (nil, true):
            return Finding(
                "database file", .fail, "\(database) is missing, but there is a secret: a server has run here before",
                advice: "Put the file back, or restore a backup; a start without it would start with an empty database")
        case (0?, _):
            return Finding(
                "database file", .fail, "\(database) is empty", advice: "Put the file back, or restore a backup")
        case (_?, false):
            return Finding(
                "database file", .fail, "\(secret) is missing next to a database",
                advice: "Put it back from a backup: a new one invalidates every issued token")
        case (let size?, true):
            // A running server's files change while they are compared.
            if holder() == nil, let refusal = DataDirectoryExamination(directory: directory).refusal() {
                return Finding(
                    "database file", .fail, "no server would start: \(refusal.safe())", advice: "See docs/operations/backup.md")
            }
            return Finding("database file", .ok, "\(database), \(Self.mebibytes(size))")
        }
    }

    private func checksums() -> Finding? {
        switch DataDirectoryExamination(directory: directory).hasChecksums {
        case nil: nil
        case true?: damage()
        case false?:
            Finding(
                "page checksums", .warn, "the database was created before pages had them: damaged pages would be served",
                advice: "Start the server: it adds them")
        }
    }

    /// Compares the pages with their checksums, unless a running server changes them or a log has newer ones for the next start.
    private func damage() -> Finding {
        let check = "page checksums"
        guard holder() == nil, File(path: log)?.sizeBytes ?? 0 == 0 else {
            return Finding(check, .ok, "every page of the database has one, which is verified when the page is read")
        }
        do {
            guard let page = try DataDirectoryExamination(directory: directory).firstDamagedPage() else {
                return Finding(check, .ok, "every page of the database matches its own")
            }
            return Finding(
                check, .fail, "page \(page) of \(database) doesn't match its own: its content would be refused",
                advice: "Restore a backup, and check the disk")
        } catch {
            return Finding(check, .fail, "\(error)".safe(), advice: "Check that this user may read the file, and check the disk")
        }
    }

    private func modes() -> Finding? {
        let files = [database, log, database + "-shm", lock, directory.appending(path: "roost.state").path]
        let exposed = files.compactMap { path in
            File(path: path).flatMap { $0.mode & 0o077 == 0 ? nil : "\(path) has mode \(String($0.mode, radix: 8))" }
        }
        guard File(path: database) != nil else { return nil }
        guard exposed.isEmpty else {
            return Finding(
                "file modes", .fail, exposed.joined(separator: ", "),
                advice:
                    "Others on this machine can read users' messages: chmod 600 the files and chmod 700 \(directory.path.shellWord)"
            )
        }
        return Finding("file modes", .ok, "only their owner can open the files")
    }

    private func logSize() -> Finding? {
        guard let size = File(path: log)?.sizeBytes else { return nil }
        guard size <= Self.logSizeBytesMax else {
            return Finding(
                "write-ahead log", .fail, "\(log) has \(Self.mebibytes(size)): checkpoints don't complete",
                advice:
                    "Check the server's log for their errors, for a full disk, and for another program that reads the database")
        }
        return Finding("write-ahead log", .ok, Self.mebibytes(size))
    }

    // MARK: What a running server has open

    /// Whether a server runs on the directory.
    var isServed: Bool { holder() != nil }

    /// When the server that runs on the directory started, in Unix seconds. Nil if this process may not inspect that one: the number in the
    /// lock of a server in a container belongs to another process here.
    var servedSince: Double? {
        guard let process = holder(), let file = File(path: lock),
            Self.openFiles(of: process)?.contains(where: { $0.identity == file.identity }) == true
        else { return nil }
        return ProcessTimes(of: "\(process)")?.startedAt
    }

    /// Compares the files that the serving process has open with those now in the directory.
    private func openFiles() -> Finding? {
        guard let process = holder() else { return nil }
        let check = "open files of the server"
        guard let files = Self.openFiles(of: process) else {
            return Finding(check, .ok, "process \(process) is another user's: run this as that user, or as root, to compare")
        }
        func differences(_ paths: [String]) -> [String] {
            paths.compactMap { path -> String? in
                guard let there = File(path: path) else { return "\(path) was removed" }
                return files.contains { $0.identity == there.identity } ? nil : "\(path) was replaced"
            }
        }
        let (data, wrong) = (differences([database, log]), differences([database, log, lock]))
        guard wrong.isEmpty else {
            return Finding(
                check, .fail,
                "process \(process) has different files open from those in this directory: \(wrong.joined(separator: ", "))",
                // The lock's file holds no data, and the lock on the directory itself still keeps other servers out.
                advice: data.isEmpty
                    ? "Nothing is lost, but the server ends at its next write: restart it"
                    : "What it stores is lost when it ends. Copy the files from /proc/\(process)/fd now, then stop it and restore a backup"
            )
        }
        return Finding(check, .ok, "process \(process) writes to the files in this directory")
    }

    /// The process that serves from this directory: the one that holds the lock, or, if the lock was removed, one that has a file of the
    /// directory open.
    private func holder() -> Int32? {
        if Self.isLocked(directory), let text = try? String(contentsOfFile: lock, encoding: .utf8),
            let process = Int32(text.trimmingCharacters(in: .whitespacesAndNewlines)), process > 0
        {
            return process
        }
        let place = directory.resolvingSymlinksInPath().path + "/roost."
        let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc"))?.compactMap { Int32($0) } ?? []
        return processes.first { process in
            process != getpid() && Self.openFiles(of: process)?.contains { $0.name.hasPrefix(place) } == true
        }
    }

    /// Whether a process holds the lock of a directory. The check takes the lock for a moment, in which a starting server would report that
    /// the directory is in use.
    static func isLocked(_ directory: URL) -> Bool {
        let file = open(lockPath(of: directory), O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return false }
        defer { close(file) }
        guard flock(file, LOCK_SH | LOCK_NB) == 0 else { return true }
        flock(file, LOCK_UN)
        return false
    }

    private struct OpenFile {
        /// The kernel's current name of it, even after it was moved.
        let name: String
        let identity: DataDirectoryExamination.File.Identity
    }

    /// Nil for a process that this one may not inspect.
    private static func openFiles(of process: Int32) -> [OpenFile]? {
        let place = "/proc/\(process)/fd"
        return try? FileManager.default.contentsOfDirectory(atPath: place).compactMap { number -> OpenFile? in
            guard let name = try? FileManager.default.destinationOfSymbolicLink(atPath: "\(place)/\(number)"),
                let file = File(path: "\(place)/\(number)")
            else { return nil }
            return OpenFile(name: name, identity: file.identity)
        }
    }

    private static func mebibytes(_ bytes: Int64) -> String {
        bytes < 10 << 20 ? "\(bytes / 1024) KiB" : "\(bytes >> 20) MiB"
    }
}
