import NIOCore

/// Allocates the buffers that a connection is read into: a new one for each read, as large as its client's writes.
///
/// If buffers were kept for the next read, thousands of idle connections would each keep one.
struct ReadBuffers: RecvByteBufferAllocator, Equatable {
    /// For HTTP, where all requests in one read are decoded at once, however many there are.
    static let ofRequests = ReadBuffers(sizeBytesMax: 2 << 10)
    /// For sockets, where frames are decoded one by one and the rest stays as bytes.
    static let ofFrames = ReadBuffers(sizeBytesMax: 8 << 10)

    private var sizeBytes = Self.sizeBytesMin
    private let sizeBytesMax: Int
    /// Consecutive reads that would have fit into a quarter of the buffer.
    private var smallReads = 0

    /// A smaller buffer gains nothing.
    private static let sizeBytesMin = 512
    /// A burst of requests usually ends with a small read. If each of those shrank the next buffer, bursts would arrive in pieces,
    /// interleaved with other clients': a commit would then change more pages for the same number of messages.
    private static let smallReadsMax = 16

    private init(sizeBytesMax: Int) { self.sizeBytesMax = sizeBytesMax }

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer { allocator.buffer(capacity: sizeBytes) }

    /// Makes the next buffer four times as large if this read filled its own, and half as large after a run of small reads.
    ///
    /// - Returns: Always true: if the next buffer can't be larger, NIO reuses the connection's first buffer.
    mutating func record(actualReadBytes: Int) -> Bool {
        smallReads = actualReadBytes > sizeBytes / 4 ? 0 : smallReads + 1
        if actualReadBytes >= sizeBytes {
            sizeBytes = min(sizeBytes * 4, sizeBytesMax)
        } else if smallReads == Self.smallReadsMax {
            sizeBytes = max(sizeBytes / 2, Self.sizeBytesMin)
            smallReads = 0
        }
        return true
    }
}
