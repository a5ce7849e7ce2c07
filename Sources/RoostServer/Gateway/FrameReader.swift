import NIOCore
import NIOWebSocket
import RoostAPI

/// One WebSocket frame of a client.
struct ClientFrame: Equatable {
    var opcode: WebSocketOpcode
    var isFinal = true
    /// The three bits that only extensions use.
    var hasReservedBits = false
    var isMasked = true
    /// Without the mask.
    var payload: ByteBuffer
}

/// Finds the frames in a client's bytes (RFC 6455 §5.2), one per call; the rest stays as bytes.
///
/// A pure state machine. The length of a frame is checked as soon as its head has arrived.
struct FrameReader {
    /// A frame that is longer than allowed.
    struct TooLong: Error, Equatable {}

    /// Bytes received that aren't part of a returned frame.
    private var received = ByteBuffer()
    /// Whether they are in their own buffer.
    private var isSettled = false

    /// Bytes received but not decoded.
    var waitingBytes: Int { received.readableBytes }

    mutating func receive(_ bytes: ByteBuffer) {
        var bytes = bytes
        if received.readableBytes == 0 {
            received = bytes
            isSettled = false
        } else {
            settle()
            // A buffer that grows by doubling leaves all its former sizes with the allocator. Untouched memory costs nothing.
            let missingBytes = announcedBytes - received.readableBytes
            if missingBytes > bytes.readableBytes { received.reserveCapacity(minimumWritableBytes: missingBytes) }
            received.writeBuffer(&bytes)
        }
    }

    /// The size of the next frame with its head; 0 while the head is incomplete, or if no frame may be that long.
    private var announcedBytes: Int {
        var head = received
        guard head.readInteger(as: UInt8.self) != nil, let second = head.readInteger(as: UInt8.self) else { return 0 }
        let length: Int? =
            switch second & 0x7F {
            case 126: head.readInteger(as: UInt16.self).map { Int($0) }
            case 127: head.readInteger(as: UInt64.self).flatMap { Int(exactly: $0) }
            case let short: Int(short)
            }
        guard let length, length <= Limits.messageSizeBytes else { return 0 }
        return head.readerIndex - received.readerIndex + (second & 0x80 != 0 ? 4 : 0) + length
    }

    /// The next frame; nil while it is incomplete.
    ///
    /// - Parameter sizeBytesMax: The largest payload.
    mutating func next(sizeBytesMax: Int) throws(TooLong) -> ClientFrame? {
        var rest = received
        guard let first = rest.readInteger(as: UInt8.self), let second = rest.readInteger(as: UInt8.self) else { return nil }
        let length: UInt64
        switch second & 0x7F {
        case 126:
            guard let long = rest.readInteger(as: UInt16.self) else { return nil }
            length = UInt64(long)
        case 127:
            guard let long = rest.readInteger(as: UInt64.self) else { return nil }
            length = long
        case let short: length = UInt64(short)
        }
        guard let length = Int(exactly: length), length <= sizeBytesMax else { throw TooLong() }
        var mask: WebSocketMaskingKey?
        if second & 0x80 != 0 {
            guard let bytes = rest.readBytes(length: 4), let key = WebSocketMaskingKey(bytes) else { return nil }
            mask = key
        }
        guard var payload = rest.readSlice(length: length) else { return nil }
        if let mask { payload.webSocketUnmask(mask) }
        received = rest
        if received.readableBytes == 0 { received = ByteBuffer() }
        return ClientFrame(
            opcode: WebSocketOpcode(encodedWebSocketOpcode: first & 0x0F) ?? .continuation, isFinal: first & 0x80 != 0,
            hasReservedBits: first & 0x70 != 0, isMasked: mask != nil, payload: payload)
    }

    /// Moves undecoded bytes into their own buffer, so the larger one that the socket was read into can be freed.
    mutating func settle() {
        if received.readableBytes == 0 {
            received = ByteBuffer()
        } else if isSettled {
            received.discardReadBytes()
        } else {
            received = ByteBuffer(buffer: received)
            isSettled = true
        }
    }
}
