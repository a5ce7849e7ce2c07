import RoostAPI

/// The bytes that the server holds for one socket: undecoded input, calls under way, unread output. A call that is itself large counts with its job
/// instead, which may still be queued when the socket is gone.
///
/// A state machine without I/O. Its driver reports events, and asks whether the next call may be decoded and the socket may be read. A call's
/// weight is decided when it begins, by the likely size of its answer: see ``AnswerWeight``.
struct SocketBudget {
    struct Configuration: Sendable, Equatable {
        /// The most that calls under way may weigh. The call that reaches it still begins.
        var inFlightBytesMax = 512 << 10
        /// The weight of a small call with a small answer: 256 of them may be under way.
        var smallWeightBytes: Int { inFlightBytesMax / 256 }
        /// The maximum size of such a call itself.
        var smallCallBytes: Int { 512 }
        /// The most unread output of a client before the socket is closed.
        var unwrittenBytesMax = 1 << 20
        /// The most bytes of any kind before authentication.
        var unauthenticatedBytesMax = RoostAPI.Limits.unauthenticatedSizeBytes
        /// How far the shared ledgers may lag.
        var publishedStepBytes = 4 << 10
    }

    let limits: Configuration
    /// Received but not decoded yet: undecoded frames, and the fragments of a message.
    private(set) var undecodedBytes = 0
    /// Small calls under way with small answers: most calls are like that, and are only counted.
    private var smallCalls = 0
    /// The other calls under way, by their numbers.
    private var largeCalls: [Int64: (heldBytes: Int, weight: Int, answer: AnswerWeight)] = [:]
    /// The numbers of all calls under way: a reply identifies its call only by its number.
    private var numbers: Set<Int64> = []
    private var latest = LatestAnswers()
    private var largeWeightBytes = 0
    private var largeHeldBytes = 0
    /// The bytes sent while the channel wasn't writable.
    private(set) var unwrittenBytes = 0
    /// The part of it that is events: replies are bounded by the calls.
    private(set) var unwrittenEventBytes = 0
    /// Whether the client leaves so much output unread that its channel isn't writable.
    private(set) var isUnwritable = false
    /// Signals queued until the client reads. They are few. If the records of lost ones become too many, the socket is closed:
    /// ``SignalQueue/isOverfull``.
    private var signalBytes = 0
    private var publishedBytes = 0

    init(limits: Configuration) { self.limits = limits }

    /// The weight of the calls under way.
    var inFlightBytes: Int { largeWeightBytes + smallCalls * limits.smallWeightBytes }

    /// Everything held for the socket.
    var heldBytes: Int { undecodedBytes + largeHeldBytes + smallCalls * limits.smallCallBytes + unwrittenBytes + signalBytes }

    /// Whether the next call may be decoded. The remaining input stays undecoded.
    var mayDecode: Bool { inFlightBytes < limits.inFlightBytesMax && !isUnwritable }

    /// Whether this client's queued events exceed the limit.
    var exceedsEventLimit: Bool { unwrittenEventBytes > limits.unwrittenBytesMax }

    /// Whether a call of that number is under way: the replies of two calls with one number couldn't be distinguished.
    func isInFlight(_ call: Int64) -> Bool { numbers.contains(call) }

    /// How many calls are under way.
    var callCount: Int { numbers.count }

    // MARK: What happens

    /// Sets the number of undecoded bytes.
    mutating func undecoded(_ sizeBytes: Int) { undecodedBytes = sizeBytes }

    /// Begins a call of `asked` bytes, whose number no other call under way has.
    ///
    /// - Returns: The bytes that aren't counted here, but during the lifetime of the call's job.
    @discardableResult
    mutating func begin(call: Int64, asked: Int, _ answer: AnswerWeight) -> Int {
        numbers.insert(call)
        let isSmallRequest = asked <= limits.smallCallBytes
        if answer == .small, isSmallRequest {
            smallCalls += 1
            return 0
        }
        let weight = answer.weightBytes(asked: asked, after: latest, of: limits)
        let heldBytes = isSmallRequest ? asked : 0
        largeCalls[call] = (heldBytes, weight, answer)
        largeHeldBytes += heldBytes
        largeWeightBytes += weight
        return asked - heldBytes
    }

    /// Ends the call that a reply frame answers.
    mutating func end(reply: [UInt8]) {
        guard let call = ReplyFrame.call(of: reply), numbers.remove(call) != nil else { return }
        guard let ended = largeCalls.removeValue(forKey: call) else {
            smallCalls = max(0, smallCalls - 1)
            return
        }
        largeHeldBytes -= ended.heldBytes
        largeWeightBytes -= ended.weight
        latest.add(reply.count, of: ended.answer)
    }

    /// Counts bytes handed to the connection.
    mutating func write(_ sizeBytes: Int, isEvent: Bool) {
        guard isUnwritable else { return }
        unwrittenBytes += sizeBytes
        if isEvent { unwrittenEventBytes += sizeBytes }
    }

    /// Sets the number of bytes of queued signals.
    mutating func signals(_ sizeBytes: Int) { signalBytes = sizeBytes }

    /// The client fell behind, and its channel isn't writable any more: `sizeBytes` had just been handed over.
    mutating func becameUnwritable(_ sizeBytes: Int) {
        isUnwritable = true
        unwrittenBytes += sizeBytes
    }

    /// Sets the number of bytes queued for the client.
    ///
    /// - Returns: Whether the client has read some since the last call.
    mutating func waits(_ sizeBytes: Int) -> Bool {
        guard isUnwritable else { return false }
        defer {
            unwrittenBytes = sizeBytes
            // Output is read in order: the remaining events can't exceed the remaining bytes.
            unwrittenEventBytes = min(unwrittenEventBytes, sizeBytes)
        }
        return sizeBytes < unwrittenBytes
    }

    /// The client has read nearly everything.
    mutating func becameWritable() {
        isUnwritable = false
        unwrittenBytes = 0
        unwrittenEventBytes = 0
    }

    /// Returns the change to add to the shared ledgers: 0 while they are close enough.
    mutating func unpublished() -> Int {
        let held = heldBytes
        let change = held - publishedBytes
        guard abs(change) >= limits.publishedStepBytes || (held == 0 && change != 0) else { return 0 }
        publishedBytes = held
        return change
    }

    /// Ends the budget. Returns the change that removes what the ledgers still hold for the socket.
    mutating func ended() -> Int {
        defer { publishedBytes = 0 }
        return -publishedBytes
    }
}
