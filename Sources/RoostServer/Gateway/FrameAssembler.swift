import NIOCore
import NIOWebSocket
import RoostAPI

/// Puts the fragments of a client's messages together, and refuses what a client must not send (RFC 6455 §5).
///
/// A pure state machine without I/O, which takes one frame at a time.
struct FrameAssembler {
    /// The result of a frame.
    enum Outcome: Equatable {
        /// A whole text message.
        case message(ByteBuffer)
        case ping(ByteBuffer)
        case pong
        /// The client closes.
        case close
        /// Nothing yet: a fragment.
        case incomplete
        /// The frame breaks a rule; the socket is closed with this code.
        case violation(WebSocketErrorCode, String)
    }

    /// Fragments of one message. Each costs work however small it is.
    static let fragmentsMax = 1024

    private var fragments: ByteBuffer?
    private var fragmentCount = 0

    /// Bytes of the message that isn't whole yet.
    var waitingBytes: Int { fragments?.readableBytes ?? 0 }

    /// - Parameter sizeBytesMax: The largest message.
    mutating func receive(_ frame: ClientFrame, sizeBytesMax: Int = Limits.messageSizeBytes) -> Outcome {
        guard frame.isMasked else { return .violation(.protocolError, "a client's frames must be masked") }
        guard !frame.hasReservedBits else { return .violation(.protocolError, "no extension was agreed on") }
        switch frame.opcode {
        case .text:
            guard fragments == nil else { return .violation(.protocolError, "the last message isn't finished") }
            return add(frame.payload, isLast: frame.isFinal, sizeBytesMax)
        case .continuation:
            guard fragments != nil else { return .violation(.protocolError, "there is no message to continue") }
            return add(frame.payload, isLast: frame.isFinal, sizeBytesMax)
        case .binary:
            return .violation(.unacceptableData, "messages are text")
        case .ping, .pong, .connectionClose:
            return control(frame)
        default:
            return .violation(.protocolError, "unknown opcode")
        }
    }

    private func control(_ frame: ClientFrame) -> Outcome {
        guard frame.isFinal, frame.payload.readableBytes <= 125 else {
            return .violation(.protocolError, "a control frame is whole and short")
        }
        switch frame.opcode {
        case .ping: return .ping(frame.payload)
        case .pong: return .pong
        default: return .close
        }
    }

    private mutating func add(_ data: ByteBuffer, isLast: Bool, _ sizeBytesMax: Int) -> Outcome {
        var data = data
        guard (fragments?.readableBytes ?? 0) + data.readableBytes <= sizeBytesMax else {
            return .violation(.messageTooLarge, "a message has at most \(sizeBytesMax) bytes")
        }
        if fragments == nil, isLast { return validated(data) }
        fragmentCount += 1
        guard fragmentCount <= Self.fragmentsMax else {
            return .violation(.messageTooLarge, "a message has at most \(Self.fragmentsMax) fragments")
        }
        if fragments == nil { fragments = data } else { fragments?.writeBuffer(&data) }
        guard isLast, let whole = fragments else { return .incomplete }
        fragments = nil
        fragmentCount = 0
        return validated(whole)
    }

    /// A text message is UTF-8 (RFC 6455 §8.1).
    private func validated(_ data: ByteBuffer) -> Outcome {
        let isText = data.withUnsafeReadableBytes { bytes in String(validating: bytes, as: UTF8.self) != nil }
        return isText ? .message(data) : .violation(.dataInconsistentWithMessage, "a text message is UTF-8")
    }
}
