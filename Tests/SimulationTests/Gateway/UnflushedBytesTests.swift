import NIOCore
import Testing

@testable import RoostServer

/// The buffers queued for a socket.
@Suite struct UnflushedBytesTests {
    @Test("bytes that the connection didn't take stay queued, from the first of them on")
    func partOfAWrite() {
        let bytes: UnflushedBytes = [ByteBuffer(string: "ab"), ByteBuffer(string: "cde"), ByteBuffer(string: "f")]
        for written in 0...bytes.sizeBytes {
            let rest = bytes.pieces(after: written).map { String(buffer: $0) }
            #expect(rest.joined() == "abcdef".dropFirst(written) && !rest.contains(""))
        }
    }
}

extension UnflushedBytes: ExpressibleByArrayLiteral {
    init(arrayLiteral pieces: ByteBuffer...) {
        self = pieces.count == 1 ? .one(pieces[0]) : .several(pieces, sizeBytes: pieces.reduce(0) { $0 + $1.readableBytes })
    }
}
