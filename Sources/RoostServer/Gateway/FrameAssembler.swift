import NIOCore
import NIOWebSocket
import RoostAPI

/// Assembles the fragments of a client's messages, and refuses what a client must not send (RFC 6455 §5).
///
/// A pure state machine without I/O, which takes one frame at a time.
struct FrameAssembler {
    /// The result of a frame.
    enum Outcome: Equatable {
        /// A whole text message.
        case message(ByteBuffer)
        case ping(ByteBuffer)
        case pong(ByteBuffer)
        /// The client closes, with or without a code.
        case close(WebSocketErrorCode?)
        /// A fragment: no message yet.
        case incomplete
        /// The frame breaks a rule; the socket is closed with this code.
        case violation(WebSocketErrorCode, String)
    }

    /// The most fragments of one message. Each costs work however small it is.
    static let fragmentsMax = 1024

    private var fragments: ByteBuffer?
    private var fragmentCount = 0

    /// Bytes of the incomplete message.
    var waitingBytes: Int { fragments?.readableBytes ?? 0 }

    /// - Parameter sizeBytesMax: The largest message.
    mutating func receive(_ frame: ClientFrame, sizeBytesMax: Int = Limits.messageSizeBytes) -> Outcome {
        guard frame.isMasked else { return .violation(.protocolError, "a client's frames must be masked") }
        guard !frame.hasReservedBits else { return .violation(.protocolError, "no extension was negotiated") }
        switch frame.opcode {
        case .text:
            guard fragments == nil else { return .violation(.protocolError, "the previous message isn't finished") }
            return add(frame.payload, isLast: frame.isFinal, sizeBytesMax)
        case .continuation:
            guard fragments != nil else { return .violation(.protocolError, "there is no message to continue") }
            return add(frame.payload, isLast: frame.isFinal, sizeBytesMax)
        case .binary:
            return .violation(.unacceptableData, "messages must be text")
        case .ping, .pong, .connectionClose:
            return control(frame)
        default:
            return .violation(.protocolError, "unknown opcode")
        }
    }

    private func control(_ frame: ClientFrame) -> Outcome {
        guard frame.isFinal, frame.payload.readableBytes <= 125 else {
            return .violation(.protocolError, "a control frame must be unfragmented and at most 125 bytes long")
        }
        switch frame.opcode {
        case .ping: return .ping(frame.payload)
        case .pong: return .pong(frame.payload)
        default: return closing(frame.payload)
        }
    }

    /// The codes that a close frame may have (RFC 6455 §7.4): the registered ones, and those of libraries and apps. 1005, 1006 and 1015 are
    /// registered too, except for connections that ended without such a frame.
    private static let closeCodes: [ClosedRange<UInt16>] = [1000...1003, 1007...1014, 3000...4999]

    /// A close frame is empty, or has a code and then a reason in UTF-8 (RFC 6455 §5.5.1).
    private func closing(_ payload: ByteBuffer) -> Outcome {
        var reason = payload
        guard reason.readableBytes > 0 else { return .close(nil) }
        guard let code = reason.readInteger(as: UInt16.self) else {
            return .violation(.protocolError, "a close code must have two bytes")
        }
        guard Self.closeCodes.contains(where: { $0.contains(code) }) else {
            return .violation(.protocolError, "\(code) isn't a valid close code")
        }
        guard Self.isText(reason) else { return .violation(.dataInconsistentWithMessage, "a close reason must be UTF-8") }
        return .close(WebSocketErrorCode(codeNumber: Int(code)))
    }

    private mutating func add(_ data: ByteBuffer, isLast: Bool, _ sizeBytesMax: Int) -> Outcome {
        var data = data
        guard (fragments?.readableBytes ?? 0) + data.readableBytes <= sizeBytesMax else {
            return .violation(.messageTooLarge, "a message must have at most \(sizeBytesMax) bytes")
        }
        if fragments == nil, isLast { return validated(data) }
        fragmentCount += 1
        guard fragmentCount <= Self.fragmentsMax else {
            return .violation(.messageTooLarge, "a message must have at most \(Self.fragmentsMax) fragments")
        }
        if fragments == nil { fragments = data } else { fragments?.writeBuffer(&data) }
        guard isLast, let whole = fragments else { return .incomplete }
        fragments = nil
        fragmentCount = 0
        return validated(whole)
    }

    /// A text message is UTF-8 (RFC 6455 §8.1).
    private func validated(_ data: ByteBuffer) -> Outcome {
        Self.isText(data) ? .message(data) : .violation(.dataInconsistentWithMessage, "a text message must be UTF-8")
    }

    private static func isText(_ data: ByteBuffer) -> Bool {
        data.withUnsafeReadableBytes { bytes in String(validating: bytes, as: UTF8.self) != nil }
    }
}
