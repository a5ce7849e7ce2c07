import Logging
import NIOCore
import NIOWebSocket
import RoostAPI
import RoostCore

/// One client's WebSocket, on its event loop: authentication, calls in, replies and events out, and the limits on all of it.
///
/// It makes no decision about chat: a call goes to the engine, what comes back is written as it is.
final class SocketHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// Limits on one socket. Each bounds something that a client could otherwise let grow.
    struct Limits: Sendable {
        var authenticationTimeout = TimeAmount.seconds(10)
        var pingInterval = TimeAmount.seconds(25)
        /// Silence after which the client is taken to be gone.
        var idleTimeout = TimeAmount.seconds(60)
        /// What may be held for the socket.
        var budget = SocketBudget.Limits()
        /// How long a client may leave what was sent unread.
        var unreadTimeout = TimeAmount.seconds(30)
        /// The same while the server holds half as much as it may.
        var unreadTimeoutUnderPressure = TimeAmount.seconds(1)
    }

    /// What a socket needs of the server around it.
    struct Services: Sendable {
        let engine: Engine
        let hub: Hub
        let tokens: TokenVerifier
        let greeting: Greeting
        let limits: Limits
        let connections: Connections
        var metrics = ServerMetrics()
        let security: SecurityLog
        let logger: Logger
    }

    private enum State {
        case unauthenticated
        case authenticating
        /// Waits for its place in the order of commits, with which the welcome comes.
        case connecting(Caller, tokenExpiresAt: Timestamp)
        case open(Caller, tokenExpiresAt: Timestamp)
        case closing
    }

    private let services: Services
    private let address: SocketAddress
    private let headerToken: String?
    private var state = State.unauthenticated
    private let ticket: ConnectionTicket?
    /// Whom the token names, from its verification on.
    private var caller: Caller?
    /// Why the caller is shut out, once they are.
    private var accessRefusal: RoostError?

    // What comes in. Frames are taken apart one after another, as far as the budget allows; the rest waits as bytes.
    private var reader = FrameReader()
    private var assembler = FrameAssembler()
    private var budget: SocketBudget
    private var unauthenticatedBytes = 0
    private var isReadingPaused = false
    private var isDecoding = false
    /// What is held for the user, on all connections; nil before there is one.
    private var account: (user: UserID, ledger: ByteLedger)?

    // What goes out.
    private var context: ChannelHandlerContext?
    /// What is being handed to the channel at this moment.
    private var handedBytes = 0
    /// The newest bytes that wait for the end of the loop's turn: they are written and flushed in one go.
    private var unflushed: ByteBuffer?
    /// Events from before the welcome, which comes first.
    private var held = HeldEvents()

    // Times. Looked at once a second by ``tick(_:)``: a timer for each socket would cost more than all of this.
    private let connectedAt = NIODeadline.now()
    private var lastHeardAt = NIODeadline.now()
    private var lastPingAt = NIODeadline.now()
    private var unreadSince: NIODeadline?
    private var isDraining = false

    init(services: Services, address: SocketAddress, headerToken: String?, ticket: ConnectionTicket? = nil) {
        self.services = services
        self.address = address
        self.headerToken = headerToken
        self.ticket = ticket
        budget = SocketBudget(limits: services.limits.budget)
    }

    // MARK: Coming and going

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        services.hub.shard(of: address).add(self, as: address.connection)
        if let headerToken { authenticate(headerToken) }
        if services.connections.isDraining { drain() }
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
        publish(budget.ended())
        if let account { services.connections.release(account.user) }
        account = nil
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
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
        reader.receive(unwrapInboundIn(data))
        decode()
    }

    /// Whether the next frame may be taken apart. While a token is looked at, nothing is.
    private var mayDecode: Bool {
        switch state {
        case .unauthenticated: true
        case .authenticating, .connecting, .closing: false
        case .open: budget.mayDecode && account?.ledger.isFull != true
        }
    }

    /// Takes apart what came, as far as the budget allows. A client that asks faster than it can be answered is read more slowly: nothing is
    /// dropped, and nothing piles up here.
    private func decode() {
        guard !isDecoding else { return }
        isDecoding = true
        defer { isDecoding = false }
        while mayDecode, let frame = nextFrame() { receive(frame) }
        if case .closing = state { return reader = FrameReader() }
        reader.settle()
        let isFull = !mayDecode
        // A socket is paused when there is something to hold back: most are never.
        if isFull != isReadingPaused, !isFull || reader.waitingBytes > 0 {
            isReadingPaused = isFull
            try? context?.channel.syncOptions?.setOption(.autoRead, value: !isFull)
        }
        budget.undecoded(reader.waitingBytes + assembler.waitingBytes)
        publish(budget.unpublished())
    }

    private var isAuthenticated: Bool { if case .open = state { true } else { false } }

    private func nextFrame() -> ClientFrame? {
        let sizeBytesMax = isAuthenticated ? RoostAPI.Limits.frameSizeBytes : services.limits.budget.unauthenticatedBytesMax
        do {
            return try reader.next(sizeBytesMax: sizeBytesMax)
        } catch {
            close(.messageTooLarge, "a frame has at most \(sizeBytesMax) bytes\(isAuthenticated ? "" : " before authentication")")
            return nil
        }
    }

    private func receive(_ frame: ClientFrame) {
        let most = services.limits.budget.unauthenticatedBytesMax
        if !isAuthenticated {
            unauthenticatedBytes += frame.payload.readableBytes
            guard unauthenticatedBytes <= most else {
                return close(.messageTooLarge, "a socket has at most \(most) bytes before authentication")
            }
        }
        switch assembler.receive(frame, sizeBytesMax: isAuthenticated ? RoostAPI.Limits.messageSizeBytes : most) {
        case .message(let message): receive(message)
        case .ping(let payload): writeControl(.pong, payload.readableBytesView)
        case .incomplete:
            // One message goes on in pieces for as long as its sender likes: not while everybody needs the room.
            if assembler.waitingBytes > most, services.connections.memory.isFull {
                services.metrics.overloaded(.socket)
                services.security.reached(.memory, user: account?.user, address: ticket?.address)
                close(CloseCode.tryAgainLater, "come back later")
            }
        case .pong: break
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
            submit(operation, call: call, asked: message.readableBytes, caller: caller)
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

    private func submit(_ operation: some Handled, call: Int64, asked: Int, caller: Caller) {
        let job = Job(
            operation: type(of: operation).name, caller: caller, scope: operation.scope(for: caller),
            presenceChannel: operation.presenceChannel,
            run: { try ReplyFrame.result(operation.handle(in: &$0), call: call) },
            destination: .socket(address, call: call))
        do {
            if type(of: operation).isReadOnly {
                try services.engine.submit(read: job)
            } else {
                try services.engine.submit(write: job)
            }
        } catch {
            reply(error, to: call)
            return
        }
        budget.begin(call: call, asked: asked, AnswerWeight(of: operation))
    }

    private func publish(_ changeBytes: Int) {
        guard changeBytes != 0 else { return }
        services.connections.memory.add(changeBytes)
        account?.ledger.add(changeBytes)
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
            services.security.refusedAuthentication(error, over: .socket, from: ticket?.address?.description)
            refuse(error)
            close(CloseCode(refusing: error) ?? .unauthenticated, error.code.rawValue)
        case .success(let token):
            services.metrics.authenticated(over: .socket)
            do {
                try ticket?.authenticated(token.user, role: token.role, isSocket: true)
            } catch {
                refuse(error)
                return close(CloseCode.tryAgainLater, "too many connections")
            }
            account = (token.user, services.connections.ledger(of: token.user))
            connect(token, on: context.eventLoop)
        }
    }

    /// Takes its place in the order of commits: what comes after it reaches this socket as an event. The welcome comes the way of a reply, so
    /// that it stands before those events.
    private func connect(_ token: VerifiedToken, on loop: any EventLoop) {
        let caller = Caller(user: token.user, role: token.role, connection: address.connection, token: token.identity)
        self.caller = caller
        state = .connecting(caller, tokenExpiresAt: token.expiresAt)
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
            destination: .welcome(address, refused: { error in loop.execute { handler.value.refuseConnection(error) } }))
        do {
            try services.engine.submit(write: job)
        } catch {
            refuseConnection(error)
        }
    }

    private func refuseConnection(_ error: RoostError) {
        guard case .connecting = state else { return }
        if error.code == .invalidArgument {
            // The token names somebody new with an id that nobody can have.
            refuse(.unlawfulUser(error))
            close(CloseCode.unauthenticated, RoostError.Code.unauthenticated.rawValue)
        } else {
            refuse(error)
            if let code = CloseCode(refusing: error) { return close(code, error.code.rawValue) }
            close(CloseCode.tryAgainLater, "come back later")
        }
    }

    private func welcome(_ frame: [UInt8], _ caller: Caller, tokenExpiresAt: Timestamp) {
        state = .open(caller, tokenExpiresAt: tokenExpiresAt)
        write(frame: frame)
        for event in held.release() { send(event: event) }
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
        case .connecting: return held.append(event)
        case .unauthenticated, .authenticating, .closing: return
        }
        budget.write(event.readableBytes, isEvent: true)
        write(event)
        guard budget.isOverEvents else { return }
        // Much may come in one turn of the loop: it is too much only when the kernel doesn't take it.
        flush()
        if budget.isOverEvents { close(CloseCode.resume, "read faster, then resume") }
    }

    /// Puts a reply behind what waits already; the first one of a connection is its welcome.
    func send(reply: [UInt8]) {
        if case .connecting(let caller, let tokenExpiresAt) = state {
            return welcome(reply, caller, tokenExpiresAt: tokenExpiresAt)
        }
        budget.end(reply: reply)
        write(frame: reply)
    }

    func flush() {
        guard let bytes = unflushed else { return }
        unflushed = nil
        hand(bytes) { context?.writeAndFlush(NIOAny(bytes), promise: nil) }
        // What was held back goes on once its turn to be answered has come, and only if the answers before are on their way.
        if reader.waitingBytes > 0 || isReadingPaused { decode() } else { publish(budget.unpublished()) }
    }

    private func hand(_ bytes: ByteBuffer, _ write: () -> Void) {
        handedBytes = bytes.readableBytes
        write()
        handedBytes = 0
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable {
            unreadSince = nil
            budget.becameRead()
            // Not in the middle of a write: what is decoded here is written too.
            if handedBytes == 0, reader.waitingBytes > 0 || isReadingPaused { decode() }
        } else if unreadSince == nil {
            unreadSince = .now()
            budget.becameUnread(handedBytes)
        }
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
        budget.write(buffer.readableBytes, isEvent: false)
        write(buffer)
    }

    private func write(_ bytes: ByteBuffer) {
        if let unflushed { hand(unflushed) { context?.write(NIOAny(unflushed), promise: nil) } }
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
        case .unauthenticated, .authenticating, .connecting:
            if now - connectedAt > limits.authenticationTimeout { close(CloseCode.authenticationTimeout, "no token came") }
        case .open(_, let tokenExpiresAt):
            if tokenExpiresAt <= .now { close(CloseCode.tokenExpired, "the token is over") }
        case .closing:
            return
        }
        let unreadTimeout = services.connections.memory.isHalfFull ? limits.unreadTimeoutUnderPressure : limits.unreadTimeout
        if let unreadSince, now - unreadSince > unreadTimeout { close(CloseCode.resume, "read faster, then resume") }
        // The user's budget may have room again, which no reply of this socket tells.
        if isReadingPaused { decode() }
        if now - lastHeardAt > limits.idleTimeout { close(.goingAway, "nothing was heard") }
        if now - lastPingAt >= limits.pingInterval {
            lastPingAt = now
            writeControl(.ping, [])
        }
    }
}
