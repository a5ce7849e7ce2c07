#if !os(watchOS)
import NIOCore
import NIOWebSocket

/// Assembles messages from frames (RFC 6455 §5.4).
struct MessageReader {
    enum Read: Hashable {
        case message([UInt8])
        /// Part of a message: more follows.
        case incomplete
        case ping(ByteBuffer)
        case pong
        case close(code: UInt16?, reason: String)
    }

    /// The server broke the protocol; the connection can't be used any longer.
    enum Failure: Error, Hashable {
        case messageTooLarge(limitBytes: Int)
        case unexpectedFrame(String)
    }

    let sizeBytesMax: Int
    private var message: [UInt8]?

    init(sizeBytesMax: Int) { self.sizeBytesMax = sizeBytesMax }

    mutating func read(_ frame: WebSocketFrame) throws -> Read {
        let data = frame.unmaskedData
        switch frame.opcode {
        case .text:
            guard message == nil else { throw Failure.unexpectedFrame("a message began inside another") }
            return try append(data, to: [], isLast: frame.fin)
        case .continuation:
            guard let message else { throw Failure.unexpectedFrame("a continuation without a message") }
            return try append(data, to: message, isLast: frame.fin)
        case .ping: return .ping(data)
        case .pong: return .pong
        case .connectionClose:
            var data = data
            let code = data.readInteger(as: UInt16.self)
            return .close(code: code, reason: String(buffer: data))
        default: throw Failure.unexpectedFrame("opcode \(frame.opcode)")
        }
    }

    private mutating func append(_ data: ByteBuffer, to start: [UInt8], isLast: Bool) throws -> Read {
        guard start.count + data.readableBytes <= sizeBytesMax else { throw Failure.messageTooLarge(limitBytes: sizeBytesMax) }
        // The local reference must be the only one, or every part would copy all previous parts.
        message = nil
        var whole = start
        whole.append(contentsOf: data.readableBytesView)
        guard !isLast else { return .message(whole) }
        message = whole
        return .incomplete
    }
}
#endif
