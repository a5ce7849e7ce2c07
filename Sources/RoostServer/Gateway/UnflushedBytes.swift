import NIOCore

/// Bytes that wait to go out to a connection in one write, in pieces: an event's are shared by all sockets that get it, and copied for none.
struct UnflushedBytes: Equatable, Sendable {
    // Mostly there is one piece, for which nothing is allocated.
    private var first: ByteBuffer?
    private var rest: [ByteBuffer] = []
    /// The size of all pieces.
    private(set) var sizeBytes = 0

    var isEmpty: Bool { first == nil }

    /// The pieces in their order.
    var pieces: [ByteBuffer] { (first.map { [$0] } ?? []) + rest }

    /// The one piece; nil if there are none or several.
    var onlyPiece: ByteBuffer? { rest.isEmpty ? first : nil }

    mutating func append(_ piece: ByteBuffer) {
        sizeBytes += piece.readableBytes
        if first == nil { first = piece } else { rest.append(piece) }
    }

    mutating func take() -> UnflushedBytes? {
        guard !isEmpty else { return nil }
        defer { self = UnflushedBytes() }
        return self
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
