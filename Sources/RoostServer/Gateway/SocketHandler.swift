import Logging
import NIOCore
import NIOWebSocket
import RoostAPI
import RoostCore

/// One client's WebSocket, on its event loop: drives a ``SocketSession``, which decides everything.
final class SocketHandler: ChannelInboundHandler, QueuedOutput {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// The services that a socket needs from its server.
    struct Services: Sendable {
        let engine: Engine
        let hub: Hub
        let tokens: TokenVerifier
        let greeting: Greeting
        let limits: SocketSession.Configuration
        let connections: Connections
        var metrics = ServerMetrics()
        let security: SecurityLog
        let logger: Logger
    }

    private let services: Services
    private let socket: SocketID
    private let headerToken: String?
    private let headerDevice: DeviceDescription?
    private let ticket: ConnectionTicket?
    private var session: SocketSession
    private var context: ChannelHandlerContext?
    private var writer = SocketWriter()
    /// Bytes that are being handed to the channel right now.
    private var handedBytes = 0
    /// Whether something was written since ``flush()``.
    private var hasFlushedEarly = false
    /// When the shard flushes what was written.
    var outputState = OutputState()
    /// The engine's record of the device; nil once the session has it.
    private var registration: DeviceRegistration?
    /// The connection's user; nil before authentication.
    private var user: UserID?
    private var held: SocketAccount
    /// Ends the connection if the client keeps sending after the close frame.
    private var lingering: Scheduled<Void>?

    /// How long a client may keep sending after the close frame.
    private static let lingeringMax = TimeAmount.seconds(2)

    init(
        services: Services, socket: SocketID, headerToken: String?, headerDevice: DeviceDescription? = nil,
        ticket: ConnectionTicket? = nil
    ) {
        self.services = services
        self.socket = socket
        self.headerToken = headerToken
        self.headerDevice = headerDevice
        self.ticket = ticket
        held = SocketAccount(in: services.connections.memory)
        session = SocketSession(socket.connection, limits: services.limits, at: .now())
    }

    private var pressure: SocketSession.Pressure {
        let memory = services.connections.memory
        return SocketSession.Pressure(
            isUserFull: held.user?.isFull == true, isServerFull: memory.isFull, isServerHalfFull: memory.isHalfFull)
    }

    // MARK: Lifecycle

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        services.hub.shard(of: socket).add(self, as: socket.connection)
        if let headerToken { perform(session.authenticate(headerToken, on: headerDevice)) }
        if services.connections.isDraining { drain() }
    }

    func channelInactive(context: ChannelHandlerContext) {
        lingering?.cancel()
        leave()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) { leave() }

    private func leave() {
        services.hub.shard(of: socket).remove(socket.connection)
        context = nil
        perform(session.ended())
        if let user { services.connections.release(user) }
        user = nil
    }

    /// Leaves, and gives the client a moment to read why. Anything it still sends is read and discarded: if both halves of the connection
    /// were closed at once, its kernel could discard the reason (RFC 6455 §7.1.1).
    private func linger() {
        guard let channel = context?.channel else { return }
        leave()
        try? channel.syncOptions?.setOption(.autoRead, value: true)
        channel.close(mode: .output, promise: nil)
        lingering = channel.eventLoop.scheduleTask(in: Self.lingeringMax) { channel.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case is ChannelShouldQuiesceEvent: drain()
        case is Connections.Ends: if self.context != nil { perform(session.restart()) }
        // HTTP may end in one direction first, a socket can't: its client is gone, and offline from now on.
        case ChannelEvent.inputClosed: context.close(promise: nil)
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    private func drain() {
        if context != nil { perform(session.drain(after: services.greeting.drainDelay(of: socket.connection))) }
    }

    // MARK: Input and output

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let actions = session.receive(unwrapInboundIn(data), at: .now(), pressure)
        perform(actions, mayRead: session.hasOneCall)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable {
            perform(session.becameWritable(isHanding: handedBytes > 0, pressure))
        } else {
            session.becameUnwritable(handedBytes, at: .now())
        }
        context.fireChannelWritabilityChanged()
    }

    /// Called periodically.
    func tick(_ now: NIODeadline, _ time: Timestamp) {
        let waiting = session.hasBacklog ? context.flatMap { WaitingBytes(of: $0.channel) } : nil
        perform(session.tick(now, time, pressure, waiting))
    }

    /// Stops all events if one of the changes shuts the caller out; ``closeEnded()`` follows.
    func endIfRefused(by changes: [AccessSubject: AccessChange]) -> Bool { session.endIfRefused(by: changes) }

    func closeEnded() { perform(session.closeEnded()) }

    /// Stops all events because the user's connections together would get too many channels; ``closeEnded()`` follows.
    ///
    /// - Returns: False if the socket is already ending.
    func turnAway() -> Bool {
        guard session.endForLimit(.tooManyChannels) else { return false }
        services.metrics.overloaded(.socket)
        services.security.reached(.channelsOfUser, user: user, address: ticket?.address)
        return true
    }

    /// Asks the client to confirm receipt of what its user is reading.
    func confirm(_ readable: [ChannelID: Seq]) { perform(session.confirm(readable)) }

    /// Forgets what the user was sent of a channel before they marked it as unread: it no longer counts as read.
    func forgetReading(of channel: ChannelID) { session.readConfirmation.forget(channel) }

    /// Takes an event's bytes. ``OutputQueue`` decides when ``flush()`` follows.
    func send(event: ByteBuffer) { session.send(event: event) }

    /// Takes a signal. ``OutputQueue`` decides when ``flush()`` follows.
    func send(signal: SignalFrame) { session.send(signal: signal) }

    /// Takes a reply. ``flush()`` follows at the end of the event-loop turn.
    func send(reply: [UInt8]) {
        // The first reply is the welcome.
        if session.state == .connecting { services.metrics.authenticated(over: .socket) }
        let isSignedOut = (registration?.device).map { session.registered($0) } ?? false
        registration = nil
        session.send(reply: reply)
        if isSignedOut { perform(session.closeEnded()) }
    }

    /// Whether ``flush()`` must not wait for more output.
    var mustFlush: Bool { session.mustFlush }

    /// Writes the queued output.
    func flush() {
        let bytes = session.takeUnflushed()
        guard bytes != nil || hasFlushedEarly else { return }
        hasFlushedEarly = false
        if let bytes { write(bytes) }
        perform(session.flushed(pressure))
    }

    /// Writes the queued output in the middle of a delivery instead of holding it until the end. ``flush()`` still follows, and continues with input.
    func flushEarly() {
        guard let bytes = session.takeUnflushed() else { return }
        write(bytes)
        hasFlushedEarly = true
        perform(session.flushedEarly(pressure))
    }

    // MARK: Actions

    private func write(_ bytes: UnflushedBytes) {
        guard let context else { return }
        let rest = writer.write(bytes, to: context)
        services.hub.shard(of: socket).noteWrites(writer.takeCallCount())
        guard !rest.isEmpty else { return }
        handedBytes = rest.reduce(0) { $0 + $1.readableBytes }
        for piece in rest { context.write(NIOAny(piece), promise: nil) }
        context.flush()
        handedBytes = 0
    }

    /// Performs the session's actions, and those that follow from them.
    ///
    /// - Parameter mayRead: Whether the loop may run the actions' brief reads itself. If several are under way, the reading threads run them
    ///   two at a time. Follow-up reads are left to the threads too: each answer could be followed by the next read, and the loop would serve
    ///   no other socket meanwhile.
    private func perform(_ actions: [SocketSession.Action], mayRead: Bool = false) {
        var (actions, mayRead) = (actions, mayRead)
        while !actions.isEmpty {
            var (next, hasFlushed): ([SocketSession.Action], Bool) = ([], false)
            for action in actions {
                switch action {
                case .flush(let bytes):
                    write(bytes)
                    hasFlushed = true
                case .call(let call):
                    if let error = submit(call, mayRead: mayRead) { next += session.refuse(call.number, error) }
                case .connect(let token):
                    if let error = connect(token) { next += session.refuseConnection(error) }
                default: perform(action)
                }
            }
            if hasFlushed { next += session.flushed(pressure) }
            (actions, mayRead) = (next, false)
        }
    }

    private func perform(_ action: SocketSession.Action) {
        switch action {
        case .setReading(let isOn): try? context?.channel.syncOptions?.setOption(.autoRead, value: isOn)
        case .hold(let changeBytes):
            held.add(changeBytes)
        case .verify(let token): verify(token)
        case .read(let seqs): markRead(seqs)
        case .refused(let error): services.metrics.refused(OperationName.none, error)
        case .overloaded:
            services.metrics.overloaded(.socket)
            services.security.reached(.memory, user: user, address: ticket?.address)
        case .restart(let delay):
            guard let context else { return }
            let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
            context.eventLoop.scheduleTask(in: delay) { handler.value.perform(handler.value.session.restart()) }
        case .close(let code):
            services.metrics.socketClosed(UInt16(webSocketErrorCode: code))
            linger()
        case .lost: services.metrics.socketClosed(nil)
        case .flush, .call, .connect: break
        }
    }

    /// - Returns: Why the call can't run; nil if it can.
    private func submit(_ call: SocketSession.Call, mayRead: Bool) -> RoostError? {
        guard let caller = session.caller else { return nil }
        return submit(call.operation, call, caller, mayRead: mayRead)
    }

    private func submit(
        _ operation: some Handled, _ call: SocketSession.Call, _ caller: Caller, mayRead: Bool
    ) -> RoostError? {
        if let refusal = services.hub.shard(of: socket).refusal(of: operation, on: socket.connection) {
            services.metrics.refused(type(of: operation).name, refusal.error)
            if refusal.isUsers { services.security.reached(.channelsOfUser, user: user, address: ticket?.address) }
            return refusal.error
        }
        let isLimited = caller.role != .admin && caller.role != .service
        var found = Job.Found()
        if call.heldBytes > 0 { found.callBytes = services.connections.hold(call.heldBytes, of: caller.user) }
        let job = Job(
            operation, call: call.number, key: call.key, by: caller, at: socket, callerMemory: isLimited ? held.user : nil,
            found: found)
        do {
            if job.traits.isReadOnly {
                try submit(read: job, mayRunHere: mayRead && operation.isBrief)
            } else {
                try services.engine.submit(write: job)
            }
            return nil
        } catch {
            return error
        }
    }

    /// Runs a brief read here and now, as long as that leaves the loop time for its other sockets.
    private func submit(read job: Job, mayRunHere: Bool) throws(RoostError) {
        let (shard, started) = (services.hub.shard(of: socket), NIODeadline.now())
        let dispatch = try services.engine.submit(read: job, atOnce: mayRunHere && shard.mayRead(at: started))
        if dispatch != .queued { shard.hasRead(since: started, isDone: dispatch == .ranInline) }
    }

    /// Moves the read positions of a reading user (AM-45). A user who may not read any longer stops reading.
    private func markRead(_ seqs: [ChannelID: Seq]) {
        guard let caller = session.caller, let context else { return }
        let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
        let loop = context.eventLoop
        let shard = services.hub.shard(of: socket)
        for (channel, seq) in seqs {
            let session = shard.readingSession(of: channel, socket.connection)
            let mark = Job(marking: MarkRead(channel: channel, seq: seq), by: caller) { refusal in
                loop.execute { handler.value.markRefused(refusal, of: channel, upTo: seq, inSession: session) }
            }
            do {
                try services.engine.submit(write: mark)
            } catch {
                markRefused(error, of: channel, upTo: seq, inSession: session)
            }
        }
    }

    /// Lets the client be asked again about what its user has read, if the mark can be stored later. Otherwise the reading ends, unless the
    /// user has started over since the mark was made.
    private func markRefused(_ refusal: RoostError, of channel: ChannelID, upTo seq: Seq, inSession session: Int64?) {
        guard context != nil else { return }
        let shard = services.hub.shard(of: socket)
        if refusal.isRetryable {
            shard.takeBack([channel: seq], of: socket.connection)
        } else {
            shard.endReading(of: channel, socket.connection, inSession: session)
        }
    }

    // MARK: Authentication

    private func verify(_ token: String) {
        guard let context else { return }
        let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
        let loop = context.eventLoop
        let tokens = services.tokens
        // Checking a signature with a large public key takes longer than the loop's other sockets should wait.
        Task {
            let result = tokens.verify(token)
            loop.execute { handler.value.verified(result) }
        }
    }

    private func verified(_ result: Result<VerifiedToken, RoostError>) {
        guard session.isAuthenticating, context != nil else { return }
        switch result {
        case .failure(let error):
            services.metrics.authenticated(over: .socket, refusal: error)
            services.security.refusedAuthentication(error, over: .socket, from: ticket?.address?.description)
            perform(session.refuseToken(error))
        case .success(let token):
            do {
                try ticket?.authenticated(token.user, role: token.role, isSocket: true)
            } catch {
                services.metrics.authenticated(over: .socket)
                return perform(session.turnAway(error))
            }
            user = token.user
            held.belong(to: services.connections.ledger(of: token.user))
            perform(session.verified(token))
        }
    }

    /// The engine refuses the connection: its token was revoked, say, or its user deactivated.
    private func connectionRefused(_ error: RoostError) {
        if session.state == .connecting {
            let refusal = error.code == .invalidArgument ? RoostError.invalidUser(error) : error
            let isOfToken = CloseCode(refusing: refusal) != nil
            services.metrics.authenticated(over: .socket, refusal: isOfToken ? refusal : nil)
            if isOfToken {
                services.security.refusedAuthentication(refusal, over: .socket, from: ticket?.address?.description)
            }
        }
        perform(session.refuseConnection(error))
    }

    /// - Returns: Why the connection can't take its place in the order of commits; nil if it can.
    private func connect(_ token: VerifiedToken) -> RoostError? {
        guard let context, let caller = session.caller else { return nil }
        let loop = context.eventLoop
        let handler = NIOLoopBound(self, eventLoop: loop)
        registration = session.device.map { DeviceRegistration(of: $0.description) }
        let job = Job(connecting: caller, token, registration, greeting: services.greeting, at: socket) { error in
            loop.execute { handler.value.connectionRefused(error) }
        }
        do {
            try services.engine.submit(write: job)
            return nil
        } catch {
            return error
        }
    }
}

extension Job {
    /// A call of a socket.
    convenience init(
        _ operation: some Handled, call: Int64, key: IdempotencyKey? = nil, by caller: Caller, at socket: SocketID,
        callerMemory: ByteLedger? = nil, found: Found = Found()
    ) {
        var traits = Traits(operation, for: caller)
        // A call with a key is refused, or was carried out before.
        if key != nil { traits.channelQuery = nil }
        self.init(
            traits, caller: caller, callerMemory: callerMemory, found: found,
            run: { context in
                guard let response = try operation.handle(once: key, in: &context) else { return ReplyFrame.done(call: call) }
                return try ReplyFrame.result(response, call: call)
            },
            destination: .socket(socket, call: call))
    }

    /// A mark that the server makes for a reading user: no caller waits for its answer.
    convenience init(marking mark: MarkRead, by caller: Caller, refused: @escaping @Sendable (RoostError) -> Void) {
        self.init(
            Traits(mark, for: caller), caller: caller,
            run: { context in
                try mark.handleWhileReading(in: &context)
                return []
            }, destination: .waiting { if case .failure(let refusal) = $0 { refused(refusal) } })
    }

    /// Gives a socket its place in the order of commits: later commits reach it as events. The welcome is sent like a reply, so it precedes those events.
    convenience init(
        connecting caller: Caller, _ token: VerifiedToken, _ registration: DeviceRegistration? = nil, greeting: Greeting,
        at socket: SocketID,
        refused: @escaping @Sendable (RoostError) -> Void
    ) {
        self.init(
            Traits(operation: OperationName.connect, scope: .user(caller.user)), caller: caller,
            run: { context in
                try context.registerCaller(displayName: token.displayName)
                try registration?.register(in: &context, tokenExpiresAt: token.expiresAt)
                try context.connect(socket.connection)
                let welcome = greeting.welcome(caller, socket.connection, expiresAt: token.expiresAt, now: context.now)
                return try JSONWriter.bytes(of: welcome)
            },
            destination: .welcome(socket, refused: refused))
    }
}
