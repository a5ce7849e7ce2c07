/// What one socket makes the server hold, in bytes: what came and isn't decoded, what is under way, what isn't read yet.
///
/// A state machine without I/O. Whoever drives it tells what happened, and asks whether the next call may be decoded and whether the socket
/// may be read. What a call under way weighs is decided when it begins, by what its answer may be: see ``AnswerWeight``.
struct SocketBudget {
    struct Configuration: Sendable, Equatable {
        /// What calls under way may weigh. The one that reaches it still begins.
        var underWayBytesMax = 512 << 10
        /// What a call weighs that is small and has a small answer: 256 of them are under way together.
        var smallWeightBytes: Int { underWayBytesMax / 256 }
        /// The most that such a call has itself.
        var smallCallBytes: Int { 512 }
        /// What may wait for a client that doesn't read, before the socket is closed.
        var unwrittenBytesMax = 1 << 20
        /// Bytes before authentication, whatever they are.
        var unauthenticatedBytesMax = 16 << 10
        /// How far the shared ledgers may be behind.
        var publishedStepBytes = 4 << 10
    }

    let limits: Configuration
    /// Received, and not decoded yet: undecoded frames, and the fragments of a message.
    private(set) var undecodedBytes = 0
    /// Calls under way whose answers are small and that are small themselves: most are, and are only counted.
    private var smallCalls = 0
    /// The other calls under way, by their numbers. A client may use one twice.
    private var largeCalls: [Int64: [(asked: Int, weight: Int)]] = [:]
    private var largeWeightBytes = 0
    private var largeAskedBytes = 0
    /// Sent while the client wasn't reading.
    private(set) var unwrittenBytes = 0
    /// What of it are events: replies are bounded by the calls.
    private(set) var unwrittenEventBytes = 0
    /// Whether the client leaves what was sent unread.
    private(set) var isUnread = false
    /// Signals that wait for the client to read. They are few, and close nobody.
    private var signalBytes = 0
    private var publishedBytes = 0

    init(limits: Configuration) { self.limits = limits }

    /// What the calls under way weigh.
    var underWayBytes: Int { largeWeightBytes + smallCalls * limits.smallWeightBytes }

    /// All that is held for the socket.
    var heldBytes: Int { undecodedBytes + largeAskedBytes + smallCalls * limits.smallCallBytes + unwrittenBytes + signalBytes }

    /// Whether the next call may be decoded. What one read of the socket brought beyond that waits as bytes.
    var mayDecode: Bool { underWayBytes < limits.underWayBytesMax && !isUnread }

    /// Whether events went past what may wait for this client.
    var isOverEvents: Bool { unwrittenEventBytes > limits.unwrittenBytesMax }

    // MARK: What happens

    /// What isn't decoded yet is now so much.
    mutating func undecoded(_ sizeBytes: Int) { undecodedBytes = sizeBytes }

    /// A call of so many bytes begins.
    mutating func begin(call: Int64, asked: Int, _ answer: AnswerWeight) {
        if answer == .small, asked <= limits.smallCallBytes {
            smallCalls += 1
            return
        }
        let weight = answer.weightBytes(asked: asked, of: limits)
        largeCalls[call, default: []].append((asked, weight))
        largeAskedBytes += asked
        largeWeightBytes += weight
    }

    /// A call is answered, by a reply frame.
    mutating func end(reply: [UInt8]) {
        // Which call it was is read off the reply only where it matters.
        guard !largeCalls.isEmpty, let call = ReplyFrame.call(of: reply), let ended = largeCalls[call]?.popLast() else {
            smallCalls = max(0, smallCalls - 1)
            return
        }
        if largeCalls[call]?.isEmpty == true { largeCalls[call] = nil }
        largeAskedBytes -= ended.asked
        largeWeightBytes -= ended.weight
    }

    /// Bytes are handed to the connection.
    mutating func write(_ sizeBytes: Int, isEvent: Bool) {
        guard isUnread else { return }
        unwrittenBytes += sizeBytes
        if isEvent { unwrittenEventBytes += sizeBytes }
    }

    /// Signals that wait are now so much.
    mutating func signals(_ sizeBytes: Int) { signalBytes = sizeBytes }

    /// The client fell behind: `sizeBytes` had just been handed over.
    mutating func becameUnread(_ sizeBytes: Int) {
        isUnread = true
        unwrittenBytes += sizeBytes
    }

    /// The client has read nearly all.
    mutating func becameRead() {
        isUnread = false
        unwrittenBytes = 0
        unwrittenEventBytes = 0
    }

    /// What the shared ledgers have to be told: 0 while they are near enough.
    mutating func unpublished() -> Int {
        let held = heldBytes
        let change = held - publishedBytes
        guard abs(change) >= limits.publishedStepBytes || (held == 0 && change != 0) else { return 0 }
        publishedBytes = held
        return change
    }

    /// The socket is gone: what the ledgers still hold for it.
    mutating func ended() -> Int {
        defer { publishedBytes = 0 }
        return -publishedBytes
    }
}
