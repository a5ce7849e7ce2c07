import NIOCore

/// When a client fell behind, and when it last read something. A value without I/O.
///
/// A client that reads slowly isn't one that doesn't read: on a slow line an answer of 1 MiB takes minutes, and a client that is closed
/// meanwhile requests the same answer again.
struct SlowReader {
    private let since: NIODeadline
    private(set) var readAt: NIODeadline
    /// The bytes waiting for it when they were last noted.
    private var waitingBytes: Int?

    init(at now: NIODeadline) { (since, readAt) = (now, now) }

    /// Notes what the client hasn't taken yet.
    ///
    /// - Parameter hasTaken: Whether the channel holds less than it was given meanwhile.
    /// - Returns: Whether the client has read something since this was last noted.
    @discardableResult
    mutating func note(_ waiting: WaitingBytes, hasTaken: Bool = false, at now: NIODeadline) -> Bool {
        let total = waiting.channelBytes + waiting.kernelBytes
        let hasRead = hasTaken || waitingBytes.map { total < $0 } ?? false
        waitingBytes = total
        if hasRead { readAt = now }
        return hasRead
    }

    /// Whether the server stops waiting. While it is short of memory, it doesn't wait for slow readers either.
    func isOver(_ limits: SocketSession.Configuration, isServerHalfFull: Bool, at now: NIODeadline) -> Bool {
        now - readAt > limits.readStallTimeout || (isServerHalfFull && now - since > limits.readStallTimeoutUnderPressure)
    }
}
