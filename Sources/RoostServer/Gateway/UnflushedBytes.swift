import NIOCore

/// Bytes that wait to go out to a connection in one write, in pieces: an event's are shared by all sockets that get it, and copied for none.
enum UnflushedBytes: Equatable, Sendable {
    /// Mostly there is one piece, for which nothing is allocated.
    case one(ByteBuffer)
    case several([ByteBuffer], sizeBytes: Int)

    /// The pieces in their order.
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

    /// Returns the pieces that are left once so many bytes were written.
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
    /// Adds a piece behind the others.
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
