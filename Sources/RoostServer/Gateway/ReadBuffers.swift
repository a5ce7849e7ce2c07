import NIOCore

/// The memory that a connection is read into: fresh for each read, and as large as its client writes at a time.
///
/// A buffer that is kept for the next read would be kept by thousands of idle connections too.
struct ReadBuffers: RecvByteBufferAllocator, Equatable {
    /// Of HTTP all requests in one read are decoded at once, however many there are.
    static let ofRequests = ReadBuffers(sizeBytesMax: 2 << 10)
    /// Of a socket one frame is decoded after the other, and the rest waits as bytes.
    static let ofFrames = ReadBuffers(sizeBytesMax: 8 << 10)

    private var sizeBytes = Self.sizeBytesMin
    private let sizeBytesMax: Int
    /// Reads in a row that would have fit into a quarter of the buffer.
    private var smallReads = 0

    /// Below it there is nothing to gain.
    private static let sizeBytesMin = 512
    /// A burst of requests mostly ends with a small read. If each of those made the next buffer smaller, every burst would come in pieces, and
    /// with those of other clients between them: a commit then changes more pages for as many messages.
    private static let smallReadsMax = 16

    private init(sizeBytesMax: Int) { self.sizeBytesMax = sizeBytesMax }

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer { allocator.buffer(capacity: sizeBytes) }

    /// The next read is four times as large if this one was full, and half as large if the last ones were all small.
    ///
    /// - Returns: Always true: if the next buffer can't be a larger one, NIO reads into the connection's first buffer again.
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
