import Foundation
package import NIOCore
import NIOHTTP1
import NIOWebSocket
package import RoostAPI
package import RoostCore

/// Each place that reads bytes from outside, on its own: for fuzzing.
package enum UntrustedBytes {
    private static let metrics = ServerMetrics()

    /// Reads JSON like a body; nil if it is refused.
    package static func json(_ bytes: [UInt8]) -> JSONValue? {
        guard String(validating: bytes, as: UTF8.self) != nil, let scan = try? JSONScan(bytes), scan.problem == nil else {
            return nil
        }
        return try? JSONDecoder().decode(JSONValue.self, from: Data(bytes))
    }

    /// Returns whether a text is strictly JSON and cheap enough to decode.
    package static func isJSON(_ bytes: [UInt8]) -> Bool { (try? JSONScan(bytes)) != nil }

    /// The result of a socket's message.
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

    /// Returns whether bytes are a packet of the bus for a channel.
    package static func isPacket(_ bytes: [UInt8], of channel: ChannelID) -> Bool {
        Packet.decode(bytes, of: .channel(channel)) != nil
    }

    /// Makes a packet of the bus, as a node does.
    package static func packet(of channel: ChannelID, json: [UInt8]) -> [UInt8] {
        Packet.encode([StreamItem(stream: .channel(channel), after: 3, seq: 4, left: [.init(user: "ann", seq: 4)], json: json)])
            .first?.bytes ?? []
    }

    /// Makes a channel read bytes as a connection of the server does, up to the decoding of frames, without serving them: each request is
    /// answered with 200, and each message is read and dropped.
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
        // A connection that closes during setup isn't a failure here.
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
