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

    /// The frame for a client that gets none of its content: it only says that something is missing, so the client asks. Nil for a signal that
    /// isn't missed.
    func lossMarker() -> SignalFrame? {
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
