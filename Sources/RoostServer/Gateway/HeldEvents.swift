import NIOCore

/// The events that reach a connection before its welcome and are sent after it.
///
/// On a single node there are none: the welcome has its place in the order of commits. In a cluster it waits for the slowest stream. If too
/// many events arrive meanwhile, all are dropped: after its welcome a client resumes from its positions and gets everything committed before.
/// So no stream has a gap, and no socket is closed because a channel is busy.
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
