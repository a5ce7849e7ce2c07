import NIOCore
import RoostAPI
import RoostCore

/// A signal as it is written to any number of sockets.
struct SignalFrame: Hashable, Sendable {
    let key: Signal.Key
    let bytes: ByteBuffer

    init(_ signal: Signal) {
        key = signal.key
        var bytes = ByteBuffer()
        // The parts of a signal always encode.
        if let json = try? JSONWriter.bytes(of: ["signal": Body(signal)]) { bytes.writeTextFrame("", json) }
        self.bytes = bytes
    }

    private struct Body: Encodable {
        let kind: String
        let sender: UserID
        let channel: ChannelID?
        let content: JSONValue?

        init(_ signal: Signal) {
            kind = signal.kind.rawValue
            sender = signal.sender
            channel = signal.channel
            content = signal.content
        }
    }
}

/// Signals queued for a client that doesn't read: the newest of each key, and few. The oldest is dropped first.
struct SignalQueue {
    static let countMax = 32
    static let sizeBytesMax = 16 << 10

    private var frames: [SignalFrame] = []
    private(set) var sizeBytes = 0

    var isEmpty: Bool { frames.isEmpty }

    mutating func put(_ frame: SignalFrame) {
        if let index = frames.firstIndex(where: { $0.key == frame.key }) { remove(at: index) }
        frames.append(frame)
        sizeBytes += frame.bytes.readableBytes
        while frames.count > Self.countMax || sizeBytes > Self.sizeBytesMax { remove(at: 0) }
    }

    private mutating func remove(at index: Int) { sizeBytes -= frames.remove(at: index).bytes.readableBytes }

    /// Takes all signals, the oldest first.
    mutating func takeAll() -> [ByteBuffer] {
        defer { self = SignalQueue() }
        return frames.map(\.bytes)
    }
}
