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
    private var state: String { directory.appending(path: "roost.state").path }
    private var lock: String { Self.lockPath(of: directory) }
    private var secret: String { SecretFile(directory: directory).url.path }

    private static func lockPath(of directory: URL) -> String { directory.appending(path: "roost.lock").path }

    /// A larger log means that checkpoints don't complete, whatever was written meanwhile.
    private static let logSizeBytesMax: Int64 = 256 << 20

    func findings() -> [Finding] {
        guard isDatabaseHere else { return [] }
        // What a restore has made so far isn't what a server will find.
        guard !isBeingFilled else { return [modes(), openFiles()].compactMap { $0 } }
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
                advice: "Put the file back, or restore a backup: no server starts without it")
        case (0?, _):
            return Finding(
                "database file", .fail, "\(database) is empty", advice: "Put the file back, or restore a backup")
        case (_?, false):
            return Finding(
                "database file", .fail, "\(secret) is missing next to a database",
                advice: "Put it back from a backup: a new one invalidates every issued token")
        case (let size?, true):
            // A running server's files change while they are compared.
            if !isServed, let refusal = DataDirectoryExamination(directory: directory).refusal() {
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
        guard !isServed, File(path: log)?.sizeBytes ?? 0 == 0 else {
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
        let files = [database, log, database + "-shm", lock, state]
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

    /// What is known of the process that has the directory.
    private enum Holder {
        case none
        case process(Int32, [OpenFile])
        /// There is one, or there may be one, and its open files can't be seen. The reason says what to do.
        case hidden(_ reason: String)
    }

    /// Whether a server runs on the directory, or may run there.
    var isServed: Bool { if case .none = holder() { false } else { true } }

    /// When the server that runs on the directory started, in Unix seconds. Nil if this process may not inspect that one.
    var servedSince: Double? {
        guard case .process(let process, _) = holder() else { return nil }
        return ProcessTimes(of: "\(process)")?.startedAt
    }

    /// Whether a process has the directory without its state: one that restores a backup into it, or a server that is just starting.
    var isBeingFilled: Bool {
        switch holder() {
        case .none: false
        case .process(_, let files): !hasState(files)
        // Its open files can't be seen, but a running server has made its state.
        case .hidden: File(path: state) == nil
        }
    }

    /// Compares the files that the serving process has open with those now in the directory.
    private func openFiles() -> Finding? {
        let check = "open files of the server"
        let found = holder()
        if case .hidden(let reason) = found { return Finding(check, .ok, reason) }
        guard case .process(let process, let files) = found else { return nil }
        guard hasState(files) else {
            return Finding(check, .ok, "process \(process) is restoring a backup here or starting: there is nothing to compare yet")
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

    /// Finds the process that has the directory: the one that holds the lock, or, if the lock was removed or replaced, the one that has the state
    /// open. Other files of the directory may be open in any program, such as one that copies a stopped server's or follows a log.
    private func holder() -> Holder {
        switch Self.lockState(of: directory) {
        case .unreadable: return .hidden("\(lock) is another user's: run this as that user, or as root, to compare")
        case .held: return lockHolder()
        case .free: break
        }
        let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc"))?.compactMap { Int32($0) } ?? []
        for process in processes where process != getpid() {
            if let files = Self.openFiles(of: process), hasState(files) { return .process(process, files) }
        }
        return .none
    }

    /// Finds the process that holds the lock. The number in the lock of a server in a container belongs to another process here, or to none.
    private func lockHolder() -> Holder {
        let invisible = Holder.hidden(
            "the process that holds \(lock) can't be seen from here: if it runs in a container, run this there to compare")
        guard let text = try? String(contentsOfFile: lock, encoding: .utf8),
            let process = Int32(text.trimmingCharacters(in: .whitespacesAndNewlines)), process > 0
        else { return invisible }
        if kill(process, 0) != 0, errno == ESRCH { return invisible }
        guard let files = Self.openFiles(of: process) else {
            return .hidden("process \(process) is another user's: run this as that user, or as root, to compare")
        }
        guard let file = File(path: lock), files.contains(where: { $0.identity == file.identity }) else { return invisible }
        return .process(process, files)
    }

    /// Whether the state of the directory is among a process's open files, even if it was removed: a server has it open as long as it runs.
    private func hasState(_ files: [OpenFile]) -> Bool {
        let name = directory.resolvingSymlinksInPath().path + "/roost.state"
        let identity = File(path: state)?.identity
        return files.contains { $0.identity == identity || $0.name == name || $0.name == "\(name) (deleted)" }
    }

    private enum LockState {
        case free, held
        /// This user may not open the lock's file.
        case unreadable
    }

    /// Whether a process holds the lock of a directory. The check takes the lock for a moment, in which a starting server would report that
    /// the directory is in use.
    static func isLocked(_ directory: URL) -> Bool { lockState(of: directory) == .held }

    private static func lockState(of directory: URL) -> LockState {
        let file = open(lockPath(of: directory), O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return errno == EACCES || errno == EPERM ? .unreadable : .free }
        defer { close(file) }
        guard flock(file, LOCK_SH | LOCK_NB) == 0 else { return .held }
        flock(file, LOCK_UN)
        return .free
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
