import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import NIOWebSocket
import RoostAPI
import Testing

@testable import Roost

@Suite("WebSocketTransport", .timeLimit(.minutes(5)))
struct WebSocketTransportTests {
    @Test("A message comes back whole, also one that takes several frames; the end is told once")
    func echo() async throws {
        let server = try await EchoServer.start()
        let url = try #require(URL(string: "ws://127.0.0.1:\(server.port)"))
        let (commands, outgoing) = AsyncStream.makeStream(of: TransportCommand.self)
        let (events, continuation) = AsyncStream.makeStream(of: TransportEvent.self)
        let long = Array(String(repeating: "hello ", count: 50_000).utf8)
        let run = Task {
            await WebSocketTransport().run(url: url, outgoing: commands) { continuation.yield($0) }
            continuation.finish()
        }
        outgoing.yield(.message(Array("hi".utf8)))
        outgoing.yield(.message(long))
        outgoing.yield(.ping)
        var seen: [TransportEvent] = []
        for await event in events {
            seen.append(event)
            if event == .heard { outgoing.finish() }
        }
        await run.value
        let expected: [TransportEvent] = [
            .opened, .message(Array("hi".utf8)), .message(long), .heard, .closed(code: nil, reason: "closed by the client"),
        ]
        // Not shown on failure: the long message would fill the log.
        let isAsExpected = seen == expected
        #expect(isAsExpected, "\(seen.count) events")
        try await server.stop()
    }

    @Test("Where somebody takes the connection and never answers, cancelling ends it")
    func silent() async throws {
        let (gone, continuation) = AsyncStream.makeStream(of: Void.self)
        let listener = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup).childChannelInitializer { channel in
            channel.closeFuture.whenComplete { _ in continuation.finish() }
            continuation.yield()
            return channel.eventLoop.makeSucceededVoidFuture()
        }.bind(host: "127.0.0.1", port: 0).get()
        let url = try #require(URL(string: "ws://127.0.0.1:\(listener.localAddress?.port ?? 0)"))
        let run = Task { await WebSocketTransport().run(url: url, outgoing: AsyncStream { _ in }) { _ in } }
        var connections = gone.makeAsyncIterator()
        _ = await connections.next()
        run.cancel()
        await run.value
        #expect(await connections.next() == nil)
        try await listener.close()
    }

    @Test("A secure connection that ends is no problem of a certificate, also where the other side closes it without saying so")
    func insecureEnd() throws {
        let url = try #require(URL(string: "wss://example.com"))
        let broken: [any Error] = [NIOSSLError.uncleanShutdown, NIOSSLError.readInInvalidTLSState, BoringSSLError.zeroReturn]
        #expect(broken.map { WebSocketTransport.reason(ofEnd: $0).cause } == [.network, .network, .network])
        let refused: [any Error] = [
            NIOSSLError.uncleanShutdown, NIOSSLError.handshakeFailed(.zeroReturn), NIOSSLError.unableToValidateCertificate,
        ]
        #expect(refused.map { WebSocketTransport.reason(of: $0, url).cause } == [.network, .certificate, .certificate])
    }

    @Test("Where nobody listens, the end is all that is told")
    func refused() async throws {
        let server = try await EchoServer.start()
        try await server.stop()
        let url = try #require(URL(string: "ws://127.0.0.1:\(server.port)"))
        let (events, continuation) = AsyncStream.makeStream(of: TransportEvent.self)
        await WebSocketTransport().run(url: url, outgoing: AsyncStream { _ in }) { continuation.yield($0) }
        continuation.finish()
        var count = 0
        for await event in events {
            count += 1
            if case .closed = event { continue }
            Issue.record("\(event)")
        }
        #expect(count == 1)
    }
}

/// A WebSocket server that sends text messages back and answers pings.
private struct EchoServer {
    let channel: any NIOCore.Channel
    var port: Int { channel.localAddress?.port ?? 0 }

    static func start() async throws -> EchoServer {
        let bootstrap = ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup).childChannelInitializer { channel in
            let upgrader = NIOWebSocketServerUpgrader(
                maxFrameSize: Limits.frameSizeBytes,
                shouldUpgrade: { channel, _ in channel.eventLoop.makeSucceededFuture([:]) },
                upgradePipelineHandler: { channel, _ in
                    channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Echo()) }
                })
            return channel.pipeline.configureHTTPServerPipeline(
                withServerUpgrade: (upgraders: [upgrader], completionHandler: { _ in }))
        }
        return EchoServer(channel: try await bootstrap.bind(host: "127.0.0.1", port: 0).get())
    }

    func stop() async throws { try await channel.close() }

    private final class Echo: ChannelInboundHandler {
        typealias InboundIn = WebSocketFrame
        typealias OutboundOut = WebSocketFrame

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let frame = unwrapInboundIn(data)
            let opcode = frame.opcode == .ping ? WebSocketOpcode.pong : frame.opcode
            let echo = WebSocketFrame(fin: frame.fin, opcode: opcode, data: frame.unmaskedData)
            context.writeAndFlush(wrapOutboundOut(echo), promise: nil)
        }
    }
}
