import NIOCore
import NIOWebSocket
import RoostAPI
import RoostCore

/// What one client's WebSocket does: authentication, calls in, replies and events out, and the limits on all of it. A value without I/O.
///
/// It is told what happens, and returns what its driver is to do, in order. It makes no decision about chat: a call goes to the engine, what comes
/// back is written as it is. Its states follow one another:
/// 1. Unauthenticated. The first frame, or a header before it, brings a token.
/// 2. Authenticating. The driver has the token checked, and nothing more is read meanwhile.
/// 3. Connecting. The connection has asked for its place in the order of commits; events that come before its welcome are kept behind that.
/// 4. Open. Calls are taken apart as far as the budget allows; what comes beyond that waits as bytes, and the socket isn't read.
/// 5. Closing. Nothing is done any more.
///
/// What is sent is kept until ``takeUnflushed()``, so that all of a turn of the loop goes out in one write. Sending is what happens most: it
/// returns bytes and no list.
///
/// `SocketHandler` drives it on a connection, and simulations drive it on their network.
struct SocketSession {
    private enum State {
        case unauthenticated
        case authenticating
        case connecting(Caller, tokenExpiresAt: Timestamp)
        case open(Caller, tokenExpiresAt: Timestamp)
        case closing
    }

    private let connection: ConnectionID
    private let limits: Configuration
    private var state = State.unauthenticated
    /// Whom the token names, from its verification on.
    private(set) var caller: Caller?
    /// Why the caller is shut out, once they are.
    private var accessRefusal: RoostError?

    // What comes in. Frames are taken apart one after another, as far as the budget allows; the rest waits as bytes.
    private var reader = FrameReader()
    private var assembler = FrameAssembler()
    private var budget: SocketBudget
    private var unauthenticatedBytes = 0
    private var isReadingPaused = false

    // What goes out.
    /// The newest bytes that wait for the end of the loop's turn: they are written and flushed in one go.
    private var unflushed: ByteBuffer?
    /// Events from before the welcome, which comes first.
    private var held = HeldEvents()
    /// Signals that wait until the client reads.
    private var signals = SignalQueue()

    // Times. Looked at once a second by ``tick(_:_:_:)``: a timer for each socket would cost more than all of this.
    private let connectedAt: NIODeadline
    private var lastHeardAt: NIODeadline
    private var lastPingAt: NIODeadline
    private var unreadSince: NIODeadline?
    private var isDraining = false

    private var actions: [Action] = []
    /// Whether something among the actions has to be sent at once.
    private var mustSend = false

    init(_ connection: ConnectionID, limits: Configuration, at now: NIODeadline) {
        self.connection = connection
        self.limits = limits
        budget = SocketBudget(limits: limits.budget)
        (connectedAt, lastHeardAt, lastPingAt) = (now, now, now)
    }

    var isAuthenticating: Bool { if case .authenticating = state { true } else { false } }
    var isOpen: Bool { if case .open = state { true } else { false } }
    var isClosing: Bool { if case .closing = state { true } else { false } }

    private mutating func takeActions() -> [Action] {
        defer { actions = [] }
        return actions
    }

    // MARK: In

    /// Bytes came.
    mutating func receive(_ bytes: ByteBuffer, at now: NIODeadline, _ pressure: Pressure) -> [Action] {
        lastHeardAt = now
        if isClosing { return [] }
        reader.receive(bytes)
        decode(pressure)
        return takeActions()
    }

    /// Whether the next frame may be taken apart. While a token is looked at, nothing is.
    private func mayDecode(_ pressure: Pressure) -> Bool {
        switch state {
        case .unauthenticated: true
        case .authenticating, .connecting, .closing: false
        case .open: budget.mayDecode && !pressure.isUserFull
        }
    }

    /// Takes apart what came, as far as the budget allows. A client that asks faster than it can be answered is read more slowly: nothing is
    /// dropped, and nothing piles up here. What has to be sent at once goes first: whether the client reads it decides about the rest, with
    /// which ``flushed(_:)`` goes on.
    private mutating func decode(_ pressure: Pressure) {
        mustSend = false
        while mayDecode(pressure), !mustSend, let frame = nextFrame() { receive(frame, pressure) }
        if isClosing { return reader = FrameReader() }
        if !mustSend { reader.settle() }
        let isFull = !mayDecode(pressure)
        // A socket is paused when there is something to hold back: most are never.
        if isFull != isReadingPaused, !isFull || reader.waitingBytes > 0 {
            isReadingPaused = isFull
            actions.append(.setReading(!isFull))
        }
        budget.undecoded(reader.waitingBytes + assembler.waitingBytes)
        publish()
    }

    private mutating func publish() {
        let change = budget.unpublished()
        if change != 0 { actions.append(.hold(change)) }
    }

    private mutating func nextFrame() -> ClientFrame? {
        let sizeBytesMax = isOpen ? RoostAPI.Limits.frameSizeBytes : limits.budget.unauthenticatedBytesMax
        do {
            return try reader.next(sizeBytesMax: sizeBytesMax)
        } catch {
            close(.messageTooLarge, "a frame has at most \(sizeBytesMax) bytes\(isOpen ? "" : " before authentication")")
            return nil
        }
    }

    private mutating func receive(_ frame: ClientFrame, _ pressure: Pressure) {
        let sizeBytesMax = limits.budget.unauthenticatedBytesMax
        if !isOpen {
            unauthenticatedBytes += frame.payload.readableBytes
            guard unauthenticatedBytes <= sizeBytesMax else {
                return close(.messageTooLarge, "a socket has at most \(sizeBytesMax) bytes before authentication")
            }
        }
        switch assembler.receive(frame, sizeBytesMax: isOpen ? RoostAPI.Limits.messageSizeBytes : sizeBytesMax) {
        case .message(let message): receive(message)
        case .ping(let payload): writeControl(.pong, payload.readableBytesView)
        case .incomplete:
            // One message goes on in pieces for as long as its sender likes: not while everybody needs the room.
            if assembler.waitingBytes > sizeBytesMax, pressure.isServerFull {
                actions.append(.overloaded)
                close(CloseCode.tryAgainLater, "come back later")
            }
        case .pong: break
        case .close: close(.normalClosure, "")
        case .violation(let code, let reason): close(code, reason)
        }
    }

    private mutating func receive(_ message: ByteBuffer) {
        switch (ClientMessage(message), state) {
        case (.authenticate(let credentials), .unauthenticated):
            beginAuthentication(credentials.token)
        case (.authenticate, _):
            refuse(RoostError(.invalidArgument, "This socket is authenticated already.", field: "authenticate"))
        case (.call(let number, let operation), .open):
            budget.begin(call: number, asked: message.readableBytes, AnswerWeight(of: operation))
            actions.append(.call(Call(number: number, operation: operation)))
        case (.refused(let call, let error), .open):
            actions.append(.refused(error))
            put(frame: ReplyFrame.refusal(error, call: call))
            flush()
        case (.malformed(let error), .open):
            actions.append(.refused(error))
            refuse(error)
        default:
            refuse(RoostError(.unauthenticated, "The first frame must be an authenticate frame."))
            close(CloseCode.unauthenticated, "authenticate first")
        }
    }

    /// A call couldn't be begun.
    mutating func refuse(_ call: Int64, _ error: RoostError) -> [Action] {
        let reply = ReplyFrame.refusal(error, call: call)
        budget.end(reply: reply)
        put(frame: reply)
        flush()
        return takeActions()
    }

    // MARK: Authentication

    /// A token came with the request that opened the socket.
    mutating func authenticate(_ token: String) -> [Action] {
        beginAuthentication(token)
        return takeActions()
    }

    private mutating func beginAuthentication(_ token: String) {
        state = .authenticating
        actions.append(.verify(token: token))
    }

    /// The token is invalid.
    mutating func refuseToken(_ error: RoostError) -> [Action] {
        guard isAuthenticating else { return [] }
        refuse(error)
        close(CloseCode(refusing: error) ?? .unauthenticated, error.code.rawValue)
        return takeActions()
    }

    /// The token is good, and its user has too many connections.
    mutating func turnAway(_ error: RoostError) -> [Action] {
        guard isAuthenticating else { return [] }
        refuse(error)
        close(CloseCode.tryAgainLater, "too many connections")
        return takeActions()
    }

    /// The token is good. The welcome comes the way of a reply, in its place in the order of commits: what comes after it reaches this socket
    /// as an event.
    mutating func verified(_ token: VerifiedToken) -> [Action] {
        guard isAuthenticating else { return [] }
        let caller = Caller(user: token.user, role: token.role, connection: connection, token: token.identity)
        self.caller = caller
        state = .connecting(caller, tokenExpiresAt: token.expiresAt)
        return [.connect(token)]
    }

    /// The engine has refused the connection.
    mutating func refuseConnection(_ error: RoostError) -> [Action] {
        guard case .connecting = state else { return [] }
        if error.code == .invalidArgument {
            // The token names somebody new with an id that nobody can have.
            refuse(.invalidUser(error))
            close(CloseCode.unauthenticated, RoostError.Code.unauthenticated.rawValue)
        } else {
            refuse(error)
            if let code = CloseCode(refusing: error) {
                close(code, error.code.rawValue)
            } else {
                close(CloseCode.tryAgainLater, "come back later")
            }
        }
        return takeActions()
    }

    /// Stops all events if one of the changes shuts the caller out; ``closeEnded()`` follows.
    ///
    /// - Returns: whether it does.
    mutating func endIfRefused(by changes: [AccessSubject: AccessChange]) -> Bool {
        guard let caller, accessRefusal == nil else { return false }
        for subject in caller.accessSubjects {
            guard let refusal = changes[subject]?.refusal(of: caller) else { continue }
            accessRefusal = refusal
            return true
        }
        return false
    }

    /// Closes a socket whose caller is shut out.
    mutating func closeEnded() -> [Action] {
        guard let error = accessRefusal, !isClosing else { return [] }
        refuse(error)
        close(CloseCode(refusing: error) ?? .unauthenticated, error.code.rawValue)
        return takeActions()
    }

    // MARK: Out

    /// Puts an event's bytes behind what waits already.
    ///
    /// - Returns: bytes to hand over now, to go out with those that follow; nil for none.
    mutating func send(event: ByteBuffer) -> ByteBuffer? {
        guard accessRefusal == nil else { return nil }
        switch state {
        case .open: break
        case .connecting:
            held.append(event)
            return nil
        case .unauthenticated, .authenticating, .closing: return nil
        }
        budget.write(event.readableBytes, isEvent: true)
        return put(event)
    }

    /// Puts a reply behind what waits already; the first one of a connection is its welcome.
    ///
    /// - Returns: bytes to hand over now, to go out with those that follow; nil for none.
    mutating func send(reply: [UInt8]) -> ByteBuffer? {
        if case .connecting(let caller, let tokenExpiresAt) = state {
            state = .open(caller, tokenExpiresAt: tokenExpiresAt)
            return put(welcome: reply)
        }
        guard !isClosing else { return nil }
        budget.end(reply: reply)
        let frame = Self.frame(reply)
        budget.write(frame.readableBytes, isEvent: false)
        return put(frame)
    }

    /// Takes a signal: it goes out with what the turn sends, or waits, merged with others, while the client doesn't read. Before the welcome and
    /// for who is shut out there is none.
    ///
    /// - Returns: bytes to hand over now, to go out with those that follow; nil for none.
    mutating func send(signal: SignalFrame) -> ByteBuffer? {
        guard accessRefusal == nil, isOpen else { return nil }
        guard budget.isUnread else { return put(signal.bytes) }
        signals.put(signal)
        budget.signals(signals.sizeBytes)
        return nil
    }

    /// Sends the signals that have waited, once the client reads.
    private mutating func sendSignals() {
        guard !signals.isEmpty, !budget.isUnread, isOpen, accessRefusal == nil else { return }
        for bytes in signals.takeAll() { if let before = put(bytes) { actions.append(.write(before)) } }
        budget.signals(0)
        flush()
    }

    /// The welcome, and behind it what came before it.
    private mutating func put(welcome: [UInt8]) -> ByteBuffer? {
        var bytes = Self.frame(welcome)
        budget.write(bytes.readableBytes, isEvent: false)
        let events = held.release()
        if accessRefusal == nil {
            for event in events {
                budget.write(event.readableBytes, isEvent: true)
                bytes.writeImmutableBuffer(event)
            }
        }
        return put(bytes)
    }

    /// Whether more waits than may: it is too much only if the kernel doesn't take it, which a flush shows.
    var mustFlush: Bool { budget.isOverEvents }

    /// The bytes with which all that was handed over is to be sent; nil where nothing waits. ``flushed(_:)`` follows.
    mutating func takeUnflushed() -> ByteBuffer? { unflushed.take() }

    /// What was handed over is on its way, as far as the client reads. What was held back goes on now: only if the answers before are on
    /// their way.
    mutating func flushed(_ pressure: @autoclosure () -> Pressure) -> [Action] {
        if isClosing { return [] }
        if budget.isOverEvents {
            close(CloseCode.resume, "read faster, then resume")
        } else if reader.waitingBytes > 0 || isReadingPaused {
            decode(pressure())
        } else {
            publish()
        }
        sendSignals()
        return takeActions()
    }

    /// The client has left so much unread that no more is taken for it; so many bytes had just been handed over.
    mutating func becameUnread(_ handedBytes: Int, at now: NIODeadline) {
        guard unreadSince == nil else { return }
        unreadSince = now
        budget.becameUnread(handedBytes)
    }

    /// The client has read nearly all.
    ///
    /// - Parameter isHanding: whether that shows amid handing bytes over. Then nothing is taken apart: ``flushed(_:)`` follows.
    mutating func becameRead(isHanding: Bool, _ pressure: @autoclosure () -> Pressure) -> [Action] {
        unreadSince = nil
        budget.becameRead()
        guard !isHanding, !isClosing else { return [] }
        if reader.waitingBytes > 0 || isReadingPaused { decode(pressure()) }
        sendSignals()
        return takeActions()
    }

    /// Tells of something that isn't the answer to a call.
    private mutating func refuse(_ error: RoostError) { write(["error": error]) }

    private mutating func write(_ value: some Encodable) {
        guard let bytes = try? JSONWriter.bytes(of: value) else { return }
        put(frame: bytes)
        flush()
    }

    private static func frame(_ payload: [UInt8]) -> ByteBuffer {
        var buffer = ByteBuffer()
        buffer.writeTextFrame("", payload)
        return buffer
    }

    private mutating func put(frame payload: [UInt8]) {
        let frame = Self.frame(payload)
        budget.write(frame.readableBytes, isEvent: false)
        if let before = put(frame) { actions.append(.write(before)) }
    }

    /// - Returns: what waited until now.
    private mutating func put(_ bytes: ByteBuffer) -> ByteBuffer? {
        let before = unflushed
        unflushed = bytes
        return before
    }

    private mutating func flush() {
        guard let bytes = unflushed.take() else { return }
        actions.append(.flush(bytes))
        mustSend = true
    }

    private mutating func writeControl(_ opcode: WebSocketOpcode, _ payload: some Collection<UInt8>) {
        var buffer = ByteBuffer()
        buffer.writeControlFrame(opcode: opcode.wireValue, payload)
        if let before = put(buffer) { actions.append(.write(before)) }
        flush()
    }

    // MARK: The end

    private mutating func close(_ code: CloseCode, _ reason: String) {
        close(WebSocketErrorCode(codeNumber: Int(code.rawValue)), reason)
    }

    /// Says why, then closes. A client that doesn't read never learns it, and is closed all the same.
    private mutating func close(_ code: WebSocketErrorCode, _ reason: String) {
        if isClosing { return }
        state = .closing
        var payload = ByteBuffer()
        payload.write(webSocketErrorCode: code)
        payload.writeString(reason)
        writeControl(.connectionClose, payload.readableBytesView)
        actions.append(.close(code))
    }

    /// The server stops. Sockets go one after another over a window, so that they don't all come back in the same moment.
    mutating func drain(after delay: TimeAmount) -> [Action] {
        guard !isDraining, !isClosing else { return [] }
        isDraining = true
        // A timer of its own, on this one occasion: the tick of each second would send all sockets away in bursts.
        actions.append(.restart(after: delay))
        let retry = delay.nanoseconds / 1_000_000 + 500
        write(ClosingFrame(closing: .init(reason: "restart", retryAfterMilliseconds: retry)))
        return takeActions()
    }

    /// The socket's turn has come in a server that stops.
    mutating func restart() -> [Action] {
        close(CloseCode.restart, "the server restarts")
        return takeActions()
    }

    /// The connection is gone. What is held for it is given back.
    mutating func ended() -> [Action] {
        if !isClosing { actions.append(.lost) }
        state = .closing
        unflushed = nil
        held = HeldEvents()
        signals = SignalQueue()
        reader = FrameReader()
        let change = budget.ended()
        if change != 0 { actions.append(.hold(change)) }
        return takeActions()
    }

    // MARK: Time

    /// Looks once a second for what has taken too long, and whether a ping is due.
    mutating func tick(_ now: NIODeadline, _ time: Timestamp, _ pressure: Pressure) -> [Action] {
        switch state {
        case .unauthenticated, .authenticating, .connecting:
            if now - connectedAt > limits.authenticationTimeout { close(CloseCode.authenticationTimeout, "no token came") }
        case .open(_, let tokenExpiresAt):
            if tokenExpiresAt <= time { close(CloseCode.tokenExpired, "the token has expired") }
        case .closing: return []
        }
        let unreadTimeout = pressure.isServerHalfFull ? limits.unreadTimeoutUnderPressure : limits.unreadTimeout
        if let unreadSince, now - unreadSince > unreadTimeout { close(CloseCode.resume, "read faster, then resume") }
        if now - lastHeardAt > limits.idleTimeout { close(.goingAway, "nothing was heard") }
        if isClosing { return takeActions() }
        // The user's budget may have room again, which no reply of this socket tells.
        if isReadingPaused { decode(pressure) }
        if !isClosing, now - lastPingAt >= limits.pingInterval {
            lastPingAt = now
            writeControl(.ping, [])
        }
        return takeActions()
    }
}
