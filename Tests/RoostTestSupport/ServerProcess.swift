public import Foundation
import Synchronization

/// A server in a process of its own, to be killed.
public final class ServerProcess: Sendable {
    public let port: Int
    private let process: Mutex<Process>
    private let ended: Mailbox<Int32>

    /// The command line that was built with these tests: it stands beside them.
    public static var binary: URL {
        let tests = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        return ProcessInfo.processInfo.environment["ROOST_BINARY"].map { URL(filePath: $0) }
            ?? tests.deletingLastPathComponent().appending(path: "roost")
    }

    /// Starts a server on a free port and waits until it listens.
    ///
    /// - Parameters:
    ///   - arguments: Further ones of `roost serve`: `["--database", url]`.
    ///   - environment: Further variables.
    ///   - logFile: Where it logs.
    public static func start(
        directory: URL, arguments: [String] = [], environment: [String: String] = [:], logFile: URL? = nil
    ) async throws -> ServerProcess {
        let (process, output, ended) = try launch(
            directory: directory, arguments: arguments, environment: environment, logFile: logFile)
        var text = ""
        while let piece = await output.next(within: .seconds(60)) {
            text += piece
            if let match = text.firstMatch(of: /http:\/\/127\.0\.0\.1:(\d+)/), let port = Int(match.1), text.hasSuffix("\n") {
                return ServerProcess(port: port, process: process, ended: ended)
            }
        }
        process.terminate()
        throw Missed("a listening server; it said: \(text)")
    }

    /// Starts a server and kills it after a moment, wherever it is by then.
    public static func startAndKill(directory: URL, after delay: Duration) async throws {
        let (process, output, ended) = try launch(directory: directory)
        _ = await output.next(within: delay)
        kill(process.processIdentifier, SIGKILL)
        _ = await ended.next()
    }

    /// Starts a server that is expected to refuse: the status with which it ends by itself, and all that it wrote.
    public static func startAndWait(directory: URL, arguments: [String]) async throws -> (status: Int32?, output: String) {
        let (process, output, ended) = try launch(directory: directory, arguments: arguments, joinsErrors: true)
        let status = await ended.next(within: .seconds(60))
        if status == nil { kill(process.processIdentifier, SIGKILL) }
        var text = ""
        while let piece = await output.next() { text += piece }
        return (status, text)
    }

    private init(port: Int, process: Process, ended: Mailbox<Int32>) {
        self.port = port
        self.process = Mutex(process)
        self.ended = ended
    }

    private static func launch(
        directory: URL, arguments: [String] = [], environment: [String: String] = [:], joinsErrors: Bool = false,
        logFile: URL? = nil
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
        // A server refuses variables that it doesn't know, as those of the tests are.
        process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("ROOST_") }
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = joinsErrors ? pipe : try log(to: logFile)
        let output = pipe.fileHandleForReading.pieces()
        let ended = Mailbox<Int32>()
        process.terminationHandler = { ended.put($0.terminationStatus) }
        try process.run()
        return (process, output, ended)
    }

    /// Where servers log: nowhere, or to a file of its own for each in the directory that `ROOST_SERVER_LOGS` names.
    private static func log(to file: URL?) throws -> FileHandle {
        if let file {
            try Data().write(to: file)
            return try FileHandle(forWritingTo: file)
        }
        guard let directory = ProcessInfo.processInfo.environment["ROOST_SERVER_LOGS"] else { return .nullDevice }
        let file = URL(filePath: directory, directoryHint: .isDirectory).appending(path: "\(UUID().uuidString).log")
        try Data().write(to: file)
        return try FileHandle(forWritingTo: file)
    }

    /// SIGKILL: nothing in the process runs after this.
    public func killNow() async {
        let identifier = process.withLock { $0.processIdentifier }
        kill(identifier, SIGKILL)
        _ = await ended.next()
    }

    public var identifier: Int32 { process.withLock { $0.processIdentifier } }

    #if os(Linux)
    /// The names of the threads that it has at this moment, as `top` shows them.
    public func threadNames() throws -> Set<String> {
        let tasks = "/proc/\(identifier)/task"
        // One that ends meanwhile has none.
        let names = try FileManager.default.contentsOfDirectory(atPath: tasks).compactMap { task in
            try? String(contentsOfFile: "\(tasks)/\(task)/comm", encoding: .utf8).trimmingCharacters(in: .newlines)
        }
        return Set(names)
    }
    #endif

    /// SIGSTOP or SIGCONT, say: the process stands still, with its connections open, or goes on.
    public func signal(_ number: Int32) { kill(identifier, number) }

    /// The status with which it ended; nil when it goes on.
    public func end(within deadline: Duration) async -> Int32? { await ended.next(within: deadline) }

    /// SIGTERM, and the status with which it ended.
    public func stop() async -> Int32? {
        let identifier = process.withLock { $0.processIdentifier }
        kill(identifier, SIGTERM)
        return await ended.next()
    }
}
