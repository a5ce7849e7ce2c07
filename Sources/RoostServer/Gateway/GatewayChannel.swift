import HTTPTypes
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOPosix
import NIOWebSocket
import RoostAPI

/// HTTP and WebSocket on one port: a connection begins as HTTP/1.1 and becomes a socket when it asks for one at ``socketPath``.
struct GatewayChannel: ServerChildChannel, HTTPChannelHandler {
    static let socketPath = "/v1/socket"

    /// Limits on a connection before it becomes a socket (RELIABILITY: header floods, slow requests).
    struct Configuration: Sendable {
        var headerCountMax = 64
        var headerFieldSizeBytesMax = 8192
        var headerListSizeBytesMax = 16_384
        /// From the first byte of a request to its last.
        var requestTimeout = TimeAmount.seconds(30)
        /// Between requests.
        var idleTimeout = TimeAmount.seconds(60)
        /// Both timeouts for a reserve connection: it is for health checks, which send their request at once.
        var reserveTimeout = TimeAmount.seconds(2)
        /// Bytes that may be queued for a client before it counts as not reading.
        var waitingBytesMax = 16 << 10
        /// How long an answer may be left unread while at least half of the server's memory budget is used.
        var readStallTimeoutUnderPressure = TimeAmount.seconds(1)
    }

    enum Upgrade: Sendable {
        case socket(any NIOCore.Channel)
        case http(NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>)
    }

    struct Value: ServerChildChannelValue {
        let channel: any NIOCore.Channel
        let ticket: ConnectionTicket
        let upgrade: EventLoopFuture<Upgrade>
    }

    let responder: HTTPChannelHandler.Responder
    let services: SocketHandler.Services
    let limits: Configuration
    let origins: AllowedOrigins

    func setup(channel: any NIOCore.Channel, logger: Logger) -> EventLoopFuture<Value> {
        let ticket = services.connections.accept(channel)
        channel.closeFuture.whenComplete { _ in ticket.ended() }
        return channel.eventLoop.makeCompletedFuture {
            try channel.syncOptions?.setOption(
                .writeBufferWaterMark, value: .init(low: limits.waitingBytesMax / 4, high: limits.waitingBytesMax))
            try channel.syncOptions?.setOption(.tcpOption(.tcp_nodelay), value: 1)
            let configuration = NIOTypedHTTPServerUpgradeConfiguration(
                upgraders: [socketUpgrader(ticket)],
                notUpgradingCompletionHandler: { channel in setUpHTTP(on: channel) })
            let upgrade = try HTTPPipeline.install(
                on: channel, limits: limits, metrics: services.metrics, ticket: ticket, origins: origins, upgrade: configuration)
            return Value(channel: channel, ticket: ticket, upgrade: upgrade)
        }
    }

    func handle(value: Value, logger: Logger) async {
        do {
            switch try await value.upgrade.get() {
            case .socket: return
            case .http(let channel):
                await ConnectionTicket.$current.withValue(value.ticket) {
                    await handleHTTP(asyncChannel: channel, logger: logger)
                }
            }
        } catch {
            logger.debug("A connection ended before its first request.", metadata: ["error": "\(error)"])
            try? await value.channel.close()
        }
    }

    private func socketUpgrader(_ ticket: ConnectionTicket) -> SocketUpgrader<Upgrade> {
        SocketUpgrader(mayUpgrade: SocketRequest.opensSocket) { channel, head in
            try HTTPPipeline.uninstall(from: channel)
            try channel.syncOptions?.setOption(.recvAllocator, value: ReadBuffers.ofFrames)
            let socket = services.hub.nextSocketID(on: channel.eventLoop)
            try channel.pipeline.syncOperations.addHandler(
                SocketHandler(
                    services: services, socket: socket, headerToken: BearerToken.read(from: head.headers),
                    headerDevice: try DeviceHeaders.device(in: head.headers), ticket: ticket))
            return .socket(channel)
        }
    }

    private func setUpHTTP(on channel: any NIOCore.Channel) -> EventLoopFuture<Upgrade> {
        channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(HTTP1ToHTTPServerCodec(secure: false))
            let asyncChannel = try NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>(
                wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
            return .http(asyncChannel)
        }
    }
}
