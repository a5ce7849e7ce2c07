import Foundation
public import NIOCore
import NIOPosix
import Synchronization

/// A TCP connection to a loopback server, byte by byte, for clients that break rules.
public final class RawConnection: Sendable {
    private let channel: any Channel
    private let inbox: Mailbox<ByteBuffer>

    private init(channel: any Channel, inbox: Mailbox<ByteBuffer>) {
        self.channel = channel
        self.inbox = inbox
    }

    /// - Parameters:
    ///   - isHalfClosable: Whether the client may continue to send after the server has ended its half of the connection.
    ///   - isNarrow: Whether the kernel buffers little of what the client doesn't read, some 100 KiB instead of megabytes: packets to it are
    ///     small, and it offers little room.
    public static func connect(port: Int, isHalfClosable: Bool = false, isNarrow: Bool = false) async throws -> RawConnection {
        let inbox = Mailbox<ByteBuffer>()
        let bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.allowRemoteHalfClosure, value: isHalfClosable)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Receiver(inbox: inbox)) }
            }
        if isNarrow {
            _ =
                bootstrap
                .channelOption(.socketOption(.so_rcvbuf), value: 4096)
                .channelOption(.tcpOption(.init(rawValue: TCP_MAXSEG)), value: 536)
        }
        let channel = try await bootstrap.connect(host: "127.0.0.1", port: port).get()
        return RawConnection(channel: channel, inbox: inbox)
    }

    public func send(_ bytes: some Sequence<UInt8> & Sendable) async throws {
        try await channel.writeAndFlush(ByteBuffer(bytes: bytes))
    }
    public func send(_ text: String) async throws { try await send(Array(text.utf8)) }

    /// Sends without waiting for the kernel to accept the bytes: for a client whose peer has stopped reading.
    public func post(_ bytes: some Sequence<UInt8> & Sendable) { channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil) }

    /// Bytes as they arrive; nil at the end of the stream or at the deadline.
    public func receive(within deadline: Duration = .seconds(20)) async -> ByteBuffer? { await inbox.next(within: deadline) }

    /// Stops or starts reading from the socket.
    public func setReading(_ isReading: Bool) async throws { try await channel.setOption(.autoRead, value: isReading).get() }

    /// Reads a little from the socket while reading is stopped.
    public func readOnce() { channel.read() }

    /// Everything until the server closes.
    public func receiveAll(within deadline: Duration = .seconds(20)) async -> String {
        var text = ""
        while let bytes = await receive(within: deadline) { text += String(buffer: bytes) }
        return text
    }

    public func close() async { try? await channel.close() }

    /// Ends the client's half of the connection, and continues reading.
    public func endOutput() async { try? await channel.close(mode: .output) }

    /// Waits until the server has ended the connection; earlier bytes are read and dropped.
    public func isClosed(within deadline: Duration = .seconds(20)) async -> Bool {
        let end = ContinuousClock.now + deadline
        while channel.isActive, ContinuousClock.now < end { _ = await inbox.next(within: .milliseconds(20)) }
        return !channel.isActive
    }

    private final class Receiver: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let inbox: Mailbox<ByteBuffer>
        init(inbox: Mailbox<ByteBuffer>) { self.inbox = inbox }
        func channelRead(context: ChannelHandlerContext, data: NIOAny) { inbox.put(unwrapInboundIn(data)) }
        func channelInactive(context: ChannelHandlerContext) { inbox.close() }
        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if case ChannelEvent.inputClosed = event { inbox.close() }
            context.fireUserInboundEventTriggered(event)
        }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
