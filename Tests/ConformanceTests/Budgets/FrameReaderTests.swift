import NIOCore
import RoostTestSupport
import Testing

@testable import RoostServer

/// Finding frames in bytes that arrive in any pieces.
@Suite struct FrameReaderTests {
    private static let frames: [(opcode: UInt8, payload: [UInt8])] = [
        (1, Array("{}".utf8)), (9, []), (1, [UInt8](repeating: 97, count: 125)), (1, [UInt8](repeating: 98, count: 126)),
        (0, [UInt8](repeating: 99, count: 300)), (8, [3, 232]), (1, []),
    ]

    @Test("I21 the same frames are found however the bytes are cut")
    func cut() throws {
        let bytes = Self.frames.flatMap { RawSocket.frame(opcode: $0.opcode, $0.payload) }
        let expected = Self.frames.map(\.payload)
        for size in [1, 2, 3, 5, 7, 64, 131, bytes.count] {
            var reader = FrameReader()
            var found: [[UInt8]] = []
            for start in stride(from: 0, to: bytes.count, by: size) {
                reader.receive(ByteBuffer(bytes: bytes[start..<min(start + size, bytes.count)]))
                while let frame = try reader.next(sizeBytesMax: 65_536) {
                    found.append(Array(frame.payload.readableBytesView))
                    #expect(frame.isMasked && frame.isFinal && !frame.hasReservedBits)
                }
                reader.settle()
            }
            #expect(found == expected, "pieces of \(size)")
            #expect(reader.waitingBytes == 0)
        }
    }

    @Test("I21 frames not yet requested are kept as bytes, and returned in order later")
    func waiting() throws {
        var reader = FrameReader()
        reader.receive(ByteBuffer(bytes: RawSocket.frame(opcode: 1, [65]) + RawSocket.frame(opcode: 1, [66])))
        #expect(try reader.next(sizeBytesMax: 10)?.payload == ByteBuffer(bytes: [65]))
        reader.settle()
        #expect(reader.waitingBytes == 7)
        reader.receive(ByteBuffer(bytes: RawSocket.frame(opcode: 1, [67])))
        #expect(try reader.next(sizeBytesMax: 10)?.payload == ByteBuffer(bytes: [66]))
        #expect(try reader.next(sizeBytesMax: 10)?.payload == ByteBuffer(bytes: [67]))
        #expect(try reader.next(sizeBytesMax: 10) == nil)
    }

    @Test(
        "I21 a length is refused as soon as it is announced, whatever follows",
        arguments: [
            [0x81, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
            [0x81, 0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF],
            [0x81, 0xFE, 0x00, 0x81], [0x81, 0x7F, 0, 0, 0, 0, 0, 0, 0, 129],
        ] as [[UInt8]])
    func tooLong(_ head: [UInt8]) {
        var reader = FrameReader()
        reader.receive(ByteBuffer(bytes: head))
        #expect(throws: FrameReader.TooLong.self) { try reader.next(sizeBytesMax: 128) }
    }

    /// The sizes of the buffers that NIO reads into, by the bytes available each time.
    private func reads(_ buffers: ReadBuffers, _ arrived: [Int]) -> [Int] {
        var pool = NIOPooledRecvBufferAllocator(capacity: 1, recvAllocator: buffers)
        var last: ByteBuffer?
        return arrived.map { count in
            let (buffer, size) = pool.buffer(allocator: ByteBufferAllocator()) { buffer in
                let size = buffer.writableBytes
                buffer.writeRepeatingByte(1, count: min(count, size))
                return size
            }
            // The reader still holds the previous buffer.
            last = buffer
            #expect(last?.readableBytes == min(count, size))
            pool.record(actualReadBytes: min(count, size))
            return size
        }
    }

    @Test("I18 a connection's read buffer grows with the bytes that arrive: at first it has room for a few requests only")
    func pieces() {
        #expect(reads(.ofFrames, [100, 512, 9000, 9000, 9000, 100]) == [512, 512, 2048, 8192, 8192, 8192])
        #expect(reads(.ofRequests, [9000, 9000, 9000]) == [512, 2048, 2048])
    }

    @Test("a burst of frames is read in one piece, whatever preceded it", arguments: [0, 1, 100])
    func bursts(between: Int) {
        // The small end of a burst leaves the buffer as it is.
        let burst = [6000] + Array(repeating: 200, count: min(between, 15))
        let sizes = reads(.ofFrames, [9000, 9000] + Array(repeating: burst, count: 20).joined())
        #expect(sizes.dropFirst(2).allSatisfy { $0 == 8192 })
    }

    @Test("a client that writes little for a long time is read in small pieces again")
    func smallAgain() {
        let sizes = reads(.ofFrames, [9000, 9000] + Array(repeating: 100, count: 100))
        #expect(sizes[2...17].allSatisfy { $0 == 8192 })
        #expect(sizes[18] == 4096)
        #expect(sizes.last == 512)
    }
}
