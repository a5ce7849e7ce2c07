public import Foundation
import Hummingbird
import HummingbirdCore
public import Logging
import NIOCore
import NIOPosix
public import RoostAPI
package import RoostCore
import RoostDatabase
public import ServiceLifecycle

/// A Roost server: one data directory, one port, running until it is told to shut down.
///
///     let server = try await RoostServer(configuration: .init(dataDirectory: directory), logger: logger)
///     try await server.run()
///
/// On graceful shutdown it becomes unready, closes its sockets over ``Configuration/drainWindow``, finishes queued operations, and ends.
public struct RoostServer: Service {
    /// The settings of a server. All but the data directory have defaults.
    public struct Configuration: Sendable {
        /// The directory of the database and the token secret. Created if it doesn't exist.
        public var dataDirectory: URL
        /// The database: nil for one SQLite file in the data directory, or a PostgreSQL server, as `postgres://user@host/name`, that all
        /// nodes of a cluster share.
        public var database: String?
        /// The bus that carries events between the nodes of a cluster, as `nats://host:4222`. Only with a PostgreSQL database; without a bus, a
        /// node finds other nodes' events by comparing positions with the database.
        public var bus: String?
        /// Starts with a new epoch even though the files of the data directory show data loss. For one start, by an operator who knows what is
        /// lost. With PostgreSQL it only logs a warning.
        public var acceptsDataLoss = false
        /// The first word of the bus's subjects: clusters that share a NATS server need different ones. The same on all nodes.
        public var busPrefix = "roost"
        /// The number of transactions that write to PostgreSQL at the same time; SQLite has one.
        public var laneCount = 4
        /// How long an operation waits for a row of PostgreSQL locked by another transaction before it is refused.
        public var lockTimeout: Duration = .seconds(10)
        /// How long another node may be silent before it and its users are considered gone: 2 to 60 seconds.
        public var presenceTimeout: Duration = .seconds(3)
        /// How long an answer that shows who is online waits for the other nodes. After that it contains what is known.
        package var gatherTimeout: Duration = ClusterPresence.gatherTimeoutStandard
        /// Options of the whole app. All nodes of a cluster need the same.
        public var options = AppOptions()
        /// A JSON file with the operator's own channel types and roles, put into the database at each start. Nil for none.
        public var channelTypes: URL?
        /// A JWK set (RFC 7517) with further keys that may sign tokens, read again when it changes. Nil for none.
        public var tokenKeys: URL?
        /// The required value of a token's claim `iss`; nil for any.
        public var tokenIssuer: String?
        /// The value that a token's claim `aud` must contain; nil for any.
        public var tokenAudience: String?
        /// The address to listen on. The default serves this machine only.
        public var host = "127.0.0.1"
        /// The port; 0 for any free one.
        public var port = 8080
        /// The other origins whose web pages may read answers over HTTP.
        public var allowedOrigins = AllowedOrigins.none
        /// The window over which sockets are closed during shutdown. The server ends at most a second after it, even with clients still connected,
        /// or five seconds after it if the disk is slow.
        public var drainWindow: Duration = .seconds(5)
        /// The most connections, HTTP and WebSocket together. Below the usual limits on open files. Health checks get some more.
        public var connectionsMax = 18_000
        /// The most unauthenticated connections of one address.
        public var unauthenticatedConnectionsPerAddressMax = 1000
        /// The most connections of one user. Tokens of the roles `admin` and `service` have no such limit.
        public var connectionsPerUserMax = 200
        /// The most concurrent HTTP requests of one user. A backend with its own token has no such limit.
        public var requestsPerUserMax = 64
        /// The most bytes held for all clients: calls, undelivered answers and events, request bodies. Above it reads are refused as `overloaded`; above
        /// 125% of it everything is.
        public var memoryBudgetBytes = 24 << 20
        /// The most memory that the process may use, at least 128 MiB; nil for no limit. Near it less is held for clients, and above seven eighths
        /// of it no new connections are served.
        public var memoryLimitBytes: Int?
        /// The size of the page caches of a database on SQLite, at least 4 MiB.
        public var pageCacheBytes = SQLiteDatabase.standardPageCacheBytes
        /// Addresses and networks of the proxies whose `X-Forwarded-For` is trusted, as `10.0.0.0/8`.
        public var trustedProxies: [String] = []
        /// How often a socket is pinged.
        public var pingInterval: Duration = .seconds(25)
        /// How long a socket has to authenticate.
        public var authenticationTimeout: Duration = .seconds(10)
        /// The silence after which a socket's client is considered gone.
        public var idleTimeout: Duration = .seconds(60)
        /// How long an HTTP request may take to arrive.
        package var requestTimeout: Duration = .seconds(30)
        /// Receives the pushes for members who aren't connected; nil, the default, if there are no pushes: then none are created. The same on all
        /// nodes of a cluster.
        package var pushSender: PushSender?
        /// Effects that run when they are due. The tests add their own kinds.
        package var effects = EffectSettings()
        /// The clock for rules if the database is in the data directory: the machine's by default. Tokens always expire by the machine's.
        package var clock: @Sendable () -> Timestamp = { .now }
        /// The number of threads that serve sockets.
        public var eventLoopCount = System.coreCount

        /// The defaults for a data directory.
        public init(dataDirectory: URL) { self.dataDirectory = dataDirectory }

        fileprivate func validate() throws(RoostError) {
            try options.validate()
            guard ClusterPresence.timeouts.contains(presenceTimeout) else {
                throw .invalidArgument("presenceTimeout", "must be 2 to 60 seconds")
            }
            if let memoryLimitBytes {
                guard memoryLimitBytes >= MemoryGovernor.limitBytesMin else {
                    let least = MemoryGovernor.limitBytesMin >> 20
                    throw .invalidArgument("memoryLimit", "must be at least \(least) MiB, or 0 for none")
                }
                guard ProcessMemory.residentBytes() != nil else {
                    throw .invalidArgument(
                        "memoryLimit", "can't be enforced here: this system doesn't report a process's memory use")
                }
            }
        }
    }

    private let configuration: Configuration
    private let logger: Logger
    private let group: MultiThreadedEventLoopGroup
    private let database: any Database
    private let file: SQLiteDatabase?
    private let engine: Engine
    private let effects: EffectRunner
    private let hub: Hub
    private let cluster: ClusterNode?
    private let tokens: TokenVerifier
    private let tokenFiles: TokenKeyFiles
    private let readiness = Readiness()
    private let connections: Connections
    private let memoryWatch: MemoryWatch
    private let listener: Listener
    private let onRunning: @Sendable (_ port: Int) async -> Void

    /// Opens the data directory and prepares the server to run.
    ///
    /// - Parameters:
    ///   - metrics: Shown at `/metrics` in addition to the server's own counts.
    ///   - onRunning: Called with the port once the server listens.
    /// - Throws: `RoostError` for options outside their limits; ``Unsupported``; ``SecretFile/Unusable``; ``Definitions/Unusable``. All others are
    ///   errors without a public type, whose description is for the operator and says what is wrong: another server uses the directory; its files
    ///   don't belong together, or one is damaged; the database can't be used; the token secret or the keys of tokens can't be read or used, or aren't
    ///   those that the database knows; a trusted proxy isn't a network.
    public init(
        configuration: Configuration, metrics: PrometheusRegistry? = nil, logger: Logger,
        onRunning: @escaping @Sendable (_ port: Int) async -> Void = { _ in }
    ) async throws {
        // Memory used for a page of a megabyte must not stay with the process.
        ProcessMemory.returnEarly()
        try configuration.validate()
        let definitions = try configuration.channelTypes.map { try Definitions(file: $0) }
        let storage = try Storage(configuration, logger: logger)
        do {
            try await self.init(
                configuration, storage: storage, definitions: definitions, metrics: metrics, logger: logger, onRunning: onRunning)
        } catch {
            // A damaged page may be noticed only here, where it is first read.
            throw storage.explained(error)
        }
    }

    /// Prepares the server to run on an open database.
    private init(
        _ configuration: Configuration, storage: Storage, definitions: Definitions?, metrics: PrometheusRegistry?, logger: Logger,
        onRunning: @escaping @Sendable (_ port: Int) async -> Void
    ) async throws {
        self.configuration = configuration
        self.logger = logger
        self.onRunning = onRunning
        (database, file) = (storage.database, storage.file)
        tokenFiles = TokenKeyFiles(
            secret: try storage.tokenSecret(), directory: configuration.dataDirectory, file: configuration.tokenKeys)
        let (keys, fingerprints) = try await tokenFiles.read()
        if configuration.database != nil {
            try database.write(lane: 0) { try $0.confirmTokenKeys(fingerprints) }
        }
        try storage.confirmRetirement(keys, of: tokenFiles.secretFingerprint)
        tokens = TokenVerifier(keys, rules: .init(configuration), logger: logger)
        let (server, epoch) = try database.write(lane: 0) {
            (
                try $0.setting("server", orNew: UUID().uuidString.lowercased()),
                try $0.epoch(orNew: UUID().uuidString.lowercased())
            )
        }

        try StartChecks(configuration, database, logger).run(tokenKeys: keys)
        let hasNewRules = try definitions?.put(into: database, options: configuration.options, patience: configuration.lockTimeout)

        let counters = ServerMetrics()
        connections = try Connections(configuration, metrics: counters, logger: logger)
        memoryWatch = MemoryWatch(configuration, connections)

        group = MultiThreadedEventLoopGroup(numberOfThreads: max(1, configuration.eventLoopCount))
        hub = try await Hub(group: group, receivedMax: Hub.receivedMax(channelsPerUser: configuration.options.channelsPerUser))
        cluster = try storage.joinCluster(hub: hub, readiness: readiness, metrics: counters)
        if hasNewRules == true { cluster?.publish([.rulesChanged]) }
        let (security, alarm) = (SecurityLog(logger: logger), EffectAlarm())
        engine = try Engine(
            database: database, hub: hub, delivery: cluster, options: configuration.options,
            configuration: .init(configuration), metrics: counters, security: security, memory: connections.memory, alarm: alarm,
            logger: logger)
        effects = EffectRunner(
            engine: engine, database: database, alarm: alarm,
            settings: configuration.effects.handingOffPushes(to: configuration.pushSender, through: engine), metrics: counters,
            logger: logger)

        let limits = SocketSession.Configuration(configuration)
        let services = SocketHandler.Services(
            engine: engine, hub: hub, tokens: tokens,
            greeting: Greeting(
                server: server, epoch: epoch, version: RoostVersion.current, pingInterval: limits.pingInterval,
                drainWindow: .init(configuration.drainWindow)),
            limits: limits, connections: connections, metrics: counters, security: security, logger: logger)

        let router = Router()
        router.add(middleware: ProblemMiddleware(logger: logger))
        OperationRoutes(engine: engine, tokens: tokens, metrics: counters, security: security, connections: connections)
            .add(to: router)
        let page = MetricsPage(
            registry: metrics, metrics: counters, engine: engine, hub: hub, effects: effects, cluster: cluster,
            readiness: readiness, configuration: configuration, connections: connections)
        ServiceRoutes(version: RoostVersion.current, readiness: readiness, metrics: page).add(to: router)

        listener = Listener(
            HTTPRules(routes: router.buildResponder(), origins: configuration.allowedOrigins, metrics: counters), group: group,
            services: services, requestTimeout: configuration.requestTimeout, logger: logger)
    }

    /// Turns off SQLite's memory accounting in the whole process (``ProcessMemory/leaveSQLiteUncounted()``). The program calls it before it makes a
    /// server.
    package static func leaveSQLiteUncounted() { ProcessMemory.leaveSQLiteUncounted() }

    /// How long the disk may take during shutdown to finish accepted operations and write the log into the database.
    static let closingTimeMax = Duration.seconds(5)
    /// The part of it reserved for the log.
    private static let databaseClosingTime = Duration.seconds(1)

    /// Serves until it is told to shut down. Can be called once.
    ///
    /// Shutdown takes the drain window and at most a second, or ``closingTimeMax`` if the disk is slow, in these steps:
    /// 1. The server becomes unready. The port stays open: clients that connect meanwhile get an answer and are disconnected.
    /// 2. Idle HTTP connections are closed; requests under way are answered with `Connection: close`; sockets are asked to reconnect, and closed
    ///    one by one over the window.
    /// 3. At the end of the window the port and all remaining connections are closed.
    /// 4. The engine finishes accepted operations, and the database is closed. If the disk takes longer than ``closingTimeMax``, the database is
    ///    left as after a crash, which loses nothing that was acknowledged.
    public func run() async throws {
        let control = await listenToCommands()
        let watching = Task { [tokenFiles, tokens, engine, logger, configuration] in
            await tokenFiles.watch(tokens, logger: logger) { keys, fingerprints in
                let isCluster = configuration.database != nil
                // If the database already knows that the secret is retired, the removal of another key doesn't have to wait for a write.
                guard isCluster || keys.isTokenSecretRetired && !tokens.isTokenSecretRetired else { return }
                let secret = tokenFiles.secretFingerprint
                try await engine.perform(Job.Traits(), for: .server) { context in
                    if isCluster {
                        try context.transaction.confirmTokenKeys(fingerprints)
                        _ = try context.transaction.exchange(StartChecks.tokenKeys(keys))
                    }
                    if keys.isTokenSecretRetired { try context.transaction.rememberRetirement(of: secret) }
                    return []
                }
            }
        }
        defer { watching.cancel() }
        let channel: any NIOCore.Channel
        do {
            channel = try await listener.bind(host: configuration.host, port: configuration.port)
        } catch {
            try? await end(control)
            throw error
        }
        effects.start()
        memoryWatch.start()
        readiness.setServing(true)
        await onRunning(channel.localAddress?.port ?? configuration.port)
        await waitUntilStopped()
        readiness.setServing(false)
        logger.info("The server is shutting down.", metadata: ["window": "\(configuration.drainWindow)"])
        connections.drain()
        try? await Task.sleep(for: configuration.drainWindow)
        channel.close(promise: nil)
        connections.closeAll()
        await connections.waitForHandlers(atMost: .milliseconds(250))
        memoryWatch.stop()
        try await end(control)
    }

    /// Runs a body in a transaction without a client, as an effect does: for the tests and the benchmark.
    package func perform(
        as caller: Caller = .server, scope: Scope = Scope(), _ run: @escaping @Sendable (inout Context) throws -> Void
    ) async throws {
        try await engine.perform(Job.Traits(scope: scope), for: caller) { context in
            try run(&context)
            return []
        }
    }

    /// Runs an operation without the network, even one that isn't in the table: for the tests.
    package func perform(_ operation: some Handled, as user: UserID) async throws {
        _ = try await engine.perform(operation, for: Caller(user: user))
    }

    /// Returns when the server is told to shut down, or its task is cancelled.
    private func waitUntilStopped() async {
        let (stopped, stop) = AsyncStream.makeStream(of: Void.self)
        await withGracefulShutdownHandler {
            for await _ in stopped {}
        } onGracefulShutdown: {
            stop.finish()
        }
    }

    /// Finishes accepted operations within the time for shutdown, and closes the database.
    private func end(_ control: (any NIOCore.Channel)?) async throws {
        let (engine, effects, cluster, database, logger) = (engine, effects, cluster, database, logger)
        // While the directory is locked the name is this server's. Afterwards it may be that of the next one.
        if let control {
            try? await control.close()
            unlink(ControlSocket.path(in: configuration.dataDirectory))
        }
        let begun = ContinuousClock.now
        let closing = await Deadline.run(atMost: Self.closingTimeMax) {
            effects.stop()
            let isFinished = engine.stop(
                atMost: Self.closingTimeMax - Self.databaseClosingTime - (ContinuousClock.now - begun))
            cluster?.stop()
            guard isFinished else {
                // Its threads still use the database: it is left as after a crash, which loses nothing that was acknowledged. If the process
                // outlives this server, the files are closed when the threads have ended.
                DispatchQueue.global().async { if engine.stop() { try? database.close() } }
                logger.warning("Some operations are still waiting for the database. They were not acknowledged and are abandoned.")
                return
            }
            try database.close()
        }
        try? await group.shutdownGracefully()
        guard let closing else {
            logger.warning(
                "The database couldn't be closed in time, and is left as a crash would leave it. Nothing acknowledged is lost.")
            return
        }
        try closing.get()
    }

    /// Listens for backup requests, in the data directory. Nil if the database is elsewhere.
    private func listenToCommands() async -> (any NIOCore.Channel)? {
        guard let file else { return nil }
        let (directory, metrics, logger, tokens) = (configuration.dataDirectory, engine.metrics, logger, tokens)
        do {
            return try await ControlSocket.listen(in: directory, group: group) { request in
                do {
                    if request.withSecret {
                        try await Backup.requireUsableKeyRing(of: directory, isSecretRetired: tokens.isTokenSecretRetired)
                    }
                    let backup = try await ControlSocket.inThread {
                        try Backup.make(
                            of: file, data: directory, withSecret: request.withSecret, needsKeyRing: tokens.needsKeyRing,
                            in: URL(filePath: request.backup, directoryHint: .isDirectory))
                    }
                    logger.notice("A backup was made and read back.", metadata: ["directory": "\(request.backup)"])
                    return .init(backup: backup)
                } catch {
                    // A backup reads pages that nothing else may have read for months.
                    if (error as? DatabaseFailure)?.kind == .damage { metrics.damaged() }
                    logger.error("A backup failed.", metadata: ["directory": "\(request.backup)", "error": "\(error)"])
                    return .init(error: "\(error)")
                }
            }
        } catch {
            logger.warning("Backups aren't available: their socket can't be opened.", metadata: ["error": "\(error)"])
            return nil
        }
    }
}

extension TokenVerifier.Rules {
    fileprivate init(_ configuration: RoostServer.Configuration) {
        self.init(
            lifetimeSecondsMax: configuration.options.tokenLifetimeSecondsMax, issuer: configuration.tokenIssuer,
            audience: configuration.tokenAudience)
    }
}

extension SocketSession.Configuration {
    fileprivate init(_ configuration: RoostServer.Configuration) {
        pingInterval = .init(configuration.pingInterval)
        authenticationTimeout = .init(configuration.authenticationTimeout)
        idleTimeout = .init(configuration.idleTimeout)
    }
}

extension Listener {
    fileprivate init(
        _ rules: HTTPRules, group: MultiThreadedEventLoopGroup, services: SocketHandler.Services, requestTimeout: Duration,
        logger: Logger
    ) {
        var logger = logger
        logger.logLevel = max(logger.logLevel, .warning)
        let gateway = GatewayChannel(
            responder: Responding.responder(rules, logger: logger), services: services,
            limits: .init(requestTimeout: .init(requestTimeout)), origins: rules.origins)
        self.init(group: group, gateway: gateway, logger: logger)
    }
}

extension MemoryWatch {
    fileprivate convenience init(_ configuration: RoostServer.Configuration, _ connections: Connections) {
        self.init(
            limitBytes: configuration.memoryLimitBytes, budgetBytes: configuration.memoryBudgetBytes, connections: connections)
    }
}

extension Connections {
    fileprivate convenience init(_ configuration: RoostServer.Configuration, metrics: ServerMetrics, logger: Logger) throws {
        var limits = ConnectionCounts.Configuration()
        limits.totalMax = configuration.connectionsMax
        limits.unauthenticatedPerAddressMax = configuration.unauthenticatedConnectionsPerAddressMax
        limits.perUserMax = configuration.connectionsPerUserMax
        self.init(
            limits: limits, memoryBytesMax: configuration.memoryBudgetBytes, requestsPerUserMax: configuration.requestsPerUserMax,
            proxies: try TrustedProxies(configuration.trustedProxies), metrics: metrics, logger: logger)
    }
}
