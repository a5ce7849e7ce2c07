import NIOCore
import RoostAPI
import RoostCore

/// A signal as it is written to any number of sockets.
struct SignalFrame: Hashable, Sendable {
    let key: Signal.Key
    let bytes: ByteBuffer

    /// The forms for users who get another one: nobody is told that they type themselves.
    let formsOfUsers: [UserID: ByteBuffer]
    /// The signal for whoever has lost the one before it.
    private let afterLoss: Signal

    init(_ signal: Signal) {
        key = signal.key
        afterLoss = signal.afterLoss
        bytes = Self.bytes(of: signal)
        var forms: [UserID: ByteBuffer] = [:]
        if let typing = signal.typing {
            for user in typing.users {
                var form = signal
                form.typing = TypingUsers(users: typing.users.filter { $0 != user }, hasMore: typing.hasMore)
                forms[user] = Self.bytes(of: form)
            }
        }
        formsOfUsers = forms
    }

    private init(_ frame: SignalFrame, bytes: ByteBuffer) {
        key = frame.key
        self.bytes = bytes
        formsOfUsers = [:]
        afterLoss = frame.afterLoss
    }

    /// The frame as a user gets it.
    func form(for user: UserID) -> SignalFrame {
        formsOfUsers[user].map { SignalFrame(self, bytes: $0) } ?? self
    }

    /// The frame for a client that doesn't get the one before it of the same key.
    func replacing() -> SignalFrame { afterLoss.isWhole ? self : SignalFrame(self, bytes: Self.bytes(of: afterLoss)) }

    /// The frame for a client that gets nothing of it, and asks; nil for one that isn't missed.
    func emptied() -> SignalFrame? {
        guard !afterLoss.isWhole else { return nil }
        var rest = afterLoss
        rest.watching?.started = []
        rest.watching?.stopped = []
        rest.presence?.online = []
        rest.presence?.offline = []
        rest.read?.readers = []
        rest.users?.users = []
        return SignalFrame(self, bytes: Self.bytes(of: rest))
    }

    private static func bytes(of signal: Signal) -> ByteBuffer {
        var bytes = ByteBuffer()
        // The parts of a signal always encode.
        if let json = try? JSONWriter.bytes(of: signal) { bytes.writeTextFrame("", json) }
        return bytes
    }
}

extension Signal {
    /// The signal for a client that has lost the one before it. Where a signal has only what is new, it says that this isn't all: the client asks.
    var afterLoss: Signal {
        var signal = self
        signal.watching?.isWhole = false
        signal.presence?.isWhole = false
        signal.read?.isWhole = false
        signal.users?.isWhole = false
        return signal
    }

    /// Whether it has all that is new. What says how things are now always has.
    fileprivate var isWhole: Bool {
        [watching?.isWhole, presence?.isWhole, read?.isWhole, users?.isWhole].allSatisfy { $0 != false }
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
        var frame = frame
        if let index = frames.firstIndex(where: { $0.key == frame.key }) {
            remove(at: index)
            frame = frame.replacing()
        }
        frames.append(frame)
        sizeBytes += frame.bytes.readableBytes
        while frames.count > Self.countMax { remove(at: 0) }
        // What is too large goes, the oldest first, and a client that has to ask is told that.
        var index = 0
        while sizeBytes > Self.sizeBytesMax, index < frames.count {
            if let rest = frames[index].emptied() {
                sizeBytes += rest.bytes.readableBytes - frames[index].bytes.readableBytes
                frames[index] = rest
                index += 1
            } else {
                remove(at: index)
            }
        }
        while sizeBytes > Self.sizeBytesMax { remove(at: 0) }
    }

    private mutating func remove(at index: Int) { sizeBytes -= frames.remove(at: index).bytes.readableBytes }

    /// Takes all signals, the oldest first.
    mutating func takeAll() -> [ByteBuffer] {
        defer { self = SignalQueue() }
        return frames.map(\.bytes)
    }
}
