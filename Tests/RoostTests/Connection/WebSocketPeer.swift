import Foundation
import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOWebSocket
import RoostAPI

@testable import Roost

/// A server on this machine, for one connection.
final class WebSocketPeer: TransportPeer {
    private let listener: any NIOCore.Channel
    private let state: NIOLockedValueBox<PeerLog>

    private init(_ listener: any NIOCore.Channel, _ state: NIOLockedValueBox<PeerLog>) {
        (self.listener, self.state) = (listener, state)
    }

    static func start(_ behaviour: PeerBehaviour) async throws -> WebSocketPeer {
        let state = NIOLockedValueBox(PeerLog())
        let bootstrap = ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup).childChannelInitializer { channel in
            state.withLockedValue { $0.isReached = true }
            channel.closeFuture.whenComplete { _ in state.withLockedValue { $0.isLeft = true } }
            switch behaviour {
            case .answers: return accept(channel, state, answersPings: true)
            case .ignoresPings: return accept(channel, state, answersPings: false)
            case .refuses:
                return channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Refusal()) }
            case .silent, .absent: return channel.eventLoop.makeSucceededVoidFuture()
            }
        }
        let listener = try await bootstrap.bind(host: "127.0.0.1", port: 0).get()
        if case .absent = behaviour { try await listener.close() }
        return WebSocketPeer(listener, state)
    }

    private static func accept(
        _ channel: any NIOCore.Channel, _ state: NIOLockedValueBox<PeerLog>, answersPings: Bool
    ) -> EventLoopFuture<Void> {
        let upgrader = NIOWebSocketServerUpgrader(
            maxFrameSize: Limits.messageSizeBytes,
            shouldUpgrade: { channel, _ in channel.eventLoop.makeSucceededFuture([:]) },
            upgradePipelineHandler: { channel, _ in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Answers(state, answersPings: answersPings))
                }
            })
        return channel.pipeline.configureHTTPServerPipeline(withServerUpgrade: (upgraders: [upgrader], completionHandler: { _ in }))
    }

    var log: PeerLog { state.withLockedValue { $0 } }

    func run(_ outgoing: AsyncStream<TransportCommand>, _ receive: @escaping @Sendable (TransportEvent) async -> Void) async {
        guard let url = URL(string: "ws://127.0.0.1:\(listener.localAddress?.port ?? 0)") else { return }
        await WebSocketTransport().run(url: url, outgoing: outgoing, receive: receive)
    }

    func stop() async throws { if listener.isActive { try await listener.close() } }

    private final class Answers: ChannelInboundHandler {
        typealias InboundIn = WebSocketFrame
        typealias OutboundOut = WebSocketFrame

        private let state: NIOLockedValueBox<PeerLog>
        private let answersPings: Bool

        init(_ state: NIOLockedValueBox<PeerLog>, answersPings: Bool) { (self.state, self.answersPings) = (state, answersPings) }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let frame = unwrapInboundIn(data)
            switch frame.opcode {
            case .text: take(String(buffer: frame.unmaskedData), context)
            case .ping: if answersPings { write(.pong, frame.unmaskedData, context) }
            case .connectionClose:
                state.withLockedValue { $0.hasHeardGoodbye = true }
                write(.connectionClose, frame.unmaskedData, context)
            default: break
            }
        }

        private func take(_ text: String, _ context: ChannelHandlerContext) {
            state.withLockedValue { $0.texts.append(text) }
            switch text {
            case "bye":
                var data = ByteBuffer(integer: WebSocketPeer.goodbye.code ?? 0)
                data.writeString(WebSocketPeer.goodbye.reason)
                write(.connectionClose, data, context)
            case "break": context.close(promise: nil)
            case "flood":
                for number in 0..<WebSocketPeer.floodCount {
                    let taken = context.eventLoop.makePromise(of: Void.self)
                    taken.futureResult.whenSuccess { [state] in state.withLockedValue { $0.takenCount += 1 } }
                    let data = ByteBuffer(string: WebSocketPeer.longText(number))
                    context.writeAndFlush(wrapOutboundOut(WebSocketFrame(fin: true, opcode: .text, data: data)), promise: taken)
                }
                state.withLockedValue { $0.hasFlooded = true }
            default: write(.text, ByteBuffer(string: text), context)
            }
        }

        private func write(_ opcode: WebSocketOpcode, _ data: ByteBuffer, _ context: ChannelHandlerContext) {
            context.writeAndFlush(wrapOutboundOut(WebSocketFrame(fin: true, opcode: opcode, data: data)), promise: nil)
        }
    }

    /// Answers a request with a refusal.
    private final class Refusal: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let answer = ByteBuffer(string: "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
            context.writeAndFlush(wrapOutboundOut(answer), promise: nil)
        }
    }
}
