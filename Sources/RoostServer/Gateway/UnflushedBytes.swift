import NIOCore

/// Buffers queued for a connection that go out in one write: an event's is shared by all sockets that get it, and copied for none.
enum UnflushedBytes: Equatable, Sendable {
    /// Usually there is one piece, which needs no allocation.
    case one(ByteBuffer)
    case several([ByteBuffer], sizeBytes: Int)

    /// The pieces, in order.
    var pieces: [ByteBuffer] {
        switch self {
        case .one(let piece): [piece]
        case .several(let pieces, _): pieces
        }
    }

    /// The size of all pieces.
    var sizeBytes: Int {
        switch self {
        case .one(let piece): piece.readableBytes
        case .several(_, let sizeBytes): sizeBytes
        }
    }

    /// Returns the pieces that are left once some bytes were written.
    func pieces(after written: Int) -> [ByteBuffer] {
        guard written < sizeBytes else { return [] }
        var left = written
        return pieces.compactMap { piece in
            guard left < piece.readableBytes else {
                left -= piece.readableBytes
                return nil
            }
            defer { left = 0 }
            return piece.getSlice(at: piece.readerIndex + left, length: piece.readableBytes - left)
        }
    }
}

extension UnflushedBytes? {
    /// Appends a piece.
    mutating func append(_ piece: ByteBuffer) {
        switch take() {
        case nil: self = .one(piece)
        case .one(let first): self = .several([first, piece], sizeBytes: first.readableBytes + piece.readableBytes)
        case .several(var pieces, let sizeBytes):
            pieces.append(piece)
            self = .several(pieces, sizeBytes: sizeBytes + piece.readableBytes)
        }
    }
}
