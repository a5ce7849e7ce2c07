import Foundation
import Logging
import NIOCore
import NIOPosix
import RoostAPI
import RoostCore
import RoostDatabase
import RoostTestSupport

@testable import RoostServer

/// Sockets on one event loop, with the server's own hub and engine behind them and a database from the test. They take frames from the first byte on,
/// without an HTTP upgrade.
struct SocketLoop {
    let hub: Hub
    let loop: any EventLoop
    private let engine: Engine
    private let group: MultiThreadedEventLoopGroup
    private let keys: TokenKeys
    private let listener: any NIOCore.Channel

    /// - Parameter receivedMax: How many channels all sockets of one user may get together; nil for as many as by default.
    init(_ database: any RoostDatabase.Database, receivedMax: Int? = nil) async throws {
        var logger = Logger(label: "test")
        logger.logLevel = .critical
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let hub = try await Hub(
            group: group, receivedMax: receivedMax ?? Hub.receivedMax(channelsPerUser: AppOptions().channelsPerUser))
        let connections = Connections(limits: ConnectionCounts.Configuration(), memoryBytesMax: 24 << 20, logger: logger)
        let configuration = RoostServer.Configuration(dataDirectory: TemporaryDirectory.make())
        let engine = try Engine(
            database: database, hub: hub, configuration: Engine.Configuration(configuration), memory: connections.memory,
            logger: logger)
        let keys = await TokenKeys(secret: Data(repeating: 1, count: 32))
        let services = SocketHandler.Services(
            engine: engine, hub: hub, tokens: TokenVerifier(keys, logger: logger),
            greeting: Greeting(
                server: "server", epoch: "epoch", version: "1", pingInterval: .seconds(25), drainWindow: .seconds(0)),
            limits: SocketSession.Configuration(), connections: connections, security: SecurityLog(logger: logger),
            logger: logger)
        listener = try await ServerBootstrap(group: group)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let socket = services.hub.nextSocketID(on: channel.eventLoop)
                    let handler = SocketHandler(services: services, socket: socket, headerToken: nil)
                    try channel.pipeline.syncOperations.addHandler(handler)
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        loop = group.next()
        (self.group, self.hub, self.engine, self.keys) = (group, hub, engine, keys)
    }

    /// Connects as a user.
    func socket(_ user: UserID) async throws -> RawSocket {
        guard let port = listener.localAddress?.port else { throw Missed("a port") }
        let claims = TokenKeys.Claims(user: user, role: .user, expiresAt: Date(timeIntervalSinceNow: 3600))
        return try await .connectWithoutUpgrade(port: port, token: try await keys.sign(claims))
    }

    /// Shuts everything down as a server does: once its clients are gone.
    func end(closing clients: RawSocket...) async throws {
        for client in clients { await client.close() }
        try await eventually("the end of the last socket") { try await hub.counts().sockets == 0 }
        try await listener.close()
        engine.stop()
        try await group.shutdownGracefully()
    }
}
