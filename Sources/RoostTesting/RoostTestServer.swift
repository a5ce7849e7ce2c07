public import Foundation
public import Logging
public import Roost
public import RoostAPI
import RoostServer
import ServiceLifecycle

/// A Roost server for an app's tests: the real server, in the test process, on a free port of this machine.
///
///     let server = try await RoostTestServer()
///     let ann = server.chat(as: "ann")
///     try await ann.connect()
///     …
///     try await server.stop()
///
/// Nothing is simulated: it permits, refuses and counts exactly as the server does. It starts in a few hundredths of a second and has its own data,
/// so every test can have one. ``stop()`` deletes the data, which is in memory if the system has a directory for that (`/dev/shm` on Linux), and
/// otherwise among its temporary files.
public final class RoostTestServer: Sendable {
    /// The address for an app's `Chat`.
    public let url: URL
    private let directory: URL
    private let settings: Settings
    private let logger: Logger
    private let keys: TokenKeys
    private let time: TestTime
    private let runs: Runs

    /// Starts a server. It also starts in a cancelled task, such as that of a test past its time limit, and is stopped like any other.
    ///
    /// - Parameters:
    ///   - options: The options of the whole app; the defaults are those of `roost serve`.
    ///   - onPush: Called with each message for members who aren't connected, in place of a push service. Nil by default.
    ///   - logger: The server's log. If nil, only critical failures are logged.
    /// - Throws: `RoostError` for options out of range, and errors of the file system and the network.
    public init(
        options: AppOptions = AppOptions(), onPush: (@Sendable (PushNotification) -> Void)? = nil, logger: Logger? = nil
    ) async throws {
        directory = Self.memory.appending(component: "roost-test-\(UUID().uuidString)", directoryHint: .isDirectory)
        settings = Settings(options: options, onPush: onPush)
        var quiet = Logger(label: "roost-test")
        quiet.logLevel = .critical
        self.logger = logger ?? quiet
        time = TestTime()
        let run = try await Run(in: directory, port: 0, settings, time: time, logger: self.logger)
        runs = Runs(run)
        var components = URLComponents()
        components.scheme = "http"
        components.host = "127.0.0.1"
        components.port = run.port
        guard let url = components.url else { throw RoostError(.internalError, "The server has no address.") }
        self.url = url
        keys = await TokenKeys(secret: try SecretFile(directory: directory).read())
    }

    deinit {
        let (runs, directory) = (runs, directory)
        Task { await runs.end(in: directory) }
    }

    /// A directory in memory, or the one for temporary files.
    private static var memory: URL {
        let shared = URL(filePath: "/dev/shm", directoryHint: .isDirectory)
        return FileManager.default.isWritableFile(atPath: shared.path) ? shared : FileManager.default.temporaryDirectory
    }

    // MARK: Users

    /// Makes a token as an app's backend would. The user's first connection creates the user.
    ///
    /// - Parameters:
    ///   - user: The user that the token is for.
    ///   - role: `admin` for a backend's operations.
    ///   - lifetime: How long it is valid. Nil, the default, is an hour, or `AppOptions.tokenLifetimeSecondsMax` if that is less. The server refuses
    ///     a longer lifetime, and treats a token with a lifetime that isn't more than 0 as expired.
    /// - Throws: Errors of signing.
    public func token(for user: UserID, role: AppRole = .user, lifetime: Duration? = nil) async throws -> String {
        let lifetime = lifetime ?? .seconds(min(3600, settings.options.tokenLifetimeSecondsMax))
        let expiry = Date(timeIntervalSinceNow: lifetime / .seconds(1))
        return try await keys.sign(.init(user: user, role: role, expiresAt: expiry))
    }

    /// A user's chat with this server, as an app makes it for the signed-in user. It isn't connected yet.
    ///
    /// - Parameters:
    ///   - user: The user.
    ///   - role: `admin` for a backend's operations.
    ///   - storage: Where the chat keeps its files. Nothing is written by default, so tests don't see each other's files.
    public func chat(as user: UserID, role: AppRole = .user, storage: Chat.Storage = .inMemory) -> Chat {
        Chat(url: url, user: user, configuration: configuration(storage: storage)) { [self] in
            try await token(for: user, role: role)
        }
    }

    /// The configuration of this server's chats, for a chat that an app's own code makes: it follows ``advance(by:)``, and reconnects soon after an
    /// outage.
    ///
    ///     let chat = Chat(url: server.url, user: "ann", configuration: server.configuration()) { try await server.token(for: "ann") }
    ///
    /// - Parameter storage: Where the chat keeps its files. Nothing is written by default, so tests don't see each other's files.
    public func configuration(storage: Chat.Storage = .inMemory) -> Chat.Configuration {
        // A short backoff: the first attempt after an outage is made soon.
        Chat.Configuration(storage: storage, backoff: .milliseconds(5)...(.milliseconds(100)), clock: time)
    }

    /// Calls an operation once, on a separate connection, to prepare data before the test.
    ///
    ///     try await server.call(UpsertUser(user: "bob", displayName: "Bob"), as: "backend", role: .admin)
    ///
    /// - Throws: The errors of `Chat.connect(timeout:)`, with a timeout of 30 seconds, and of `Chat.call(_:)`.
    @discardableResult
    public func call<Call: RoostAPI.Operation>(
        _ operation: Call, as user: UserID, role: AppRole = .user
    ) async throws -> Call.Response {
        let chat = chat(as: user, role: role)
        try await chat.connect(timeout: .seconds(30))
        let result: Result<Call.Response, any Error>
        do { result = .success(try await chat.call(operation)) } catch { result = .failure(error) }
        await chat.disconnect()
        return try result.get()
    }

    // MARK: Time

    /// The current time of the server and of its chats: those that it makes, and others with its ``configuration(storage:)``.
    public var now: Timestamp { time.timestamp }

    /// Moves the clock of the server and of its chats forward: to the end of a silence or a mute, or past the 7 days for which the server recognises
    /// a call by its key.
    ///
    ///     try await channel.silence(for: .seconds(3600))
    ///     server.advance(by: .seconds(3600))
    ///
    /// All timeouts and waits of a chat use this clock, so an unanswered call may end with `unavailable`. A chat asks for the server's time when it
    /// connects: move by days only while it is disconnected, or its changes get keys that are days old. This doesn't expire tokens, and other waits
    /// in the app or in the server, such as the one before old keys are deleted, take real time. The clock then runs on, even while the server is
    /// away.
    ///
    /// - Parameter duration: How far to move. The clock can't go back: a duration that isn't more than 0 changes nothing.
    public func advance(by duration: Duration) { time.advance(by: duration) }

    // MARK: Outages

    /// Simulates an outage: connections end, and nothing listens at ``url`` until ``endOutage()``. Calling it again does nothing.
    ///
    /// - Throws: Errors of the file system.
    public func startOutage() async throws { try await runs.stop() }

    /// Starts the server again, at the same address and with the same data. Does nothing while it runs.
    ///
    /// - Throws: Errors of the file system and the network, also if the port has been taken meanwhile.
    public func endOutage() async throws {
        let (directory, settings, time, logger, port) = (directory, settings, time, logger, url.port ?? 0)
        try await runs.start { try await Run(in: directory, port: port, settings, time: time, logger: logger) }
    }

    /// Stops the server and deletes its data. Its chats would keep trying to reconnect: disconnect or release them.
    ///
    /// - Throws: Errors of the file system.
    public func stop() async throws {
        try await runs.stop()
        guard FileManager.default.fileExists(atPath: directory.path) else { return }
        try FileManager.default.removeItem(at: directory)
    }
}

/// The settings that all starts of a server share.
private struct Settings: Sendable {
    let options: AppOptions
    let onPush: (@Sendable (PushNotification) -> Void)?
}

/// One start of the server, until it is stopped.
private struct Run: Sendable {
    let port: Int
    private let group: ServiceGroup
    private let running: Task<Void, any Error>

    init(in directory: URL, port: Int, _ settings: Settings, time: TestTime, logger: Logger) async throws {
        try await Self.waitUntilFree(directory)
        var configuration = RoostServer.Configuration(dataDirectory: directory)
        configuration.port = port
        configuration.options = settings.options
        if let onPush = settings.onPush {
            configuration.pushSender = { $0.forEach(onPush) }
        }
        configuration.drainWindow = .zero
        configuration.eventLoopCount = 1
        configuration.clock = { time.timestamp }
        let (ports, listening) = AsyncStream.makeStream(of: Int.self)
        let server = try await RoostServer(configuration: configuration, logger: logger) { listening.yield($0) }
        let group = ServiceGroup(configuration: .init(services: [server], logger: logger))
        let running = Task {
            defer { listening.finish() }
            try await group.run()
        }
        // A stream ends at once in a cancelled task. The server would seem to have ended, and would run on with nothing to stop it. So it's
        // awaited in a task of its own.
        let listened = Task { await ports.first { _ in true } }
        guard let port = await listened.value else {
            // It ended instead of listening; its error has the reason.
            try await running.value
            throw RoostError(.internalError, "The server ended before it listened.")
        }
        (self.port, self.group, self.running) = (port, group, running)
    }

    /// The lock of a data directory is released with the last reference to its database, a moment after the former server has stopped.
    private static func waitUntilFree(_ directory: URL) async throws {
        let lock = open(directory.appending(path: "roost.lock").path, O_RDWR | O_CLOEXEC)
        guard lock >= 0 else { return }
        defer { close(lock) }
        while flock(lock, LOCK_EX | LOCK_NB) != 0 { try await Task.sleep(for: .milliseconds(5)) }
    }

    func stop() async throws {
        await group.triggerGracefulShutdown()
        try await running.value
    }
}

/// The server's starts and stops, one after another.
private actor Runs {
    private var run: Run?
    private var last: Task<Void, any Error>?

    init(_ run: Run) { self.run = run }

    func stop() async throws {
        try await next { runs in
            guard let run = runs.run else { return }
            runs.run = nil
            try await run.stop()
        }
    }

    func start(_ begin: @escaping @Sendable () async throws -> Run) async throws {
        try await next { runs in
            if runs.run == nil { runs.run = try await begin() }
        }
    }

    /// Cleans up when the server has been released.
    func end(in directory: URL) async {
        try? await stop()
        try? FileManager.default.removeItem(at: directory)
    }

    private func next(_ step: @escaping @Sendable (isolated Runs) async throws -> Void) async throws {
        let before = last
        let task = Task {
            _ = await before?.result
            try await step(self)
        }
        last = task
        try await task.value
    }
}
