import CoreMetrics
import Foundation
import Logging
import NIOCore
import RoostAPI
import RoostServer
import ServiceLifecycle
import UnixSignals

/// One server in this process, from its start to its end, with failures that say what to do.
struct ServerRun {
    let settings: Settings
    var acceptsDataLoss = false

    /// Runs until SIGTERM or SIGINT, or until the terminal that it was started in is closed. Closing it, which sends SIGHUP, counts as the first signal
    /// like the others; a second one, a second or more later, ends the process at once, and so does one before the server has started.
    ///
    /// - Parameter onRunning: Called in parallel to the server once it listens, with whether the data directory is new.
    func run(onRunning: @escaping @Sendable (_ address: URL, _ isFirst: Bool) async throws -> Void) async throws {
        try settings.requireKnownServers()
        let level = settings.logLevel
        LoggingSystem.bootstrap { label in
            var log = StandardErrorLog(label: label)
            log.logLevel = level
            return log
        }
        let metrics = PrometheusRegistry()
        MetricsSystem.bootstrap(metrics)
        // SQLite's memory statistics aren't used in this process.
        RoostServer.leaveSQLiteUncounted()
        let logger = Logger(label: "roost")
        let ending = await EndingSignals(Self.hasTerminal ? [.sigterm, .sigint, .sighup] : [.sigterm, .sigint], logger: logger)
        let following = Task { await ending.follow() }
        defer { following.cancel() }
        let hangUps = Self.hasTerminal ? nil : await UnixSignalsSequence(trapping: .sighup)
        let ignoring = Task { if let hangUps { await Self.ignore(hangUps, logger: logger) } }
        defer { ignoring.cancel() }
        for warning in settings.warnings + settings.lowered { logger.warning("\(warning)") }
        let isFirst = !FileManager.default.fileExists(atPath: SecretFile(directory: settings.dataDirectory).url.path)
        let connectionsMax = OpenFileLimit.raise(for: settings.whole(.connectionsMax), logger: logger)
        // Files created here hold users' messages: nobody else may open them.
        umask(0o077)
        do {
            if isFirst { try requireFreeAddress() }
            try prepareDirectory()
            var configuration = settings.server
            configuration.connectionsMax = connectionsMax
            configuration.acceptsDataLoss = acceptsDataLoss
            let server = try await RoostServer(configuration: configuration, metrics: metrics, logger: logger) { port in
                // The server begins to serve when this returns, so work that uses it runs in a separate task.
                Task {
                    do {
                        try await onRunning(settings.address(port: port), isFirst)
                    } catch {
                        logger.error("\(error)")
                    }
                }
            }
            // The failure is reported once, below; the group would log it too.
            var quiet = logger
            quiet.logLevel = .critical
            let group = ServiceGroup(configuration: .init(services: [server], logger: quiet))
            ending.direct(to: group)
            try await group.run()
        } catch {
            throw explain(error)
        }
    }

    /// Whether the server was started in a terminal, whose closing sends SIGHUP.
    private static var hasTerminal: Bool { isatty(STDIN_FILENO) == 1 }

    /// Elsewhere SIGHUP asks many services to reload their settings. Unhandled, it would end the process abruptly.
    private static func ignore(_ hangUps: UnixSignalsSequence, logger: Logger) async {
        for await _ in hangUps {
            logger.notice(
                "SIGHUP has no effect: settings are read when the server starts, token keys whenever they change.")
        }
    }

    /// Fails as listening would, so that a failing first start leaves no data directory with a secret of no server.
    ///
    /// The socket is bound but doesn't listen: clients that connect now are refused, and retry.
    private func requireFreeAddress() throws {
        let (host, port) = (settings.text(.host), settings.whole(.port))
        guard port != 0 else { return }
        let address = try SocketAddress.makeAddressResolvingHost(host, port: port)
        #if os(Linux)
        let descriptor = socket(address.protocol.rawValue, Int32(SOCK_STREAM.rawValue), 0)
        #else
        let descriptor = socket(address.protocol.rawValue, SOCK_STREAM, 0)
        #endif
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        // Like the server's own socket: an address that was in use a moment ago is free.
        var reuse: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &reuse, socklen_t(MemoryLayout<Int32>.size))
        let isBound = address.withSockAddr { bind(descriptor, $0, socklen_t($1)) } == 0
        guard isBound else { throw IOError(errnoCode: errno, reason: "bind") }
    }

    /// Creates the data directory, for its owner only, and checks that it is writable.
    private func prepareDirectory() throws {
        let path = settings.dataDirectory.path
        var isDirectory: ObjCBool = false
        if FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory), !isDirectory.boolValue {
            throw Failure("The data directory \(path) isn't a directory. Give another one with --data.")
        }
        do {
            try DataDirectory.make(settings.dataDirectory)
        } catch {
            throw Failure(
                "The data directory \(path) can't be created: \(SystemError.reason(of: error)). Give another one with --data.")
        }
        guard access(path, R_OK | W_OK | X_OK) == 0 else {
            throw Failure(
                "The data directory \(path) can't be written: \(String(cString: strerror(errno))). Give another one with --data.")
        }
    }

    private func explain(_ error: any Error) -> Failure {
        if let failure = error as? Failure { return failure }
        let (host, port) = (settings.text(.host), settings.whole(.port))
        switch (error as? IOError)?.errnoCode {
        case EADDRINUSE:
            return Failure(
                "Port \(port) on \(host) is in use. Free it, or choose another with --port or ROOST_PORT; 0 takes any free one.")
        case EADDRNOTAVAIL: return Failure("\(host) isn't an address of this machine. Choose another with --host.")
        case EACCES: return Failure("Port \(port) needs root. Choose one above 1023 with --port.")
        case let code?:
            return Failure(
                "\(host), port \(port) can't be listened on: \(String(cString: strerror(code))). Choose another with --host.")
        case nil: break
        }
        if error is SocketAddressError.UnknownHost { return Failure("There is no host \(host). Choose another with --host.") }
        if let refusal = error as? RoostError { return Failure(refusal.message) }
        // Roost's own failures are whole sentences that say what to do.
        let text = "\(error)".safe()
        return Failure(text.hasSuffix(".") ? text : "The server can't run: \(text)")
    }
}
