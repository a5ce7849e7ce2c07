import NIOCore
import NIOHTTP1
import NIOWebSocket

/// Upgrades a connection that asks for it to a socket. The handshake is NIO's (RFC 6455 §4.2.2); frames are read by ``FrameReader``, which
/// decodes no more of them than the socket's budget allows.
struct SocketUpgrader<Upgraded: Sendable>: NIOTypedHTTPServerProtocolUpgrader {
    let supportedProtocol = "websocket"
    let requiredUpgradeHeaders: [String] = []

    private let handshake: NIOTypedWebSocketServerUpgrader<Upgraded>
    private let setUp: @Sendable (any Channel, HTTPRequestHead) throws -> Upgraded

    /// - Parameters:
    ///   - mayUpgrade: Returns whether a request opens a socket.
    ///   - setUp: Adds the socket's handler to the pipeline, which is empty by then.
    init(
        mayUpgrade: @escaping @Sendable (HTTPRequestHead) -> Bool,
        setUp: @escaping @Sendable (any Channel, HTTPRequestHead) throws -> Upgraded
    ) {
        self.setUp = setUp
        handshake = NIOTypedWebSocketServerUpgrader(
            enableAutomaticErrorHandling: false,
            shouldUpgrade: { channel, head in channel.eventLoop.makeSucceededFuture(mayUpgrade(head) ? HTTPHeaders() : nil) },
            upgradePipelineHandler: { channel, head in channel.eventLoop.makeCompletedFuture { try setUp(channel, head) } })
    }

    func buildUpgradeResponse(
        channel: any Channel, upgradeRequest: HTTPRequestHead, initialResponseHeaders: HTTPHeaders
    ) -> EventLoopFuture<HTTPHeaders> {
        handshake.buildUpgradeResponse(
            channel: channel, upgradeRequest: upgradeRequest, initialResponseHeaders: initialResponseHeaders)
    }

    func upgrade(channel: any Channel, upgradeRequest: HTTPRequestHead) -> EventLoopFuture<Upgraded> {
        channel.eventLoop.makeCompletedFuture { try setUp(channel, upgradeRequest) }
    }
}
