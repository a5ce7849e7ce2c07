import NIOCore
import RoostAPI

/// Signals queued for a client that doesn't read: the newest of each key, only a few with their content. The oldest makes room first.
///
/// If the client has to ask for a signal that makes room, a loss marker stays: it only says that something is missing. These are small, but
/// there can be as many as the client watches channels. If there are too many, the client can no longer be notified, and the queue
/// ``isOverfull``.
struct SignalQueue {
    /// The most signals with their content.
    static let countMax = 32
    /// The most bytes, including the loss markers of signals that made room.
    static let sizeBytesMax = 16 << 10
    /// The most bytes once only loss markers are left.
    static let lossMarkersSizeBytesMax = 64 << 10

    private struct Waiting {
        var frame: SignalFrame
        /// Whether it only says that something is missing.
        var isLossMarker = false
    }
    private var waiting: [Waiting] = []
    private var lossMarkerCount = 0
    private(set) var sizeBytes = 0
    /// Whether something was lost and the client can't be notified. Its connection has to end: the next one gets everything.
    private(set) var isOverfull = false

    var isEmpty: Bool { waiting.isEmpty }

    mutating func put(_ frame: SignalFrame) {
        guard !isOverfull else { return }
        var frame = frame
        if let index = waiting.firstIndex(where: { $0.frame.key == frame.key }) {
            remove(at: index)
            frame = frame.replacing()
        }
        waiting.append(Waiting(frame: frame))
        sizeBytes += frame.bytes.readableBytes
        var index = 0
        while index < waiting.count, sizeBytes > Self.sizeBytesMax || waiting.count - lossMarkerCount > Self.countMax {
            if waiting[index].isLossMarker {
                index += 1
            } else if let marker = waiting[index].frame.lossMarker() {
                sizeBytes += marker.bytes.readableBytes - waiting[index].frame.bytes.readableBytes
                waiting[index] = Waiting(frame: marker, isLossMarker: true)
                lossMarkerCount += 1
                index += 1
            } else {
                remove(at: index)
            }
        }
        guard sizeBytes > Self.lossMarkersSizeBytesMax else { return }
        self = SignalQueue()
        isOverfull = true
    }

    private mutating func remove(at index: Int) {
        let removed = waiting.remove(at: index)
        sizeBytes -= removed.frame.bytes.readableBytes
        if removed.isLossMarker { lossMarkerCount -= 1 }
    }

    /// Takes all signals, the oldest first.
    mutating func takeAll() -> [ByteBuffer] {
        defer { self = SignalQueue() }
        return waiting.map(\.frame.bytes)
    }
}
