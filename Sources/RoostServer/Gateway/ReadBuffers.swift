import NIOCore

/// The memory that a connection is read into: fresh for each read, and as large as its client writes at a time.
///
/// NIO's own allocators keep a buffer for each connection, which thousands of idle ones don't need. And a first read is small: all the
/// requests in it are decoded at once, however many there are.
struct ReadBuffers: RecvByteBufferAllocator, Equatable {
    private(set) var sizeBytes = 512
    let sizeBytesMax: Int

    /// Below it there is nothing to gain.
    private static let sizeBytesMin = 512

    init(sizeBytesMax: Int) { self.sizeBytesMax = sizeBytesMax }

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer { allocator.buffer(capacity: sizeBytes) }

    /// The next read is twice as large if this one was full, and half as large if this one was hardly used.
    mutating func record(actualReadBytes: Int) -> Bool {
        if actualReadBytes >= sizeBytes, sizeBytes < sizeBytesMax {
            sizeBytes = min(sizeBytes * 2, sizeBytesMax)
            return true
        }
        if actualReadBytes <= sizeBytes / 4 { sizeBytes = max(sizeBytes / 2, Self.sizeBytesMin) }
        return false
    }
}
