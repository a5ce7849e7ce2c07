#if !os(watchOS)
import NIOCore
import NIOWebSocket

/// Puts messages together from frames (RFC 6455 §5.4).
struct MessageReader {
    enum Read: Hashable {
        case message([UInt8])
        /// A part of a message: more is to come.
        case incomplete
        case ping(ByteBuffer)
        case pong
        case close(code: UInt16?, reason: String)
    }

    /// The server broke the protocol; the connection is of no use any more.
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
            guard let message else { throw Failure.unexpectedFrame("a continuation without a beginning") }
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
        // The only reference must be the local one, or every part would copy all the parts before it.
        message = nil
        var whole = start
        whole.append(contentsOf: data.readableBytesView)
        guard !isLast else { return .message(whole) }
        message = whole
        return .incomplete
    }
}
#endif
