import NIOCore
import RoostAPI
import RoostCore

/// A signal as it is written to any number of sockets.
struct SignalFrame: Hashable, Sendable {
    let key: Signal.Key
    let bytes: ByteBuffer

    /// The forms for users who get a different one: users aren't notified of their own typing.
    let formsOfUsers: [UserID: ByteBuffer]
    /// The signal for clients that have lost the previous one.
    private let afterLoss: Signal

    init(_ signal: Signal) {
        key = signal.key
        afterLoss = signal.afterLoss
        bytes = Self.bytes(of: signal)
        var forms: [UserID: ByteBuffer] = [:]
        for user in signal.typing?.users ?? [] { forms[user] = Self.bytes(of: signal, for: user) }
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

    /// The frame for a client that doesn't get the previous one with the same key.
    func replacing() -> SignalFrame { afterLoss.isWhole ? self : SignalFrame(self, bytes: Self.bytes(of: afterLoss)) }

    /// The frame for a client that gets none of its content, and has to ask; nil for a signal that isn't missed.
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

    /// - Parameter receiver: Nil for everyone who isn't typing.
    private static func bytes(of signal: Signal, for receiver: UserID? = nil) -> ByteBuffer {
        var signal = signal
        signal.typing = signal.typing?.visible(to: receiver)
        var bytes = ByteBuffer()
        // The parts of a signal always encode.
        if let json = try? JSONWriter.bytes(of: signal) { bytes.writeTextFrame("", json) }
        return bytes
    }
}

extension Signal.Kind {
    /// Whether it reveals neither messages nor what users say: watchers get it without the right to read.
    var isForWatchers: Bool {
        [.typingChanged, .watchingChanged, .presenceChanged, .usersChanged].contains(self)
    }
}

extension TypingUsers {
    /// What a client receives: the others, as far as they are named, and whether there are more of them.
    fileprivate func visible(to receiver: UserID?) -> TypingUsers {
        let others = users.filter { $0 != receiver }
        return TypingUsers(
            users: Array(others.prefix(Limits.typingUsers)), hasMore: hasMore || others.count > Limits.typingUsers)
    }
}

extension Signal {
    /// The signal for a client that has lost the previous one. A signal that has only changes then says that it is incomplete: the client asks.
    var afterLoss: Signal {
        var signal = self
        signal.watching?.isWhole = false
        signal.presence?.isWhole = false
        signal.read?.isWhole = false
        signal.users?.isWhole = false
        return signal
    }

    /// Whether it has all changes. A signal with the current state always does.
    fileprivate var isWhole: Bool {
        [watching?.isWhole, presence?.isWhole, read?.isWhole, users?.isWhole].allSatisfy { $0 != false }
    }
}

/// Signals queued for a client that doesn't read: the newest of each key, only a few with their content. The oldest makes room first.
///
/// If the client has to ask for a signal that makes room, a word stays that something is missing. Words are small, but there can be as many
/// as the client watches channels. If there are too many, the client can no longer be notified, and the queue ``isOverfull``.
struct SignalQueue {
    /// The most signals with their content.
    static let countMax = 32
    /// The most bytes, including the words for signals that made room.
    static let sizeBytesMax = 16 << 10
    /// The most bytes once only such words are left.
    static let wordsSizeBytesMax = 64 << 10

    private struct Waiting {
        var frame: SignalFrame
        /// Whether it only says that something is missing.
        var isWord = false
    }
    private var waiting: [Waiting] = []
    private var wordCount = 0
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
        while index < waiting.count, sizeBytes > Self.sizeBytesMax || waiting.count - wordCount > Self.countMax {
            if waiting[index].isWord {
                index += 1
            } else if let word = waiting[index].frame.emptied() {
                sizeBytes += word.bytes.readableBytes - waiting[index].frame.bytes.readableBytes
                waiting[index] = Waiting(frame: word, isWord: true)
                wordCount += 1
                index += 1
            } else {
                remove(at: index)
            }
        }
        guard sizeBytes > Self.wordsSizeBytesMax else { return }
        self = SignalQueue()
        isOverfull = true
    }

    private mutating func remove(at index: Int) {
        let removed = waiting.remove(at: index)
        sizeBytes -= removed.frame.bytes.readableBytes
        if removed.isWord { wordCount -= 1 }
    }

    /// Takes all signals, the oldest first.
    mutating func takeAll() -> [ByteBuffer] {
        defer { self = SignalQueue() }
        return waiting.map(\.frame.bytes)
    }
}
