import NIOCore
import RoostAPI
import RoostCore

/// Drives the ``Subscriptions`` of one event loop: their actions become writes to the loop's sockets and changes of the presence board.
///
/// Used only on that loop, so an event reaches a socket without a lock or a hop. Only a stream's first receiver, and the end of its last one, take
/// the lock of the loop's ``StreamInterest``.
final class HubShard {
    /// The shard's index in the hub.
    private let number: Int
    private let eventLoop: any EventLoop
    private let presence: PresenceBoard
    private var subscriptions = Subscriptions<SocketHandler>()
    /// Whether steps are being delivered. A write can fail and end its socket in the middle of it: a ``remove(_:)`` then takes effect
    /// afterwards.
    private var isDelivering = false
    private var removed: [ConnectionID] = []
    /// Sockets with output since they were last flushed.
    private var output = OutputQueue<SocketHandler>()
    /// Which reads the loop runs itself.
    private var loopReads = LoopReads()
    /// The time of the current or last delivery.
    private var deliveredAt = NIODeadline.now()
    /// Unwritten output from events for single users in the current delivery.
    private var unshared = UnsharedOutput<SocketHandler>()
    /// Sockets to end after the whole delivery.
    private var ending: [SocketHandler] = []
    /// Counts the ticks.
    private var turn = 0
    private(set) var deliveryCount: Int64 = 0
    /// Bytes of events and replies that were sent to sockets.
    private(set) var sentByteCount: Int64 = 0
    /// System calls that wrote to sockets, bypassing their channels.
    private(set) var writeCount: Int64 = 0
    /// Called when the last socket of a stream is gone.
    var emptied: (@Sendable (StreamID) -> Void)?

    /// - Parameters:
    ///   - receivedMax: How many channels all connections of one user here may get together.
    ///   - interest: Learns which streams have receivers on the loop.
    init(number: Int, eventLoop: any EventLoop, presence: PresenceBoard, receivedMax: Int, interest: StreamInterest) {
        self.number = number
        self.eventLoop = eventLoop
        self.presence = presence
        subscriptions.receivedMax = receivedMax
        subscriptions.interest = interest
    }

    var socketCount: Int { subscriptions.sockets.count }
    var authenticatedCount: Int { subscriptions.subscriberCount }

    /// Returns the streams that a socket of this shard needs.
    func used(among streams: [StreamID]) -> [StreamID] { subscriptions.used(among: streams) }

    /// The channels watched or read on a socket of this shard.
    var followed: [ChannelID] { subscriptions.followed }

    /// - Returns: Why a connection can't begin an operation, and whether that is a limit on all connections of its user; nil if it can.
    func refusal(of operation: some Handled, on connection: ConnectionID) -> (error: RoostError, isUsers: Bool)? {
        let (count, max) = (operation.watchCountMax, Limits.watchedChannels)
        guard count > 0 else { return nil }
        // A connection's watched channels are known by id, while the call may name one as `type:id`.
        let names = (operation as? WatchChannel).map { Scope.channel($0.channel).channels } ?? []
        if names.contains(where: { subscriptions.isWatched($0, on: connection) }) { return nil }
        if subscriptions.watchedCount(of: connection) + count > max {
            return (RoostError(.limitExceeded, "A connection watches at most \(max) channels.", limit: Int64(max)), false)
        }
        // A query's excess channels are reported as not watched.
        guard !names.isEmpty, !names.contains(where: { subscriptions.mayReceive($0, connection) }) else { return nil }
        let error = RoostError(
            .limitExceeded, "One user's connections receive at most \(subscriptions.receivedMax) channels together.",
            limit: Int64(subscriptions.receivedMax))
        return (error, true)
    }

    // MARK: Sockets

    func add(_ socket: SocketHandler, as connection: ConnectionID) { subscriptions.add(socket, as: connection) }

    func remove(_ connection: ConnectionID) {
        guard !isDelivering else { return removed.append(connection) }
        subscriptions.remove(connection) { perform($0) }
    }

    func tick(_ now: NIODeadline) {
        let sockets = subscriptions.sockets
        let time = Timestamp.now
        for socket in sockets.values { socket.tick(now, time) }
        turn &+= 1
        for (socket, readable) in subscriptions.takeReadable(turn) { socket.confirm(readable) }
    }

    /// Takes back what a socket's user has read, because it couldn't be stored: the client is asked again.
    func takeBack(_ readable: [ChannelID: Seq], of connection: ConnectionID) {
        subscriptions.noteReadable(readable, of: connection)
    }

    /// The number of the session in which a connection reads a channel; nil if it doesn't.
    func readingSession(of channel: ChannelID, _ connection: ConnectionID) -> Int64? {
        subscriptions.readingSession(of: channel, connection)
    }

    /// Ends a session on a connection whose user may no longer read there, or no longer does, and notifies it. A session that began later stays.
    func endReading(of channel: ChannelID, _ connection: ConnectionID, inSession session: Int64?) {
        subscriptions.endReading(of: channel, connection, inSession: session) { perform($0) }
    }

    // MARK: Delivery

    /// Delivers a batch: events, changes of audiences and replies, in order.
    func deliver(_ steps: [EventFrames.Step]) {
        isDelivering = true
        deliveredAt = .now()
        for step in steps {
            // Another shard's socket.
            if case .reply(let socket, _) = step, socket.shard != number { continue }
            if case .sendToUser = step { unshared.isUnshared = true }
            subscriptions.deliver(step) { perform($0) }
            // Not within the step: a failed write can trigger its socket's last calls, which ask what the connection watches.
            for socket in unshared.takeFull() { socket.flushEarly() }
        }
        unshared = UnsharedOutput()
        isDelivering = false
        guard !removed.isEmpty else { return }
        let gone = removed
        removed = []
        for connection in gone { remove(connection) }
    }

    /// Delivers the answer of a read-only operation.
    func deliver(_ reply: [UInt8], toReadOf connection: ConnectionID) {
        if let socket = subscriptions.sockets[connection] { send(reply, to: socket) }
    }

    private func perform(_ action: Subscriptions<SocketHandler>.Action) {
        switch action {
        case .send(let bytes, let eventCount, let socket):
            deliveryCount += Int64(eventCount)
            sentByteCount += Int64(bytes.readableBytes)
            socket.send(event: bytes)
            noteOutput(of: socket)
            unshared.note(bytes.readableBytes, to: socket)
        case .signal(let signal, let socket):
            sentByteCount += Int64(signal.bytes.readableBytes)
            socket.send(signal: signal)
            noteOutput(of: socket)
        case .reply(let payload, let socket): send(payload, to: socket)
        case .checkAccess(let changes, let socket): if socket.endIfRefused(by: changes) { noteEnding(socket) }
        case .forgetReading(let channel, let socket): socket.forgetReading(of: channel)
        case .connected(let user): presence.connected(user)
        case .disconnected(let user): presence.disconnected(user)
        case .appeared(let user): presence.appeared(user)
        case .disappeared(let user): presence.disappeared(user)
        case .cameOnline(let user, let channels): presence.cameOnline(user, in: channels)
        case .wentOffline(let user, let channels): presence.wentOffline(user, in: channels)
        case .startedWatching(let user, let channel, let isShown): presence.startedWatching(user, channel, isShown: isShown)
        case .answeredOnline(let count, let channel): presence.answeredOnline(count, in: channel)
        case .stoppedWatching(let user, let channels, let isShown): presence.stoppedWatching(user, channels, isShown: isShown)
        case .emptied(let stream): emptied?(stream)
        case .turnAway(let socket): if socket.turnAway() { noteEnding(socket) }
        }
    }

    private func send(_ reply: [UInt8], to socket: SocketHandler) {
        sentByteCount += Int64(reply.count)
        socket.send(reply: reply)
        noteOutput(of: socket, isReply: true)
    }

    // MARK: The end of the loop's turn

    private func noteOutput(of socket: SocketHandler, isReply: Bool = false) {
        switch output.add(socket, isReply: isReply, mayWait: !socket.mustFlush, at: deliveredAt) {
        case nil: break
        case .atEndOfTurn:
            let box = NIOLoopBound(self, eventLoop: eventLoop)
            eventLoop.execute {
                let shard = box.value
                shard.flush(shard.output.takeDue())
                shard.loopReads.turnEnded()
            }
        case .at(let time):
            let box = NIOLoopBound(self, eventLoop: eventLoop)
            eventLoop.scheduleTask(deadline: time) {
                // Scheduled tasks run before those already queued on the loop, which may have more to deliver.
                box.value.eventLoop.execute {
                    let shard = box.value
                    shard.flush(shard.output.takeWaiting())
                }
            }
        }
    }

    private func flush(_ sockets: [SocketHandler]) {
        for socket in sockets { socket.flush() }
        output.flushed(sockets, at: .now())
    }

    /// Whether the loop may run a brief read itself at this time.
    func mayRead(at now: NIODeadline) -> Bool { loopReads.mayRun(at: now) }

    /// Notes that the loop has run a read.
    ///
    /// - Parameter isDone: Whether it ran to its end: if so, its answer follows in this turn.
    func hasRead(since start: NIODeadline, isDone: Bool) { loopReads.ran(from: start, to: .now(), isDone: isDone) }

    /// Counts system calls with which a socket has written.
    func noteWrites(_ count: Int64) { writeCount += count }

    private func noteEnding(_ socket: SocketHandler) {
        if ending.isEmpty {
            let box = NIOLoopBound(self, eventLoop: eventLoop)
            eventLoop.execute { box.value.closeEnded() }
        }
        ending.append(socket)
    }

    private func closeEnded() {
        let ended = ending
        ending = []
        for socket in ended { socket.closeEnded() }
    }
}
