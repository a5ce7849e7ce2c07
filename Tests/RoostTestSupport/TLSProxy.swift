import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// TLS on a free loopback port in front of a server without it: the server's own proxy, or a man in the middle with another certificate.
///
/// Clients' bytes are carried to the server unchanged, without any limit.
public final class TLSProxy: Sendable {
    /// What clients have done.
    public struct Log: Hashable, Sendable {
        /// The connections that they have made.
        public var connectionCount = 0
        /// The open ones.
        public var openCount = 0
        /// What they have sent inside TLS: nothing, unless they trust the proxy.
        public var receivedSizeBytes = 0
    }

    public let port: Int
    private let listener: any Channel
    private let clients: ProxiedClients

    /// Listens in front of a loopback port.
    public static func start(_ certificate: TestCertificate, target: Int) async throws -> TLSProxy {
        let context = try certificate.serverContext()
        let clients = ProxiedClients()
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { client in
                clients.add(client)
                // It isn't read before this is done, so its bytes have a target.
                return Self.join(client, to: target, context, clients)
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return TLSProxy(listener: listener, clients: clients)
    }

    private init(listener: any Channel, clients: ProxiedClients) {
        self.listener = listener
        self.clients = clients
        port = listener.localAddress?.port ?? 0
    }

    public var log: Log { clients.state.withLock { $0.log } }

    /// Waits until clients have connected and all of them are gone, and returns how much they have sent inside TLS.
    ///
    /// - Throws: ``Missed`` if that doesn't happen.
    public func receivedSizeBytes() async throws -> Int {
        try await eventually("the end of all connections to the proxy") { log.connectionCount > 0 && log.openCount == 0 }
        return log.receivedSizeBytes
    }

    /// Stops listening, and ends all connections.
    public func stop() async {
        try? await listener.close()
        for client in clients.state.withLock({ Array($0.open.values) }) { client.close(promise: nil) }
    }

    private static func join(
        _ client: any Channel, to target: Int, _ context: NIOSSLContext, _ clients: ProxiedClients
    ) -> EventLoopFuture<Void> {
        ClientBootstrap(group: client.eventLoop)
            .channelInitializer { server in
                server.eventLoop.makeCompletedFuture {
                    try server.pipeline.syncOperations.addHandler(Carrier(to: client, clients: nil))
                }
            }
            .connect(host: "127.0.0.1", port: target)
            .flatMapThrowing { server in
                try client.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
                try client.pipeline.syncOperations.addHandler(Carrier(to: server, clients: clients))
            }
    }
}

/// The open connections of clients, and what they have done.
private final class ProxiedClients: Sendable {
    struct State {
        var log = TLSProxy.Log()
        var open: [ObjectIdentifier: any Channel] = [:]
    }
    let state = Mutex(State())

    func add(_ client: any Channel) {
        let id = ObjectIdentifier(client)
        state.withLock { state in
            state.open[id] = client
            state.log.connectionCount += 1
            state.log.openCount += 1
        }
        client.closeFuture.whenComplete { _ in
            self.state.withLock { state in
                state.open[id] = nil
                state.log.openCount -= 1
            }
        }
    }

    func count(_ sizeBytes: Int) { state.withLock { $0.log.receivedSizeBytes += sizeBytes } }
}

/// Carries what one side sends to the other, and ends the other with it.
private final class Carrier: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let other: any Channel
    /// For the side of a client.
    private let clients: ProxiedClients?

    init(to other: any Channel, clients: ProxiedClients?) {
        self.other = other
        self.clients = clients
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = unwrapInboundIn(data)
        clients?.count(bytes.readableBytes)
        other.writeAndFlush(bytes, promise: nil)
    }

    func channelInactive(context: ChannelHandlerContext) {
        other.close(promise: nil)
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
