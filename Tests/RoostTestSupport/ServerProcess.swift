public import Foundation
import Synchronization

/// A server in its own process, to be killed.
public final class ServerProcess: Sendable {
    public let port: Int
    private let process: Mutex<Process>
    private let ended: Mailbox<Int32>
    private let logFile: URL

    /// The command line that was built next to these tests.
    public static var binary: URL {
        let tests = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        return ProcessInfo.processInfo.environment["ROOST_BINARY"].map { URL(filePath: $0) }
            ?? tests.deletingLastPathComponent().appending(path: "roost")
    }

    /// A program that was built next to these tests, by its name.
    static func program(_ name: String) -> URL {
        name == "roost" ? binary : binary.deletingLastPathComponent().appending(path: name)
    }

    /// Starts a server on a free port and waits until it listens.
    ///
    /// - Parameters:
    ///   - arguments: Further ones of `roost serve`: `["--database", url]`.
    ///   - environment: Further variables.
    ///   - input: Its standard input; nil for that of the tests.
    ///   - logFile: Its log; a file that is removed with the tests unless one is given here or `ROOST_SERVER_LOGS` names a directory.
    public static func start(
        directory: URL, arguments: [String] = [], environment: [String: String] = [:], input: FileHandle? = nil,
        logFile: URL? = nil
    ) async throws -> ServerProcess {
        let logFile = logFile ?? newLogFile()
        try Data().write(to: logFile)
        let (process, output, ended) = try launch(
            directory: directory, arguments: arguments, environment: environment, input: input,
            errors: try FileHandle(forWritingTo: logFile))
        var text = ""
        while let piece = await output.next(within: .seconds(60)) {
            text += piece
            if let match = text.firstMatch(of: /http:\/\/127\.0\.0\.1:(\d+)/), let port = Int(match.1), text.hasSuffix("\n") {
                return ServerProcess(port: port, process: process, ended: ended, logFile: logFile)
            }
        }
        process.terminate()
        throw Missed("a listening server; it printed: \(text), and logged: \(log(in: logFile))")
    }

    /// Starts a server and kills it after a moment, whatever it is doing by then.
    public static func startAndKill(directory: URL, after delay: Duration) async throws {
        let (process, output, ended) = try launch(directory: directory, errors: .nullDevice)
        _ = await output.next(within: delay)
        kill(process.processIdentifier, SIGKILL)
        _ = await ended.next()
    }

    /// Starts a server that is expected to refuse: the status with which it ends by itself, and all of its output.
    public static func startAndWait(directory: URL, arguments: [String]) async throws -> (status: Int32?, output: String) {
        let (process, output, ended) = try launch(directory: directory, arguments: arguments, errors: nil)
        let status = await ended.next(within: .seconds(60))
        if status == nil { kill(process.processIdentifier, SIGKILL) }
        var text = ""
        while let piece = await output.next() { text += piece }
        return (status, text)
    }

    private init(port: Int, process: Process, ended: Mailbox<Int32>, logFile: URL) {
        self.port = port
        self.process = Mutex(process)
        self.ended = ended
        self.logFile = logFile
    }

    /// - Parameter errors: The file of its log; nil to read the log with its output.
    private static func launch(
        directory: URL, arguments: [String] = [], environment: [String: String] = [:], input: FileHandle? = nil,
        errors: FileHandle?
    ) throws -> (Process, Mailbox<String>, Mailbox<Int32>) {
        let process = Process()
        let command = ["serve", "--data", directory.path, "--port", "0", "--drain-window", "0.2"] + arguments
        if environment.isEmpty {
            process.executableURL = binary
            process.arguments = command
        } else {
            // Twice `env`: libfaketime adds to the environment of the first process that it is loaded into, and Swift finds no arguments in
            // a process whose environment has moved.
            process.executableURL = URL(filePath: "/usr/bin/env")
            process.arguments = environment.map { "\($0)=\($1)" }.sorted() + ["/usr/bin/env", binary.path] + command
        }
        // A server refuses variables that it doesn't know, such as those of the tests.
        process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("ROOST_") }
        let pipe = Pipe()
        process.standardOutput = pipe
        if let input { process.standardInput = input }
        if let errors { process.standardError = errors } else { process.standardError = pipe }
        let output = pipe.fileHandleForReading.pieces()
        let ended = Mailbox<Int32>()
        process.terminationHandler = { ended.put($0.terminationStatus) }
        try process.run()
        #if os(Linux)
        noteEnd(of: process.processIdentifier, in: ended)
        #endif
        return (process, output, ended)
    }

    #if os(Linux)
    /// Notes the end of a process as reported by the kernel, in addition to Foundation, which learns of it from a socket that both
    /// processes hold. Foundation still reaps the process: if it does so first, it has noted the end.
    private static func noteEnd(of process: Int32, in ended: Mailbox<Int32>) {
        Thread.detachNewThread {
            var end = siginfo_t()
            while waitid(P_PID, id_t(process), &end, WEXITED | WNOWAIT) != 0 { guard errno == EINTR else { return } }
            ended.put(end._sifields._sigchld.si_status)
        }
    }
    #endif

    /// The log file of a server without a given one: its own file in the directory that `ROOST_SERVER_LOGS` names, or in a temporary one.
    private static func newLogFile() -> URL {
        guard let directory = ProcessInfo.processInfo.environment["ROOST_SERVER_LOGS"] else {
            return TemporaryDirectory.make().appendingPathExtension("log")
        }
        return URL(filePath: directory, directoryHint: .isDirectory).appending(path: "\(UUID().uuidString).log")
    }

    private static func log(in file: URL) -> Substring {
        ((try? String(contentsOf: file, encoding: .utf8)) ?? "").suffix(10_000)
    }

    /// SIGKILL: nothing in the process runs after this.
    ///
    /// - Throws: `Missed` if its end isn't noticed in time.
    public func killNow() async throws {
        signal(SIGKILL)
        guard await end(within: .seconds(60)) == nil else { return }
        throw Missed("the end of the killed server \(identifier), which is \(Self.state(of: identifier))")
    }

    /// The kernel's state of a process.
    private static func state(of process: Int32) -> Substring {
        let status = try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
        return status?.split(separator: "\n").first { $0.hasPrefix("State:") } ?? "gone"
    }

    public var identifier: Int32 { process.withLock { $0.processIdentifier } }

    #if os(Linux)
    /// The names of its threads at this moment, as `top` shows them.
    public func threadNames() throws -> Set<String> {
        let tasks = "/proc/\(identifier)/task"
        // A thread that ends meanwhile has none.
        let names = try FileManager.default.contentsOfDirectory(atPath: tasks).compactMap { task in
            try? String(contentsOfFile: "\(tasks)/\(task)/comm", encoding: .utf8).trimmingCharacters(in: .newlines)
        }
        return Set(names)
    }
    #endif

    /// Sends a signal such as SIGSTOP or SIGCONT: the process pauses, with its connections open, or continues.
    public func signal(_ number: Int32) { kill(identifier, number) }

    /// The status with which it ended; nil if it is still running.
    public func end(within deadline: Duration) async -> Int32? {
        guard let status = await ended.next(within: deadline) else { return nil }
        // Kept for the next caller.
        ended.put(status)
        return status
    }

    /// SIGTERM, and the status with which it ended.
    ///
    /// - Throws: `Missed` if it doesn't end. Then it is killed, and keeps no directory and no port.
    public func stop() async throws -> Int32 {
        signal(SIGTERM)
        if let status = await end(within: .seconds(60)) { return status }
        signal(SIGKILL)
        throw Missed("the end of the stopped server \(identifier); it logged: \(Self.log(in: logFile))")
    }
}
