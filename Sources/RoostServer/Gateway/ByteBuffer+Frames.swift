import NIOCore

extension ByteBuffer {
    /// Writes an unmasked, final text frame, as a server sends it (RFC 6455 §5.2).
    mutating func writeTextFrame(_ prefix: StaticString = "", _ payload: [UInt8], _ suffix: StaticString = "") {
        let length = prefix.utf8CodeUnitCount + payload.count + suffix.utf8CodeUnitCount
        reserveCapacity(minimumWritableBytes: length + 10)
        writeInteger(UInt8(0x81))
        writeFrameLength(length)
        prefix.withUTF8Buffer { _ = writeBytes($0) }
        writeBytes(payload)
        suffix.withUTF8Buffer { _ = writeBytes($0) }
    }

    private mutating func writeFrameLength(_ length: Int) {
        if length < 126 {
            writeInteger(UInt8(length))
        } else if length <= UInt16.max {
            writeInteger(UInt8(126))
            writeInteger(UInt16(length))
        } else {
            writeInteger(UInt8(127))
            writeInteger(UInt64(length))
        }
    }

    /// Writes an unmasked control frame: ping, pong or close, with at most 125 bytes.
    mutating func writeControlFrame(opcode: UInt8, _ payload: some Collection<UInt8>) {
        let payload = payload.prefix(125)
        writeInteger(UInt8(0x80) | opcode)
        writeFrameLength(payload.count)
        writeBytes(payload)
    }
}
