import Foundation
package import NIOCore
import NIOHTTP1
import NIOWebSocket
package import RoostAPI
package import RoostCore

/// Where bytes from outside are read, each place on its own: for fuzzing.
package enum UntrustedBytes {
    private static let metrics = ServerMetrics()

    /// Reads JSON as a body is read; nil when it is refused.
    package static func json(_ bytes: [UInt8]) -> JSONValue? {
        guard String(validating: bytes, as: UTF8.self) != nil, let scan = try? JSONScan(bytes), scan.problem == nil else {
            return nil
        }
        return try? JSONDecoder().decode(JSONValue.self, from: Data(bytes))
    }

    /// Whether a text is JSON to the letter, and costs no more than it may.
    package static func isJSON(_ bytes: [UInt8]) -> Bool { (try? JSONScan(bytes)) != nil }

    /// What a socket's message amounts to.
    package enum Message {
        case authenticate
        case call(any Handled)
        case refused(RoostError)
    }

    package static func message(_ bytes: [UInt8]) -> Message {
        switch ClientMessage(ByteBuffer(bytes: bytes)) {
        case .authenticate: .authenticate
        case .call(_, let operation): .call(operation)
        case .refused(_, let error), .malformed(let error): .refused(error)
        }
    }

    /// Whether bytes are a packet of the bus for a channel.
    package static func isPacket(_ bytes: [UInt8], of channel: ChannelID) -> Bool {
        Packet.decode(bytes, of: .channel(channel)) != nil
    }

    /// A packet of the bus, as a node writes it.
    package static func packet(of channel: ChannelID, json: [UInt8]) -> [UInt8] {
        Packet.encode([StreamItem(stream: .channel(channel), after: 3, seq: 4, left: [.init(user: "ann", seq: 4)], json: json)])
            .first?.bytes ?? []
    }

    /// Makes a channel read bytes as a connection of the server does, up to the decoding of frames, without what serves them: each request is
    /// answered with 200, and each message read and dropped.
    package static func install(on channel: any NIOCore.Channel) throws {
        let upgrader = SocketUpgrader<Void>(mayUpgrade: SocketRequest.opensSocket) { channel, _ in
            try HTTPPipeline.uninstall(from: channel)
            try channel.pipeline.syncOperations.addHandler(FrameSink())
        }
        let configuration = NIOTypedHTTPServerUpgradeConfiguration<Void>(
            upgraders: [upgrader],
            notUpgradingCompletionHandler: { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(RequestSink()) }
            })
        // A connection that ends before it is one is no failure here.
        _ = try HTTPPipeline.install(on: channel, limits: .init(), metrics: metrics, upgrade: configuration)
    }

    /// Answers requests.
    private final class RequestSink: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard case .end = unwrapInboundIn(data) else { return }
            let head = HTTPResponseHead(version: .http1_1, status: .ok, headers: ["content-length": "0"])
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    /// Reads a socket's frames.
    private final class FrameSink: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private var reader = FrameReader()
        private var assembler = FrameAssembler()

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            reader.receive(unwrapInboundIn(data))
            do {
                while let frame = try reader.next(sizeBytesMax: Limits.frameSizeBytes) {
                    switch assembler.receive(frame) {
                    case .message(let message): _ = UntrustedBytes.message(Array(message.readableBytesView))
                    case .ping, .pong, .incomplete: break
                    case .close, .violation: return context.close(promise: nil)
                    }
                }
                reader.settle()
            } catch {
                context.close(promise: nil)
            }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
