import NIOCore

/// The events that reach a connection before its welcome, which comes first.
///
/// On one node there are none: the welcome stands in its place in the order of commits. In a cluster it waits for the slowest of the streams.
/// When too much comes meanwhile all of it is let go: a client resumes after its welcome from the positions that it holds, and is told all
/// that was committed before. So no stream has a hole, and nobody is closed because their channel is busy.
struct HeldEvents {
    static let sizeBytesMax = 1 << 20

    private var events: [ByteBuffer] = []
    private var sizeBytes = 0

    mutating func append(_ event: ByteBuffer) {
        sizeBytes += event.readableBytes
        if sizeBytes > Self.sizeBytesMax { events = [] } else { events.append(event) }
    }

    mutating func release() -> [ByteBuffer] {
        defer { self = HeldEvents() }
        return events
    }
}
