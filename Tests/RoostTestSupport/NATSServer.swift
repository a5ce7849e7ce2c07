import Foundation
import Synchronization

/// A real `nats-server` on a free loopback port, to be killed and restarted.
///
/// A shell stands in between: it reads from a pipe that this process holds, and kills the server when the pipe ends. So the server ends
/// with the tests, however they end.
public final class NATSServer: Sendable {
    /// One run of the server. Its log ends when it has ended.
    private struct Run {
        let process: Process
        let lifeline: FileHandle
        let identifier: pid_t
        let clientPort: Int
        let monitorPort: Int
        let ended: Mailbox<Void>
    }
    private let run: Mutex<Run?>
    private let arguments: [String]
    public let port: Int
    private let monitorPort: Int

    public var url: String { "nats://127.0.0.1:\(port)" }

    /// Starts a server and waits until it accepts connections. Further arguments are the server's own: `["--user", "ann"]`.
    public static func start(arguments: [String] = []) async throws -> NATSServer {
        let run = try await LoopbackPort.retryingWhereTaken {
            try await launch(port: try LoopbackPort.free(), monitorPort: try LoopbackPort.free(), arguments: arguments)
        }
        return NATSServer(run, arguments: arguments)
    }

    private init(_ run: Run, arguments: [String]) {
        self.run = Mutex(run)
        self.arguments = arguments
        port = run.clientPort
        monitorPort = run.monitorPort
    }

    /// A loopback port on which nothing listens at the moment, for a server that is started later.
    public static func reserve() async throws -> NATSServer {
        let server = try await start()
        await server.killNow()
        return server
    }

    /// Restarts it after it was stopped or killed: on the same port, with no state, and with other arguments if any are given.
    public func startAgain(arguments other: [String]? = nil) async throws {
        let next = try await Self.launch(port: port, monitorPort: monitorPort, arguments: other ?? arguments)
        run.withLock { $0 = next }
    }

    /// SIGTERM, and waits until it has ended.
    public func stop() async { await end(with: SIGTERM) }

    /// SIGKILL: nothing in the server runs after this.
    public func killNow() async { await end(with: SIGKILL) }

    /// Stops the server in its tracks: connections stay, and nothing answers.
    public func freeze() { signal(SIGSTOP) }
    public func thaw() { signal(SIGCONT) }

    private func signal(_ signal: Int32) {
        // The shell hasn't waited for the server while its pipe is open, so the identifier is still its own.
        run.withLock { run in
            if let run { _ = kill(run.identifier, signal) }
        }
    }

    private func end(with signal: Int32) async {
        self.signal(signal)
        guard let ending = run.withLock({ run in run.take() }) else { return }
        _ = await ending.ended.next(within: .seconds(10))
        try? ending.lifeline.close()
    }

    private static func launch(port: Int, monitorPort: Int, arguments: [String]) async throws -> Run {
        let process = Process()
        process.executableURL = URL(filePath: "/bin/sh")
        // The shell closes the log, so the log ends with the server. `read` ends with the pipe. The shell doesn't call `wait` at the end:
        // Foundation starts it with SIGCHLD blocked, by which it would notice the end.
        // Debian has the server outside ordinary users' path.
        let script = "PATH=$PATH:/usr/sbin; nats-server \"$@\" </dev/null & echo $!; exec 1>&- 2>&-; read -r line; kill -9 $!"
        process.arguments =
            ["-c", script, "sh", "-a", "127.0.0.1", "-p", String(port), "-m", String(monitorPort)] + arguments
        let lifeline = Pipe()
        let log = Pipe()
        process.standardInput = lifeline
        process.standardOutput = log
        process.standardError = log
        // No other child may hold this server's pipe open.
        _ = fcntl(lifeline.fileHandleForWriting.fileDescriptor, F_SETFD, FD_CLOEXEC)
        try process.run()

        let ended = Mailbox<Void>()
        let output = log.fileHandleForReading.pieces { ended.close() }
        var text = ""
        while let piece = await output.next(within: .seconds(30)) {
            text += piece
            guard text.contains("Server is ready"),
                let identifier = text.firstMatch(of: /(?m)^(\d+)$/).flatMap({ pid_t($0.1) }),
                let client = text.firstMatch(of: /client connections on 127\.0\.0\.1:(\d+)/).flatMap({ Int($0.1) }),
                let monitor = text.firstMatch(of: /http monitor on 127\.0\.0\.1:(\d+)/).flatMap({ Int($0.1) })
            else { continue }
            return Run(
                process: process, lifeline: lifeline.fileHandleForWriting, identifier: identifier, clientPort: client,
                monitorPort: monitor, ended: ended)
        }
        try? lifeline.fileHandleForWriting.close()
        throw Missed("a listening nats-server; it said: \(text)")
    }
}

// Returns the server's counts, from its monitor.
extension NATSServer {
    /// How many subscriptions its clients have together.
    public func subscriptionCount() async throws -> Int {
        try await monitor("/connz").matches(of: /"subscriptions": (\d+)/).compactMap { Int($0.1) }.reduce(0, +)
    }

    /// How many messages clients gave to it, and how many it gave to clients, since it started.
    public func messageCounts() async throws -> (received: Int, sent: Int) {
        let text = try await monitor("/varz")
        guard let received = text.firstMatch(of: /"in_msgs": (\d+)/).flatMap({ Int($0.1) }),
            let sent = text.firstMatch(of: /"out_msgs": (\d+)/).flatMap({ Int($0.1) })
        else { throw Missed("message counts in \(text)") }
        return (received, sent)
    }

    private func monitor(_ path: String) async throws -> String {
        let connection = try await RawConnection.connect(port: monitorPort)
        try await connection.send("GET \(path) HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
        return await connection.receiveAll()
    }
}
