import NIOCore

/// A socket whose flushes an ``OutputQueue`` schedules.
protocol QueuedOutput: AnyObject {
    var outputState: OutputState { get set }
}

/// An ``OutputQueue``'s state for one socket.
struct OutputState {
    fileprivate var isAnswered = false
    fileprivate var isDue = false
    fileprivate var isWaiting = false
    /// When the pass that last flushed this socket ended.
    fileprivate var flushedAt = NIODeadline.uptimeNanoseconds(0)
}

/// The sockets of one event loop with unflushed output, and when it is flushed.
///
/// At the end of the loop's turn, after everything already queued on the loop, sockets that got a reply are flushed first, then those that
/// were idle: an acknowledgement doesn't wait until a large channel has been written to. A socket that was flushed less than ``waitMax`` ago
/// waits for the rest of that time, unless it gets a reply or has a lot to write: closely spaced events then share a write, whatever commits
/// they come from.
///
/// A state machine without I/O.
struct OutputQueue<Socket: QueuedOutput> {
    /// The longest that an event waits for others.
    static var waitMax: TimeAmount { .milliseconds(1) }

    /// What the driver has to arrange.
    enum Action: Equatable {
        /// Call ``takeDue()`` at the end of the loop's turn.
        case atEndOfTurn
        /// Call ``takeWaiting()`` at this time.
        case at(NIODeadline)
    }

    /// Sockets with a reply; everything before it goes out with it.
    private var answered: [Socket] = []
    private var due: [Socket] = []
    private var waiting: [Socket] = []

    /// Adds a socket that has just got output.
    ///
    /// - Parameter mayWait: Whether output that follows soon may share the write.
    /// - Returns: What has to be arranged; nil if it is arranged already.
    mutating func add(_ socket: Socket, isReply: Bool, mayWait: Bool = true, at now: NIODeadline) -> Action? {
        let state = socket.outputState
        let isArranged = !(answered.isEmpty && due.isEmpty)
        if isReply {
            guard !state.isAnswered else { return nil }
            socket.outputState.isAnswered = true
            answered.append(socket)
            return isArranged ? nil : .atEndOfTurn
        }
        guard !state.isAnswered, !state.isDue, !state.isWaiting || !mayWait else { return nil }
        let end = state.flushedAt + Self.waitMax
        if now >= end || !mayWait {
            socket.outputState.isDue = true
            due.append(socket)
            return isArranged ? nil : .atEndOfTurn
        }
        socket.outputState.isWaiting = true
        waiting.append(socket)
        return waiting.count == 1 ? .at(end) : nil
    }

    /// Returns the sockets to flush at the end of the turn, in this order. ``flushed(_:at:)`` follows.
    mutating func takeDue() -> [Socket] {
        defer { (answered, due) = ([], []) }
        return answered.isEmpty ? due : answered + due.lazy.filter { !$0.outputState.isAnswered }
    }

    /// Returns the sockets to flush that have waited. ``flushed(_:at:)`` follows.
    mutating func takeWaiting() -> [Socket] {
        defer { waiting = [] }
        // Some got a reply meanwhile, and were flushed with it.
        return waiting.filter(\.outputState.isWaiting)
    }

    /// Notes that sockets were flushed, all in one pass that ended now.
    func flushed(_ sockets: [Socket], at now: NIODeadline) {
        for socket in sockets { socket.outputState = OutputState(flushedAt: now) }
    }
}

/// The sockets that got unshared bytes in a delivery, as each new member's do. One call can produce a hundred of these, of some hundred
/// kilobytes each. Whenever many have accumulated they are written, not held until the end of the delivery.
struct UnsharedOutput<Socket> {
    /// The most bytes held for the sockets, in addition to the last event's.
    static var sizeBytesMax: Int { 1 << 20 }

    /// Whether the events of this step are written for one user.
    var isUnshared = false
    private var sockets: [Socket] = []
    private var sizeBytes = 0

    /// Notes that a socket got an event.
    mutating func note(_ sizeBytes: Int, to socket: Socket) {
        guard isUnshared else { return }
        sockets.append(socket)
        self.sizeBytes += sizeBytes
    }

    /// Ends a step, and returns the sockets to write to now: none while little is queued.
    mutating func takeFull() -> [Socket] {
        isUnshared = false
        guard sizeBytes >= Self.sizeBytesMax else { return [] }
        defer { self = UnsharedOutput() }
        return sockets
    }
}
