public import Foundation
import Synchronization

/// Directories of tests on disk. They are removed once the test process has ended, for whatever reason.
public enum TemporaryDirectory {
    private static let place = ProcessPlace(in: FileManager.default.temporaryDirectory)

    /// The path of a new directory, which doesn't exist yet.
    public static func make() -> URL { place.next() }
}

/// Directories for databases that live as long as a test: in memory if the machine can, where an fsync costs nothing.
public enum TemporaryPlace {
    private static let place: ProcessPlace = {
        let memory = URL(filePath: "/dev/shm", directoryHint: .isDirectory)
        let isThere = FileManager.default.isWritableFile(atPath: memory.path)
        return ProcessPlace(in: isThere ? memory : FileManager.default.temporaryDirectory)
    }()

    /// The path of a new directory, which doesn't exist yet.
    public static func make() -> URL { place.next() }

    /// Waits until no process holds the lock of a directory. It is released with the last reference to the database; but a process that
    /// another test starts at that moment holds it too, until it has executed its program.
    ///
    /// - Throws: `Missed` after half a minute.
    public static func waitUntilFree(_ directory: URL) throws {
        let lock = open(directory.appending(path: "roost.lock").path, O_RDWR | O_CLOEXEC)
        guard lock >= 0 else { return }
        defer { close(lock) }
        let end = ContinuousClock.now + .seconds(30)
        while flock(lock, LOCK_EX | LOCK_NB) != 0 {
            guard ContinuousClock.now < end else { throw Missed("the lock of \(directory.path), which somebody holds") }
            usleep(2000)
        }
    }
}

/// One directory for all that a test process makes in a place. Tests fail, throw and are killed, so removal isn't left to them.
///
/// Its name is short: the path of a data directory's socket has to fit into about 100 bytes.
private final class ProcessPlace: Sendable {
    private let root: URL
    private let count = Atomic(0)
    /// Nil if no shell could be started; in that case the directory stays.
    private let exitScript: FileHandle?

    init(in parent: URL) {
        var random = SystemRandomNumberGenerator()
        let name = "roost-test-\(getpid())-\(String(UInt16.random(in: .min ... .max, using: &random), radix: 16))"
        root = parent.appending(path: name, directoryHint: .isDirectory)
        exitScript = try? ExitScript.start("rm -rf \"$1\"", arguments: [root.path])
        try? FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
    }

    func next() -> URL {
        let number = count.add(1, ordering: .relaxed).newValue
        return root.appending(path: String(number), directoryHint: .isDirectory)
    }
}

/// A shell that runs a script when this process has ended, for whatever reason.
enum ExitScript {
    /// Starts the shell.
    ///
    /// - Returns: The pipe whose end the shell waits for. It has to be kept as long as the process lives.
    static func start(_ script: String, arguments: [String]) throws -> FileHandle {
        let process = Process()
        let lifeline = Pipe()
        process.executableURL = URL(filePath: "/bin/sh")
        process.currentDirectoryURL = URL(filePath: "/")
        process.arguments = ["-c", "trap '' INT TERM HUP; read -r line; \(script)", "sh"] + arguments
        process.standardInput = lifeline
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        // No other child may hold this pipe open.
        _ = fcntl(lifeline.fileHandleForWriting.fileDescriptor, F_SETFD, FD_CLOEXEC)
        try process.run()
        return lifeline.fileHandleForWriting
    }
}
