import NIOCore
import Testing

@testable import RoostServer

/// The pieces that wait for a socket.
@Suite struct UnflushedBytesTests {
    @Test("What the connection didn't take is left, from the byte on that it didn't")
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
