import Logging
import NIOCore
import NIOWebSocket
import RoostAPI
import RoostCore

/// One client's WebSocket, on its event loop: authentication, calls in, replies and events out, and the limits on all of it.
///
/// It makes no decision about chat: a call goes to the engine, what comes back is written as it is.
final class SocketHandler: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame

    /// Limits on one socket. Each bounds something that a client could otherwise let grow.
    struct Limits: Sendable {
        var authenticationTimeout = TimeAmount.seconds(10)
        var pingInterval = TimeAmount.seconds(25)
        /// Silence after which the client is taken to be gone.
        var idleTimeout = TimeAmount.seconds(60)
        /// What calls under way may weigh, where a write weighs 1 and a read, whose answer may be large, ``readWeight``. Past it the socket
        /// isn't read until some are answered.
        var callsUnderWayMax = 256
        var readWeight = 16
        /// Events that may wait once the client stopped reading, on top of what the channel buffers.
        var waitingEventBytesMax = 1 << 20
        /// How long a client may leave what was sent unread.
        var unreadTimeout = TimeAmount.seconds(30)
    }

    /// What a socket needs of the server around it.
    struct Services: Sendable {
        let engine: Engine
        let hub: Hub
        let tokens: TokenVerifier
        let greeting: Greeting
        let limits: Limits
        var metrics = ServerMetrics()
        let security: SecurityLog
        let logger: Logger
    }

    private enum State {
        case unauthenticated
        case authenticating
        case open(Caller, tokenExpiresAt: Timestamp)
        case closing
    }

    private let services: Services
    private let address: SocketAddress
    private let headerToken: String?
    private var state = State.unauthenticated
    private var assembler = FrameAssembler()
    /// Whom the token names, from its verification on.
    private var caller: Caller?
    /// Why the caller is shut out, once they are.
    private var accessRefusal: RoostError?
    private var callsUnderWay = 0
    private var isReadingPaused = false

    // What goes out. `outbound` is the context of the frame encoder: bytes written there are frames already, and pass it by.
    private var context: ChannelHandlerContext?
    private var outbound: ChannelHandlerContext?
    /// The newest bytes that wait for the end of the loop's turn: they are written and flushed in one go.
    private var unflushed: ByteBuffer?
    /// Events of the moment between authentication and welcome, which comes first.
    private var heldEvents: [ByteBuffer] = []
    private var heldEventBytes = 0
    private var waitingEventBytes = 0

    // Times. Looked at once a second by ``tick(_:)``: a timer for each socket would cost more than all of this.
    private let connectedAt = NIODeadline.now()
    private var lastHeardAt = NIODeadline.now()
    private var lastPingAt = NIODeadline.now()
    private var unreadSince: NIODeadline?
    private var isDraining = false

    init(services: Services, address: SocketAddress, headerToken: String?) {
        self.services = services
        self.address = address
        self.headerToken = headerToken
    }

    // MARK: Coming and going

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        outbound = try? context.pipeline.syncOperations.context(handlerType: WebSocketFrameEncoder.self)
        services.hub.shard(of: address).add(self, as: address.connection)
        if let headerToken { authenticate(headerToken) }
    }

    func channelInactive(context: ChannelHandlerContext) {
        leave()
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) { leave() }

    private func leave() {
        if case .closing = state {} else { services.metrics.socketClosed(nil) }
        state = .closing
        services.hub.shard(of: address).remove(address.connection)
        context = nil
        outbound = nil
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case NIOWebSocketError.invalidFrameLength:
            close(.messageTooLarge, "a frame has at most \(RoostAPI.Limits.frameSizeBytes) bytes")
        case is NIOWebSocketError:
            close(.protocolError, "this is not a WebSocket frame")
        default:
            context.close(promise: nil)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case is ChannelShouldQuiesceEvent: drain()
        // HTTP may end in one direction first, a socket can't: its client is gone, and is offline from now on.
        case ChannelEvent.inputClosed: context.close(promise: nil)
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    /// The server stops. Sockets go one after another over a window, so that they don't all come back in the same moment.
    private func drain() {
        guard !isDraining, let context else { return }
        isDraining = true
        let delay = services.greeting.drainDelay(of: address.connection)
        let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
        // A timer of its own, on this one occasion: the tick of each second would send all sockets away in bursts.
        context.eventLoop.scheduleTask(in: delay) { handler.value.close(CloseCode.restart, "the server restarts") }
        let retry = Int64(delay.nanoseconds / 1_000_000) + 500
        write(ClosingFrame(closing: .init(reason: "restart", retryAfterMilliseconds: retry)))
        flush()
    }

    // MARK: In

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        lastHeardAt = .now()
        if case .closing = state { return }
        switch assembler.receive(unwrapInboundIn(data)) {
        case .message(let message): receive(message)
        case .ping(let payload): writeControl(.pong, payload.readableBytesView)
        case .pong, .incomplete: break
        case .close: close(.normalClosure, "")
        case .violation(let code, let reason): close(code, reason)
        }
    }

    private func receive(_ message: ByteBuffer) {
        switch (IncomingFrame(message), state) {
        case (.authenticate(let credentials), .unauthenticated):
            authenticate(credentials.token)
        case (.authenticate, _):
            refuse(RoostError(.invalidArgument, "This socket is authenticated already.", field: "authenticate"))
        case (.call(let call, let operation), .open(let caller, _)):
            submit(operation, call: call, caller: caller)
        case (.refused(let call, let error), .open):
            services.metrics.refused(OperationName.none, error)
            reply(error, to: call)
        case (.malformed(let error), .open):
            services.metrics.refused(OperationName.none, error)
            refuse(error)
        default:
            refuse(RoostError(.unauthenticated, "The first frame must be an authenticate frame."))
            close(CloseCode.unauthenticated, "authenticate first")
        }
    }

    private func submit(_ operation: some Handled, call: Int64, caller: Caller) {
        let job = Job(
            operation: type(of: operation).name, caller: caller, scope: operation.scope(for: caller),
            presenceChannel: operation.presenceChannel,
            run: { try ReplyFrame.result(operation.handle(in: &$0), call: call) },
            destination: .socket(address, call: call))
        let isRead = type(of: operation).isReadOnly
        do {
            if isRead { try services.engine.submit(read: job) } else { try services.engine.submit(write: job) }
        } catch {
            reply(error, to: call)
            return
        }
        callsUnderWay += isRead ? services.limits.readWeight : 1
        pauseOrResumeReading()
    }

    /// A client that asks faster than it can be answered is read more slowly: nothing is dropped, and nothing piles up here.
    private func pauseOrResumeReading() {
        let isFull = callsUnderWay >= services.limits.callsUnderWayMax || unreadSince != nil
        let hasRoom = callsUnderWay <= services.limits.callsUnderWayMax / 2 && unreadSince == nil
        guard isReadingPaused ? hasRoom : isFull, let context else { return }
        isReadingPaused.toggle()
        try? context.channel.syncOptions?.setOption(.autoRead, value: !isReadingPaused)
    }

    // MARK: Authentication

    private func authenticate(_ token: String) {
        guard let context else { return }
        state = .authenticating
        let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
        let loop = context.eventLoop
        let tokens = services.tokens
        Task {
            let result = await tokens.verify(token)
            loop.execute { handler.value.verified(result) }
        }
    }

    private func verified(_ result: Result<VerifiedToken, RoostError>) {
        guard case .authenticating = state, let context else { return }
        switch result {
        case .failure(let error):
            services.metrics.authenticated(over: .socket, refusal: error)
            services.security.refusedAuthentication(error, over: .socket, from: context.remoteAddress?.ipAddress)
            refuse(error)
            close(CloseCode(refusing: error) ?? .unauthenticated, error.code.rawValue)
        case .success(let token):
            services.metrics.authenticated(over: .socket)
            connect(token, on: context.eventLoop)
        }
    }

    /// Takes its place in the order of commits: what comes after it reaches this socket as an event.
    private func connect(_ token: VerifiedToken, on loop: any EventLoop) {
        let caller = Caller(user: token.user, role: token.role, connection: address.connection, token: token.identity)
        self.caller = caller
        let connection = address.connection
        let greeting = services.greeting
        let handler = NIOLoopBound(self, eventLoop: loop)
        let job = Job(
            operation: OperationName.connect, caller: caller, scope: .user(caller.user),
            run: { context in
                try context.admitCaller(displayName: token.displayName)
                try context.connect(connection)
                return try JSONWriter.bytes(of: greeting.welcome(caller, connection, expiresAt: token.expiresAt, now: context.now))
            },
            destination: .waiting { result in
                loop.execute { handler.value.connected(result, caller: caller, tokenExpiresAt: token.expiresAt) }
            })
        do {
            try services.engine.submit(write: job)
        } catch {
            refuse(error)
            close(CloseCode.tryAgainLater, "come back later")
        }
    }

    private func connected(_ result: Result<[UInt8], RoostError>, caller: Caller, tokenExpiresAt: Timestamp) {
        guard case .authenticating = state else { return }
        switch result {
        case .failure(let error) where error.code == .invalidArgument:
            // The token names somebody new with an id that nobody can have.
            refuse(.unlawfulUser(error))
            close(CloseCode.unauthenticated, RoostError.Code.unauthenticated.rawValue)
        case .failure(let error):
            refuse(error)
            if let code = CloseCode(refusing: error) { return close(code, error.code.rawValue) }
            close(CloseCode.tryAgainLater, "come back later")
        case .success(let welcome):
            state = .open(caller, tokenExpiresAt: tokenExpiresAt)
            write(frame: welcome)
            let held = heldEvents
            heldEvents = []
            for event in held { send(event: event) }
            flush()
        }
    }

    /// Stops all events if one of the changes shuts the caller out; ``closeEnded()`` follows.
    ///
    /// - Returns: whether it does.
    func endIfRefused(by changes: [AccessSubject: AccessChange]) -> Bool {
        guard let caller, accessRefusal == nil else { return false }
        for subject in caller.accessSubjects {
            guard let refusal = changes[subject]?.refusal(of: caller) else { continue }
            accessRefusal = refusal
            return true
        }
        return false
    }

    /// Closes a socket whose caller is shut out.
    func closeEnded() {
        guard let error = accessRefusal else { return }
        if case .closing = state { return }
        refuse(error)
        close(CloseCode(refusing: error) ?? .unauthenticated, error.code.rawValue)
    }

    // MARK: Out

    /// Puts an event's bytes behind what waits already. ``flush()`` follows at the end of the loop's turn.
    func send(event: ByteBuffer) {
        guard accessRefusal == nil else { return }
        switch state {
        case .open: break
        case .authenticating:
            heldEvents.append(event)
            heldEventBytes += event.readableBytes
            if heldEventBytes > services.limits.waitingEventBytesMax { close(CloseCode.resume, "connect anew, then resume") }
            return
        case .unauthenticated, .closing: return
        }
        if unreadSince != nil {
            waitingEventBytes += event.readableBytes
            guard waitingEventBytes <= services.limits.waitingEventBytesMax else {
                close(CloseCode.resume, "read faster, then resume")
                return
            }
        }
        write(event)
    }

    /// Puts a reply behind what waits already; `toRead` tells that it answers an operation that only read.
    func send(reply: [UInt8], toRead: Bool) {
        callsUnderWay -= toRead ? services.limits.readWeight : 1
        write(frame: reply)
        pauseOrResumeReading()
    }

    func flush() {
        guard let bytes = unflushed else { return }
        unflushed = nil
        outbound?.writeAndFlush(NIOAny(bytes), promise: nil)
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable {
            unreadSince = nil
            waitingEventBytes = 0
        } else if unreadSince == nil {
            unreadSince = .now()
        }
        pauseOrResumeReading()
        context.fireChannelWritabilityChanged()
    }

    private func reply(_ error: RoostError, to call: Int64) {
        write(frame: ReplyFrame.refusal(error, call: call))
        flush()
    }

    /// Tells of a frame that isn't a call, and so can't have a reply.
    private func refuse(_ error: RoostError) {
        write(["error": error])
        flush()
    }

    private func write(_ value: some Encodable) {
        guard let bytes = try? JSONWriter.bytes(of: value) else { return }
        write(frame: bytes)
    }

    private func write(frame payload: [UInt8]) {
        guard let context else { return }
        var buffer = context.channel.allocator.buffer(capacity: payload.count + 10)
        buffer.writeTextFrame("", payload)
        write(buffer)
    }

    private func write(_ bytes: ByteBuffer) {
        if let unflushed { outbound?.write(NIOAny(unflushed), promise: nil) }
        unflushed = bytes
    }

    private func writeControl(_ opcode: WebSocketOpcode, _ payload: some Collection<UInt8>) {
        guard let context else { return }
        var buffer = context.channel.allocator.buffer(capacity: 127)
        buffer.writeControlFrame(opcode: opcode.wireValue, payload)
        write(buffer)
        flush()
    }

    private func close(_ code: CloseCode, _ reason: String) { close(WebSocketErrorCode(codeNumber: Int(code.rawValue)), reason) }

    /// Says why, then closes. A client that doesn't read never learns it, and is closed all the same.
    private func close(_ code: WebSocketErrorCode, _ reason: String) {
        if case .closing = state { return }
        state = .closing
        services.metrics.socketClosed(UInt16(webSocketErrorCode: code))
        var payload = ByteBuffer()
        payload.write(webSocketErrorCode: code)
        payload.writeString(reason)
        writeControl(.connectionClose, payload.readableBytesView)
        context?.close(promise: nil)
    }

    // MARK: Time

    /// Called from time to time: for pings and for what has taken too long.
    func tick(_ now: NIODeadline) {
        let limits = services.limits
        switch state {
        case .unauthenticated, .authenticating:
            if now - connectedAt > limits.authenticationTimeout { close(CloseCode.authenticationTimeout, "no token came") }
        case .open(_, let tokenExpiresAt):
            if tokenExpiresAt <= .now { close(CloseCode.tokenExpired, "the token is over") }
        case .closing:
            return
        }
        if let unreadSince, now - unreadSince > limits.unreadTimeout { close(CloseCode.resume, "read faster, then resume") }
        if now - lastHeardAt > limits.idleTimeout { close(.goingAway, "nothing was heard") }
        if now - lastPingAt >= limits.pingInterval {
            lastPingAt = now
            writeControl(.ping, [])
        }
    }
}

extension WebSocketOpcode {
    /// The four bits on the wire.
    fileprivate var wireValue: UInt8 { UInt8(webSocketOpcode: self) }
}

extension CloseCode {
    /// What a socket is closed with whose token or user is refused; nil for other refusals.
    fileprivate init?(refusing error: RoostError) {
        switch error.code {
        case .unauthenticated: self = .unauthenticated
        case .tokenExpired: self = .tokenExpired
        case .tokenRevoked: self = .tokenRevoked
        case .userDeactivated: self = .userDeactivated
        default: return nil
        }
    }
}
