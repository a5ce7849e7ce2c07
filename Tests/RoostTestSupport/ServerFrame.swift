public import NIOCore

/// A WebSocket frame as the server writes it (RFC 6455 §5.2): whole and unmasked. Parsed by code that the server doesn't share.
public enum ServerFrame: Hashable, Sendable {
    case text([UInt8])
    case ping([UInt8])
    case pong
    case close(code: UInt16, reason: String)

    /// Reads one frame; nil while it is incomplete.
    public static func read(from buffer: inout ByteBuffer) -> ServerFrame? {
        var view = buffer
        guard let first: UInt8 = view.readInteger(), let second: UInt8 = view.readInteger() else { return nil }
        var length = Int(second & 127)
        if length == 126 {
            guard let long: UInt16 = view.readInteger() else { return nil }
            length = Int(long)
        } else if length == 127 {
            guard let long = view.readInteger(as: UInt64.self).flatMap({ Int(exactly: $0) }) else { return nil }
            length = long
        }
        guard var payload = view.readSlice(length: length) else { return nil }
        buffer = view
        switch first & 15 {
        case 1: return .text(Array(payload.readableBytesView))
        case 8: return .close(code: payload.readInteger() ?? 1005, reason: String(buffer: payload))
        case 9: return .ping(Array(payload.readableBytesView))
        default: return .pong
        }
    }

    /// All frames of a buffer, which contains nothing else.
    public static func all(in buffer: ByteBuffer) -> [ServerFrame] {
        var buffer = buffer
        var frames: [ServerFrame] = []
        while let frame = read(from: &buffer) { frames.append(frame) }
        precondition(buffer.readableBytes == 0, "The server wrote something else than whole frames.")
        return frames
    }

    /// The text messages of a buffer.
    public static func texts(in buffer: ByteBuffer) -> [[UInt8]] {
        all(in: buffer).compactMap { if case .text(let payload) = $0 { payload } else { nil } }
    }
}
