import CPageVFS
public import Foundation

/// The paths of the files in a data directory on SQLite.
public struct DataFiles: Sendable {
    public let directory: URL
    // These are needed with each commit: making the path of a URL takes some microseconds.
    public let database: String
    public let log: String

    public init(directory: URL) {
        self.directory = directory
        database = directory.appending(path: "roost.sqlite").path
        log = database + "-wal"
    }

    var logIndex: String { database + "-shm" }
    public var state: String { directory.appending(path: "roost.state").path }
    public var lock: String { directory.appending(path: "roost.lock").path }
    public var secret: String { directory.appending(path: "token-secret").path }

    /// All files except the secret, which is handled elsewhere.
    var own: [String] { [database, log, logIndex, state, lock] }

    /// The files that users other than their owner may read or change, with their modes.
    public var exposed: [(path: String, mode: Int)] {
        (own + [secret]).compactMap { path in
            Self.mode(of: path).flatMap { $0 & 0o077 == 0 ? nil : (path, $0) }
        }
    }

    /// Why a server wouldn't start with these files, as sentences; nil if it would. Call this only while no server runs: a running server changes its
    /// files.
    public func refusal() -> String? {
        do {
            try requireUsable()
            _ = try StorageExamination(files: self, acceptsDataLoss: false)
            return nil
        } catch {
            return "\(error)"
        }
    }

    /// Whether the pages of the database carry checksums; nil if there is no database.
    public var hasChecksums: Bool? { DatabaseHeader(path: database)?.hasChecksums }

    /// Restricts the files to their owner.
    ///
    /// - Returns: A sentence for each file that was open to others.
    func close() throws -> [String] {
        try own.compactMap { path in
            guard let mode = Self.mode(of: path), mode & 0o077 != 0 else { return nil }
            guard chmod(path, 0o600) == 0 else {
                throw DatabaseFailure.system("\(path) is open to others, and its mode can't be changed")
            }
            return "\(path) had mode \(String(mode, radix: 8)), so others could open it. It has mode 600 now."
        }
    }

    /// Refuses unusable files before their contents are compared: an unreadable file would look damaged, and SQLite keeps its log beside the file
    /// that a link leads to.
    func requireUsable() throws {
        for path in own {
            var status = stat()
            guard lstat(path, &status) == 0 else { continue }
            switch status.st_mode & S_IFMT {
            case S_IFREG: if access(path, R_OK | W_OK) != 0 { throw Self.refusal(of: path, errno) }
            case S_IFLNK: throw Self.refusal(ofLink: path)
            default:
                throw DatabaseFailure(
                    message: "\(path) isn't a file. Move it away, or name another directory with --data.", kind: .fatal,
                    obstacle: .refusedFile)
            }
        }
    }

    static func refusal(ofLink path: String) -> DatabaseFailure {
        DatabaseFailure(
            message: "\(path) is a symbolic link. The files of a data directory must be in it: they are compared and "
                + "synced together. Replace the link with the file itself, or link the whole directory instead.",
            kind: .fatal, obstacle: .refusedFile)
    }

    static func refusal(of path: String, _ code: Int32) -> DatabaseFailure {
        let advice =
            switch code {
            case EACCES, EPERM: " Run the server as the owner of its files, or give them to its user with chown."
            case EROFS: " Mount the file system so that it can be written, or name another directory with --data."
            default: ""
            }
        return DatabaseFailure(
            message: "\(path) can't be read and written: \(String(cString: strerror(code))).\(advice)", kind: .fatal,
            obstacle: .refusedFile)
    }

    /// The failure of a start that needs disk space when there is none.
    var fullDisk: DatabaseFailure {
        DatabaseFailure(
            message: "The disk of \(directory.path) is full. Free some space, then try again.", kind: .fatal, obstacle: .fullDisk)
    }

    /// The failure when another program has the database open.
    var inUse: DatabaseFailure {
        DatabaseFailure(
            message: "\(database) is in use by another program. End that program, then try again.", kind: .fatal, obstacle: .inUse)
    }

    /// Whether another process has the database open: an SQLite connection that has read from it keeps a lock on bytes after its first gigabyte
    /// (`PENDING_BYTE`) until it closes. This process's own locks don't count, and its connections would lose theirs here: it has none yet.
    var isOpenElsewhere: Bool {
        let descriptor = open(database, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { Foundation.close(descriptor) }
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        lock.l_start = 0x4000_0000
        lock.l_len = 512
        return fcntl(descriptor, F_GETLK, &lock) == 0 && lock.l_type != Int16(F_UNLCK)
    }

    /// Tries to write a file here, of the smallest size that SQLite creates.
    ///
    /// - Returns: Why it can't be written; nil if it can.
    func writingFailure() -> DatabaseFailure? {
        let path = directory.appending(path: ".roost.trial-\(getpid())").path
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        var code = descriptor < 0 ? errno : 0
        if descriptor >= 0 {
            let bytes = [UInt8](repeating: 0, count: 64 << 10)
            let count = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            // If only a part fits, that part is written.
            if count != bytes.count { code = count < 0 ? errno : ENOSPC }
            Foundation.close(descriptor)
            unlink(path)
        }
        switch code {
        case 0: return nil
        case ENOSPC, EDQUOT: return fullDisk
        default: return Self.refusal(of: directory.path, code)
        }
    }

    /// Creates an empty file that only its owner may open, before another program creates it with another mode. Does nothing if it exists.
    func makeDatabase() throws {
        let descriptor = open(database, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw DatabaseFailure.system("Can't open \(database)") }
        Foundation.close(descriptor)
    }

    /// Returns a file's permissions, the last nine bits of its mode; nil if it doesn't exist.
    public static func mode(of path: String) -> Int? { FileStatus(path: path)?.mode }

    /// Returns a file's size; nil if it doesn't exist.
    package static func size(of path: String) -> Int64? { FileStatus(path: path)?.sizeBytes }

    /// The size of a log with the given number of frames.
    static func logSizeBytes(frames: Int32) -> Int64 { 32 + Int64(frames) * (24 + DatabaseHeader.pageSizeBytes) }

    /// The size at which a log is written into the database even if operations wait: some 64 MB, all of which a start after a kill reads.
    package static var logSizeBytesDue: Int64 { logSizeBytes(frames: Checkpoints.logFrames) }
}

/// The kernel's status of a file, or of a link's target.
public struct FileStatus: Sendable {
    public let sizeBytes: Int64
    /// Its permissions: the last nine bits of its mode.
    public let mode: Int
    /// Its device and its number on that device: no other file has both.
    public let device: UInt64
    public let number: UInt64

    /// Nil if there is no file, or if this process may not access it.
    public init?(path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        sizeBytes = Int64(status.st_size)
        mode = Int(status.st_mode & 0o777)
        device = UInt64(truncatingIfNeeded: status.st_dev)
        number = UInt64(truncatingIfNeeded: status.st_ino)
    }
}

/// The first bytes of a SQLite file, which Roost checks before SQLite does.
struct DatabaseHeader: Equatable {
    static let pageSizeBytes = Int64(ROOST_PAGE_SIZE)

    let isSQLite: Bool
    let pageSize: Int
    let reservedBytes: Int
    let pageCount: Int64
    /// `user_version`: the number of completed checkpoints.
    let generation: UInt32
    /// `application_id`: the server whose file it is; 0 for a file that was created before pages had checksums.
    let applicationID: Int32

    /// Nil if the file is shorter than a header.
    init?(path: String) {
        guard let file = FileHandle(forReadingAtPath: path), let data = try? file.read(upToCount: 100), data.count == 100 else {
            return nil
        }
        let bytes = [UInt8](data)
        func number(_ index: Int) -> UInt32 { bytes[index..<index + 4].reduce(0) { $0 << 8 | UInt32($1) } }
        isSQLite = bytes.starts(with: Array("SQLite format 3\0".utf8))
        pageSize = Int(bytes[16]) << 8 | Int(bytes[17])
        reservedBytes = Int(bytes[20])
        pageCount = Int64(number(28))
        generation = number(60)
        applicationID = Int32(bitPattern: number(68))
    }

    /// Whether pages carry checksums.
    var hasChecksums: Bool { reservedBytes == Int(ROOST_RESERVED_BYTES) }
}

/// Roost refuses to start with the files as they are: one is missing, older, damaged or another server's.
public struct DamagedFiles: Error, CustomStringConvertible {
    /// The fault, as a sentence.
    public let found: String
    /// Whether `--accept-data-loss` helps.
    public let canBeAccepted: Bool
    /// The command that continues anyway. Code that opens the database for a server inserts the name of its directory.
    package var acceptingCommand = "roost serve --accept-data-loss"

    public init(_ found: String, canBeAccepted: Bool = true) {
        self.found = found
        self.canBeAccepted = canBeAccepted
    }

    public var description: String {
        let advice =
            "The server won't start, to avoid silent data loss. Put the file back, or restore a backup into a new directory: "
            + "roost restore BACKUP --data DIRECTORY."
        guard canBeAccepted else { return "\(found) \(advice)" }
        return "\(found) \(advice) To continue with the existing data, without what is missing: \(acceptingCommand)."
    }
}
