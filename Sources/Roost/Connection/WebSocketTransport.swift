#if !os(watchOS)
public import Foundation
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOWebSocket

/// A WebSocket over TCP, or over TLS for `wss` and `https` addresses. It opens its own socket, without the system's proxies and VPNs that connect on
/// demand: for these, use `URLSessionTransport`. It isn't available on watchOS, which doesn't let apps open sockets.
public struct WebSocketTransport: Transport {
    /// Limits of a connection.
    public struct Configuration: Sendable {
        /// The timeout of the TCP connection alone. The client has its own for TLS and the welcome.
        public var connectTimeout: Duration = .seconds(10)
        /// The most bytes of one message from the server.
        public var messageSizeBytesMax: Int = 16 * 1_048_576
        // derived: init
        /// The defaults.
        public init(connectTimeout: Duration = .seconds(10), messageSizeBytesMax: Int = 16 * 1_048_576) {
            self.connectTimeout = connectTimeout
            self.messageSizeBytesMax = messageSizeBytesMax
        }
    }

    private let configuration: Configuration
    private let trustedCertificates: [NIOSSLCertificate]

    /// A transport with these limits.
    public init(configuration: Configuration = Configuration()) { self.init(configuration: configuration, trusting: []) }

    /// A transport for tests with their own server. All checks stay enabled.
    ///
    /// - Parameter certificates: Trusted in addition to the machine's.
    init(configuration: Configuration = Configuration(), trusting certificates: [NIOSSLCertificate]) {
        self.configuration = configuration
        trustedCertificates = certificates
    }

    public func run(
        url: URL, outgoing: AsyncStream<TransportCommand>, receive: @escaping @Sendable (TransportEvent) async -> Void
    ) async {
        var isOpen = false
        do {
            let address = try Address(url)
            let channel = try await connect(to: address)
            isOpen = true
            await receive(.opened)
            let end = try await channel.executeThenClose { inbound, outbound in
                try await Self.exchange(
                    inbound, outbound, outgoing, receive, messageSizeBytesMax: configuration.messageSizeBytesMax)
            }
            await receive(end)
        } catch {
            let reason = isOpen ? Self.reason(ofEnd: error) : Self.reason(of: error, url)
            await receive(.closed(code: nil, reason: reason.message, cause: reason.cause))
        }
    }

    public func validate(_ url: URL) throws(RoostError) { _ = try Address(url) }

    /// Returns what ended an open connection, and where to look: TLS is established by then.
    static func reason(ofEnd error: any Error) -> WaitingReason {
        if case NIOSSLError.uncleanShutdown = error { return WaitingReason(.network, "the connection ended uncleanly") }
        return WaitingReason(.network, "\(error)")
    }

    /// Says why no connection could be made, and where to look.
    static func reason(of error: any Error, _ url: URL) -> WaitingReason {
        let host = url.host(percentEncoded: false) ?? ""
        switch error {
        case let error as NIOConnectionError:
            if error.connectionErrors.isEmpty, let problem = error.dnsAError ?? error.dnsAAAAError {
                let code = (problem as? SocketAddressError.UnknownHost)?.errorCode
                return WaitingReason(.network, reason(ofUnresolved: error.host, code: code))
            }
            let first = error.connectionErrors.first?.error
            let problem = (first as? IOError).map { String(cString: strerror($0.errnoCode)) } ?? first.map { "\($0)" }
            return WaitingReason(
                .network, "nothing answers at \(error.host), port \(error.port): \(problem ?? "it has no address")")
        case ChannelError.connectTimeout:
            // The connect timeout includes the name lookup.
            let isNumeric = (try? Address(url))?.isNumeric ?? false
            return WaitingReason(
                .network, "\(host) didn't answer in time" + (isNumeric ? "" : ", or its name couldn't be looked up in time"))
        case let error as UpgradeRefused:
            // A server that is shutting down or full refuses too, and then the address is right.
            return WaitingReason(error.status == .serviceUnavailable ? .server : .upgrade, "\(error)")
        // For example a proxy without a server to pass the connection on to.
        case NIOSSLError.uncleanShutdown:
            return reason(ofEnd: error)
        // The extra errors belong to the same library: a certificate for another host is one of them.
        case is NIOSSLError, is NIOSSLExtraError, is BoringSSLError:
            return WaitingReason(.certificate, "can't make a secure connection to \(host): \(error)")
        default:
            return WaitingReason(.network, "\(error)")
        }
    }

    /// Says why a host has no address.
    ///
    /// - Parameter code: The code that `getaddrinfo` returned.
    package static func reason(ofUnresolved host: String, code: Int?) -> String {
        guard code == Int(EAI_AGAIN) else {
            // Some systems report an unknown name if there is no network to ask.
            return "the host \(host) isn't known, or there is no network"
        }
        return "the host \(host) couldn't be looked up: no name server answers, or there is no network"
    }

    // MARK: Connecting

    private typealias FrameChannel = NIOAsyncChannel<WebSocketFrame, WebSocketFrame>

    private func connect(to address: Address) async throws -> FrameChannel {
        let context = address.isSecure ? try NIOSSLContext(configuration: tlsConfiguration) : nil
        let timeout = TimeAmount(configuration.connectTimeout)
        // NIO accepts no larger frames, and traps. Whole messages have the configuration's limit.
        let frameSizeMax = min(configuration.messageSizeBytesMax, Int(UInt32.max))
        // If a host has several addresses, more than one is tried at a time: the channel to close must be the one that connected.
        let attempt: Attempt = try await ClientBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .connectTimeout(timeout)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .connect(host: address.host, port: address.port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let context {
                        // A server name must not be an IP address (RFC 6066); the certificate is checked either way.
                        let name = address.isNumeric ? nil : address.host
                        try channel.pipeline.syncOperations.addHandler(NIOSSLClientHandler(context: context, serverHostname: name))
                    }
                    return Attempt(channel: channel, upgrade: try Self.upgrade(channel, to: address, frameSizeMax: frameSizeMax))
                }
            }
        // A peer that accepts connections and sends nothing may do so forever.
        do {
            return try await withTaskCancellationHandler {
                try await attempt.upgrade.get()
            } onCancel: {
                attempt.channel.close(promise: nil)
            }
        } catch {
            // Nothing else holds it: it would stay open until the server ends it, one more with each attempt.
            attempt.channel.close(promise: nil)
            throw error
        }
    }

    /// A connection that is about to become a socket.
    private struct Attempt: Sendable {
        let channel: any NIOCore.Channel
        let upgrade: EventLoopFuture<FrameChannel>
    }

    /// The default client configuration, which checks that the certificate is trusted and matches the host.
    private var tlsConfiguration: TLSConfiguration {
        var configuration = TLSConfiguration.makeClientConfiguration()
        if !trustedCertificates.isEmpty { configuration.additionalTrustRoots = [.certificates(trustedCertificates)] }
        return configuration
    }

    private static func upgrade(
        _ channel: any NIOCore.Channel, to address: Address, frameSizeMax: Int
    ) throws -> EventLoopFuture<FrameChannel> {
        let upgrader = NIOTypedWebSocketClientUpgrader<FrameChannel>(
            maxFrameSize: frameSizeMax,
            upgradePipelineHandler: { channel, _ in
                channel.eventLoop.makeCompletedFuture { try FrameChannel(wrappingChannelSynchronously: channel) }
            })
        var headers = HTTPHeaders()
        headers.add(name: "Host", value: address.hostHeader)
        headers.add(name: "Content-Length", value: "0")
        let request = HTTPRequestHead(version: .http1_1, method: .GET, uri: address.path, headers: headers)
        let status = NIOLockedValueBox<HTTPResponseStatus?>(nil)
        let upgrade = NIOTypedHTTPClientUpgradeConfiguration(
            upgradeRequestHead: request, upgraders: [upgrader],
            notUpgradingCompletionHandler: { channel in
                channel.eventLoop.makeFailedFuture(UpgradeRefused(status: status.withLockedValue { $0 }))
            })
        let pipeline = channel.pipeline.syncOperations
        let upgraded = try pipeline.configureUpgradableHTTPClientPipeline(configuration: .init(upgradeConfiguration: upgrade))
        let upgradeHandler = try pipeline.handler(type: NIOTypedHTTPClientUpgradeHandler<FrameChannel>.self)
        try pipeline.addHandler(StatusReader(status), position: .before(upgradeHandler))
        return upgraded
    }

    /// Notes the status of the response, which the upgrade handlers don't expose.
    private final class StatusReader: ChannelInboundHandler, RemovableChannelHandler {
        typealias InboundIn = HTTPClientResponsePart
        private let status: NIOLockedValueBox<HTTPResponseStatus?>

        init(_ status: NIOLockedValueBox<HTTPResponseStatus?>) { self.status = status }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            if case .head(let head) = unwrapInboundIn(data) { status.withLockedValue { $0 = head.status } }
            // If the server accepts, frames follow the head.
            context.fireChannelRead(data)
            context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
        }
    }

    /// The server answered with something other than a WebSocket: a proxy's page, a wrong address, a server that is shutting down or full.
    struct UpgradeRefused: Error, CustomStringConvertible {
        var status: HTTPResponseStatus?

        var description: String {
            guard let status else { return "the server didn't accept a WebSocket here" }
            // RFC 9110 §15.6.4: the condition is temporary.
            if status == .serviceUnavailable { return "the server accepts no connections at the moment (503)" }
            return "the server didn't accept a WebSocket here (\(status.code))"
        }
    }

    // MARK: Exchanging frames

    /// Whether the client has begun to close.
    private final class Closing: Sendable {
        private let state = NIOLockedValueBox(false)
        var hasBegun: Bool { state.withLockedValue { $0 } }
        func begin() { state.withLockedValue { $0 = true } }
    }

    /// Reads and writes until either ends, and returns how it ended.
    private static func exchange(
        _ inbound: NIOAsyncChannelInboundStream<WebSocketFrame>, _ outbound: NIOAsyncChannelOutboundWriter<WebSocketFrame>,
        _ outgoing: AsyncStream<TransportCommand>, _ receive: @escaping @Sendable (TransportEvent) async -> Void,
        messageSizeBytesMax: Int
    ) async throws -> TransportEvent {
        // The server's answer to the close frame may arrive before the write of that frame is reported. It is still the client that closed.
        let closing = Closing()
        let closedByClient = TransportEvent.closed(code: nil, reason: "closed by the client")
        return try await withThrowingTaskGroup(of: TransportEvent.self) { group in
            group.addTask {
                var reader = MessageReader(sizeBytesMax: messageSizeBytesMax)
                for try await frame in inbound {
                    switch try reader.read(frame) {
                    case .message(let bytes): await receive(.message(bytes))
                    case .incomplete: break
                    case .pong: await receive(.heard)
                    case .ping(let data):
                        try await outbound.write(.pong(data))
                        await receive(.heard)
                    case .close(let code, let reason):
                        try? await outbound.write(.close(code))
                        return .closed(code: code, reason: reason)
                    }
                }
                return .closed(code: nil, reason: "the connection ended")
            }
            group.addTask {
                for await command in outgoing {
                    switch command {
                    case .message(let bytes): try await outbound.write(.text(bytes))
                    case .ping:
                        try await outbound.write(WebSocketFrame(fin: true, opcode: .ping, maskKey: .random(), data: ByteBuffer()))
                    }
                }
                closing.begin()
                try? await outbound.write(.close(1000))
                return closedByClient
            }
            defer { group.cancelAll() }
            let end = await group.nextResult()
            if closing.hasBegun { return closedByClient }
            return try end?.get() ?? .closed(code: nil, reason: "the connection ended")
        }
    }
}

extension WebSocketFrame {
    fileprivate static func text(_ bytes: [UInt8]) -> WebSocketFrame {
        WebSocketFrame(fin: true, opcode: .text, maskKey: .random(), data: ByteBuffer(bytes: bytes))
    }

    fileprivate static func pong(_ data: ByteBuffer) -> WebSocketFrame {
        WebSocketFrame(fin: true, opcode: .pong, maskKey: .random(), data: data)
    }

    fileprivate static func close(_ code: UInt16?) -> WebSocketFrame {
        var data = ByteBuffer()
        if let code { data.writeInteger(code) }
        return WebSocketFrame(fin: true, opcode: .connectionClose, maskKey: .random(), data: data)
    }
}
#endif
