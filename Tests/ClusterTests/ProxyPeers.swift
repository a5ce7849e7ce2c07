import NIOCore
import NIOPosix
import RoostTestSupport

/// A server that greets with its name and echoes: the target of a proxy in tests.
final class Target: Sendable {
    let port: Int
    /// Notified of each connection that ended.
    let ended: Mailbox<Void>
    private let listener: any Channel

    static func start(name: String) async throws -> Target {
        let ended = Mailbox<Void>()
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Echo(name: name, ended: ended))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return Target(listener: listener, ended: ended)
    }

    private init(listener: any Channel, ended: Mailbox<Void>) {
        self.listener = listener
        self.ended = ended
        port = listener.localAddress?.port ?? 0
    }

    func stop() async { try? await listener.close() }

    private final class Echo: ChannelDuplexHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        private let name: String
        private let ended: Mailbox<Void>
        private var owesRead = false

        init(name: String, ended: Mailbox<Void>) {
            self.name = name
            self.ended = ended
        }

        func channelActive(context: ChannelHandlerContext) {
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: "\(name)\n")), promise: nil)
            context.fireChannelActive()
        }
        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            context.writeAndFlush(wrapOutboundOut(unwrapInboundIn(data)), promise: nil)
        }
        /// Reads no faster than it can write.
        func read(context: ChannelHandlerContext) {
            if context.channel.isWritable { context.read() } else { owesRead = true }
        }
        func channelWritabilityChanged(context: ChannelHandlerContext) {
            if context.channel.isWritable, owesRead {
                owesRead = false
                context.read()
            }
        }
        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            guard case .inputClosed? = event as? ChannelEvent else { return }
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: "bye from \(name)\n")), promise: nil)
            context.close(promise: nil)
        }
        func channelInactive(context: ChannelHandlerContext) { ended.put(()) }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}

/// A client that reads lines, and can end only its own direction.
final class ClientSocket: Sendable {
    private let channel: any Channel
    private let pieces: Mailbox<String>

    static func connect(port: Int) async throws -> ClientSocket {
        let pieces = Mailbox<String>()
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Receiver(pieces: pieces)) }
            }
            .connect(host: "127.0.0.1", port: port).get()
        return ClientSocket(channel: channel, pieces: pieces)
    }

    private init(channel: any Channel, pieces: Mailbox<String>) {
        self.channel = channel
        self.pieces = pieces
    }

    func send(_ text: String) async throws { try await channel.writeAndFlush(ByteBuffer(string: text)) }
    func finishSending() async throws { try await channel.close(mode: .output) }
    func setReading(_ isReading: Bool) async throws { try await channel.setOption(.autoRead, value: isReading).get() }
    func close() async { try? await channel.close() }

    func receive() async -> String? { await pieces.next() }

    /// The next line; nil if the connection ends first. In these tests each line arrives in one piece, and alone.
    func line() async -> String? { await receive().map { String($0.prefix { $0 != "\n" }) } }

    private final class Receiver: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let pieces: Mailbox<String>
        init(pieces: Mailbox<String>) { self.pieces = pieces }
        func channelRead(context: ChannelHandlerContext, data: NIOAny) { pieces.put(String(buffer: unwrapInboundIn(data))) }
        func channelInactive(context: ChannelHandlerContext) { pieces.close() }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
