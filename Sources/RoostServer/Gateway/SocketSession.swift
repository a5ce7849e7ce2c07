import NIOCore
import NIOWebSocket
import RoostAPI
import RoostCore

/// The logic of one client's WebSocket: authentication, incoming calls, outgoing replies and events, and their limits. A value without I/O.
///
/// It takes inputs, and returns actions for its driver, in order. It makes no decision about chat: calls go to the engine, and answers are
/// written unchanged. Its states, in order:
/// 1. Unauthenticated. The first frame, or a header before it, carries a token.
/// 2. Authenticating. The driver has the token checked; nothing is read meanwhile.
/// 3. Connecting. The connection has asked for its place in the order of commits; events that arrive before its welcome are held until after it.
/// 4. Open. Calls are decoded as far as the budget allows; the rest stays as bytes, and the socket isn't read.
/// 5. Closing. Nothing more is processed.
///
/// Sent bytes are kept until ``takeUnflushed()``: everything sent in one event-loop turn, or one millisecond, goes out in one write.
///
/// `SocketHandler` drives it on a connection, simulations on their network.
struct SocketSession {
    private let connection: ConnectionID
    private let limits: Configuration
    private(set) var state = State.unauthenticated
    /// The token's user, once it is verified.
    private(set) var caller: Caller?
    private var tokenExpiresAt = Timestamp.forever
    /// The device that the client named; nil if it named none.
    var device: SocketDevice?
    /// Why the caller is shut out; nil if they aren't.
    var accessRefusal: RoostError?

    // Input. Frames are decoded one by one, as far as the budget allows; the rest stays as bytes.
    private var reader = FrameReader()
    private var assembler = FrameAssembler()
    private var budget: SocketBudget
    private var unauthenticatedBytes = 0
    private var isReadingPaused = false

    // Output.
    private var unflushed: UnflushedBytes?
    /// Whether the client's backlog exceeds its budget: it is closed after the current delivery.
    private var isBehind = false
    /// Events held until the welcome is sent.
    private var held = HeldEvents()
    /// Signals queued until the client reads.
    private var signals = SignalQueue()
    /// What the client was sent while its user was reading.
    var readConfirmation = ReadConfirmation()

    // Times. Checked once a second by ``tick(_:_:_:)``: a timer for each socket would cost more than all of this.
    private let connectedAt: NIODeadline
    private var lastHeardAt: NIODeadline
    private var lastPingAt: NIODeadline
    private var slowReader: SlowReader?
    private var isDraining = false

    private var actions: [Action] = []
    /// Whether one of the actions must be sent immediately.
    private var mustSend = false

    init(_ connection: ConnectionID, limits: Configuration, at now: NIODeadline) {
        self.connection = connection
        self.limits = limits
        budget = SocketBudget(limits: limits.budget)
        (connectedAt, lastHeardAt, lastPingAt) = (now, now, now)
    }

    mutating func takeActions() -> [Action] {
        defer { actions = [] }
        return actions
    }

    // MARK: In

    /// Takes received bytes.
    mutating func receive(_ bytes: ByteBuffer, at now: NIODeadline, _ pressure: Pressure) -> [Action] {
        lastHeardAt = now
        if isClosing { return [] }
        reader.receive(bytes)
        decode(pressure)
        return takeActions()
    }

    /// Returns whether the next frame may be decoded. None is while a token is being checked.
    private func mayDecode(_ pressure: Pressure) -> Bool {
        switch state {
        case .unauthenticated: !budget.isUnwritable
        case .authenticating, .connecting, .closing: false
        case .open: budget.mayDecode && !pressure.isUserFull
        }
    }

    /// Decodes the input as far as the budget allows. A client that calls faster than it can be answered is read more slowly: nothing is
    /// dropped, and no backlog builds up here. Urgent output goes first: whether the client reads it decides about the rest, with which
    /// ``flushed(_:)`` continues.
    private mutating func decode(_ pressure: Pressure) {
        mustSend = false
        while mayDecode(pressure), !mustSend, let frame = nextFrame() { receive(frame, pressure) }
        // These bytes are part of a frame, and the client decides how long they stay.
        if !isClosing, !mustSend, pressure.isServerFull, mayDecode(pressure),
            reader.waitingBytes > limits.budget.unauthenticatedBytesMax
        {
            closeForMemory()
        }
        if isClosing { return reader = FrameReader() }
        if !mustSend { reader.settle() }
        let isFull = !mayDecode(pressure)
        // A socket is only paused if there is something to hold back: most never are.
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
        let sizeBytesMax = isOpen ? RoostAPI.Limits.messageSizeBytes : limits.budget.unauthenticatedBytesMax
        do {
            return try reader.next(sizeBytesMax: sizeBytesMax)
        } catch {
            close(.messageTooLarge, "a frame must have at most \(sizeBytesMax) bytes\(isOpen ? "" : " before authentication")")
            return nil
        }
    }

    private mutating func receive(_ frame: ClientFrame, _ pressure: Pressure) {
        let sizeBytesMax = limits.budget.unauthenticatedBytesMax
        if !isOpen {
            unauthenticatedBytes += frame.payload.readableBytes + (frame.opcode.isControlOpcode ? Self.controlFrameBytes : 0)
            guard unauthenticatedBytes <= sizeBytesMax else {
                return close(.messageTooLarge, "a socket may send at most \(sizeBytesMax) bytes before authentication")
            }
        }
        switch assembler.receive(frame, sizeBytesMax: isOpen ? RoostAPI.Limits.messageSizeBytes : sizeBytesMax) {
        case .message(let message): receive(message)
        case .ping(let payload): writeControl(.pong, payload.readableBytesView)
        case .incomplete:
            // A client may take any time to send one message in fragments, but not while the server is short of memory.
            if assembler.waitingBytes > sizeBytesMax, pressure.isServerFull { closeForMemory() }
        case .pong(let payload):
            if let seqs = readConfirmation.receive(pong: payload) { actions.append(.read(seqs)) }
            askForReading()
        case .close(let code): close(.normalClosure, "", answering: code)
        case .violation(let code, let reason): close(code, reason)
        }
    }

    /// Closes the socket because there is no room for the rest of its message.
    private mutating func closeForMemory() {
        actions.append(.overloaded)
        close(CloseCode.tryAgainLater, "try again later")
    }

    private mutating func receive(_ message: ByteBuffer) {
        switch (isOpen ? ClientMessage(message) : ClientMessage(first: message), state) {
        case (.authenticate(let credentials), .unauthenticated):
            if let error = credentials.device?.refusal {
                return refuse(error, closing: .unauthenticated, "the device is invalid")
            }
            device = credentials.device.map { SocketDevice(description: $0) }
            beginAuthentication(credentials.token)
        case (.unreadableCredentials(let error), .unauthenticated):
            refuse(error, closing: .unauthenticated, "the authenticate frame can't be read")
        case (.authenticate, _), (.unreadableCredentials, _):
            refuse(RoostError(.invalidArgument, "This socket is already authenticated.", field: "authenticate"))
        case (.call(let number, _, _), .open) where budget.isInFlight(number),
            (.refused(let number, _), .open) where budget.isInFlight(number):
            actions.append(.refused(Self.repeatedNumber))
            refuse(Self.repeatedNumber)
        case (.call(let number, let operation, let key), .open):
            let heldBytes = budget.begin(call: number, asked: message.readableBytes, AnswerWeight(of: operation))
            actions.append(.call(Call(number: number, operation: operation, key: key, heldBytes: heldBytes)))
        case (.refused(let call, let error), .open):
            actions.append(.refused(error))
            put(frame: ReplyFrame.refusal(error, call: call))
            flush()
        case (.malformed(let error), .open):
            actions.append(.refused(error))
            refuse(error)
        default:
            let error = RoostError(.unauthenticated, "The first frame must be an authenticate frame.")
            refuse(error, closing: .unauthenticated, "authenticate first")
        }
    }

    /// Refuses a call that couldn't be started.
    mutating func refuse(_ call: Int64, _ error: RoostError) -> [Action] {
        let reply = ReplyFrame.refusal(error, call: call)
        budget.end(reply: reply)
        put(frame: reply)
        flush()
        return takeActions()
    }

    // MARK: Authentication

    /// Authenticates with the token, and the device if any, from the request that opened the socket.
    mutating func authenticate(_ token: String, on device: DeviceDescription? = nil) -> [Action] {
        self.device = device.map { SocketDevice(description: $0) }
        beginAuthentication(token)
        return takeActions()
    }

    private mutating func beginAuthentication(_ token: String) {
        state = .authenticating
        actions.append(.verify(token: token))
    }

    /// Closes the socket because its token is refused.
    mutating func refuseToken(_ error: RoostError) -> [Action] {
        guard isAuthenticating else { return [] }
        refuse(error, closing: CloseCode(refusing: error) ?? .unauthenticated, error.code.rawValue)
        return takeActions()
    }

    /// Closes the socket because its user has too many connections.
    mutating func turnAway(_ error: RoostError) -> [Action] {
        guard isAuthenticating else { return [] }
        refuse(error, closing: .tryAgainLater, "too many connections")
        return takeActions()
    }

    /// Connects, because the token is valid. The welcome is sent like a reply, in its place in the order of commits: later commits reach this
    /// socket as events.
    mutating func verified(_ token: VerifiedToken) -> [Action] {
        guard isAuthenticating else { return [] }
        let caller = Caller(user: token.user, role: token.role, connection: connection, token: token.identity)
        (self.caller, tokenExpiresAt) = (caller, token.expiresAt)
        state = .connecting
        return [.connect(token)]
    }

    /// Notes that the connection has taken its place, as one of a device; its welcome follows. Returns whether it is already shut out: if so,
    /// ``closeEnded()`` follows the welcome.
    mutating func registered(_ identity: DeviceIdentity) -> Bool {
        guard state == .connecting, var caller else { return false }
        caller.device = identity
        self.caller = caller
        accessRefusal = accessRefusal ?? device?.refusal(of: caller)
        return accessRefusal != nil
    }

    /// Closes the socket because the engine has refused the connection.
    mutating func refuseConnection(_ error: RoostError) -> [Action] {
        guard state == .connecting else { return [] }
        if error.code == .invalidArgument {
            // The token names a new user with an invalid id.
            refuse(.invalidUser(error), closing: .unauthenticated, RoostError.Code.unauthenticated.rawValue)
        } else {
            let code = CloseCode(refusing: error)
            refuse(error, closing: code ?? .tryAgainLater, code == nil ? "try again later" : error.code.rawValue)
        }
        return takeActions()
    }

    // MARK: Out

    /// Adds an event to the output.
    mutating func send(event: ByteBuffer) {
        guard accessRefusal == nil, !isBehind else { return }
        switch state {
        case .open: put(event: event)
        case .connecting: held.append(event)
        case .unauthenticated, .authenticating, .closing: break
        }
    }

    private mutating func put(event: ByteBuffer) {
        budget.write(event.readableBytes, isEvent: true)
        unflushed.append(event)
    }

    /// Adds a reply to the output. A connection's first reply is its welcome, followed by the events held for it.
    mutating func send(reply: [UInt8]) {
        if state == .connecting {
            state = .open
            put(frame: reply)
            let events = held.release()
            if accessRefusal == nil { for event in events { put(event: event) } }
        } else if !isClosing {
            budget.end(reply: reply)
            put(frame: reply)
        }
    }

    /// Takes a signal. It is sent with the next output or, while the client doesn't read, queued and merged with others. Connections before
    /// their welcome and callers who are shut out get none.
    mutating func send(signal: SignalFrame) {
        guard accessRefusal == nil, isOpen else { return }
        guard budget.isUnwritable else { return unflushed.append(signal.bytes) }
        signals.put(signal)
        budget.signals(signals.sizeBytes)
    }

    /// Asks the client to confirm receipt of what was sent before; ``Action/read(_:)`` follows once it does.
    ///
    /// - Parameter seqs: The seqs up to which the client was sent channels that its user is reading.
    mutating func confirm(_ seqs: [ChannelID: Seq]) -> [Action] {
        guard isOpen, accessRefusal == nil else { return [] }
        readConfirmation.add(seqs)
        askForReading()
        return takeActions()
    }

    private mutating func askForReading() {
        if isOpen, let ping = readConfirmation.nextPing() { writeControl(.ping, ping) }
    }

    /// Sends the queued signals once the client reads.
    private mutating func sendSignals() {
        guard !signals.isEmpty, !budget.isUnwritable, isOpen, accessRefusal == nil else { return }
        for bytes in signals.takeAll() { unflushed.append(bytes) }
        budget.signals(0)
        flush()
    }

    /// Whether a flush mustn't wait for more: a larger write gains nothing, or more is queued than allowed, which is too much only if the
    /// kernel doesn't take it.
    var mustFlush: Bool { unflushed.map { $0.sizeBytes >= Self.unflushedBytesMax } ?? false || budget.exceedsEventLimit }

    /// Takes the bytes to write and flush; nil if there are none. ``flushed(_:)`` follows.
    mutating func takeUnflushed() -> UnflushedBytes? { unflushed.take() }

    /// Continues with held-back input after a flush: only then is it known whether the client reads the earlier answers.
    mutating func flushed(_ pressure: @autoclosure () -> Pressure) -> [Action] {
        if isClosing { return [] }
        if budget.exceedsEventLimit || isBehind {
            close(CloseCode.resume, "read faster, then resume")
        } else if reader.waitingBytes > 0 || isReadingPaused {
            decode(pressure())
        } else {
            publish()
        }
        sendSignals()
        return takeActions()
    }

    /// Counts what was written in the middle of a delivery; ``flushed(_:)`` follows at its end. A client whose backlog exceeds its budget by
    /// now receives nothing more of the delivery, and is closed then.
    mutating func flushedEarly(_ pressure: @autoclosure () -> Pressure) -> [Action] {
        if isClosing { return [] }
        publish()
        // A client that has missed an event is closed, even if there is room again by then.
        isBehind = isBehind || budget.exceedsEventLimit || (budget.isUnwritable && pressure().isServerFull)
        return takeActions()
    }

    /// Notes that the client has left so much unread that the channel is no longer writable; `handedBytes` had just been handed over.
    mutating func becameUnwritable(_ handedBytes: Int, at now: NIODeadline) {
        guard slowReader == nil else { return }
        slowReader = SlowReader(at: now)
        budget.becameUnwritable(handedBytes)
    }

    /// Continues now that the client has read nearly everything.
    ///
    /// - Parameter isHanding: Whether this happens while bytes are handed over. If so, nothing is decoded: ``flushed(_:)`` follows.
    mutating func becameWritable(isHanding: Bool, _ pressure: @autoclosure () -> Pressure) -> [Action] {
        slowReader = nil
        budget.becameWritable()
        guard !isHanding, !isClosing else { return [] }
        if reader.waitingBytes > 0 || isReadingPaused {
            decode(pressure())
        } else {
            publish()
        }
        sendSignals()
        return takeActions()
    }

    /// Sends an error that isn't the answer to a call.
    private mutating func refuse(_ error: RoostError) { write(["error": error]) }

    mutating func refuse(_ error: RoostError, closing code: CloseCode, _ reason: String) {
        refuse(error)
        close(code, reason)
    }

    private mutating func write(_ value: some Encodable) {
        guard let bytes = try? JSONWriter.bytes(of: value) else { return }
        put(frame: bytes)
        flush()
    }

    private mutating func put(frame payload: [UInt8]) {
        var frame = ByteBuffer()
        frame.writeTextFrame("", payload)
        budget.write(frame.readableBytes, isEvent: false)
        unflushed.append(frame)
    }

    private mutating func flush() {
        guard let bytes = unflushed.take() else { return }
        actions.append(.flush(bytes))
        mustSend = true
    }

    private mutating func writeControl(_ opcode: WebSocketOpcode, _ payload: some Collection<UInt8>) {
        var buffer = ByteBuffer()
        buffer.writeControlFrame(opcode: opcode.wireValue, payload)
        unflushed.append(buffer)
        flush()
    }

    // MARK: The end

    private mutating func close(_ code: CloseCode, _ reason: String) {
        close(WebSocketErrorCode(codeNumber: Int(code.rawValue)), reason)
    }

    /// Sends the reason, then closes. A client that doesn't read never learns it, but is closed all the same. If the client has closed, its
    /// code is reported.
    private mutating func close(_ code: WebSocketErrorCode, _ reason: String, answering clientCode: WebSocketErrorCode? = nil) {
        if isClosing { return }
        state = .closing
        var payload = ByteBuffer()
        payload.write(webSocketErrorCode: code)
        payload.writeString(reason)
        writeControl(.connectionClose, payload.readableBytesView)
        actions.append(.close(clientCode ?? code))
    }

    /// Begins shutdown. Sockets are closed one by one over a window, so clients don't all reconnect at the same moment.
    mutating func drain(after delay: TimeAmount) -> [Action] {
        guard !isDraining, !isClosing else { return [] }
        isDraining = true
        // Only this case has its own timer: with the tick once a second, sockets would close in bursts.
        actions.append(.restart(after: delay))
        let retry = delay.nanoseconds / 1_000_000 + 500
        write(ClosingFrame(closing: .init(reason: "restart", retryAfterMilliseconds: retry)))
        return takeActions()
    }

    /// Closes the socket when its turn in the shutdown has come.
    mutating func restart() -> [Action] {
        close(CloseCode.restart, "the server restarts")
        return takeActions()
    }

    /// Releases everything held for the connection, which has ended.
    mutating func ended() -> [Action] {
        if !isClosing { actions.append(.lost) }
        state = .closing
        unflushed = nil
        held = HeldEvents()
        signals = SignalQueue()
        readConfirmation = ReadConfirmation()
        reader = FrameReader()
        let change = budget.ended()
        if change != 0 { actions.append(.hold(change)) }
        return takeActions()
    }

    // MARK: Time

    /// Whether output waits for the client to read: if so, ``tick(_:_:_:_:)`` needs to know how much.
    var hasBacklog: Bool { slowReader != nil }
    /// Whether a call is under way, and no other.
    var hasOneCall: Bool { budget.callCount == 1 }

    /// Checks once a second whether something has taken too long, and whether a ping is due.
    mutating func tick(_ now: NIODeadline, _ time: Timestamp, _ pressure: Pressure, _ waiting: WaitingBytes? = nil) -> [Action] {
        switch state {
        case .unauthenticated:
            if now - connectedAt > limits.authenticationTimeout { close(CloseCode.authenticationTimeout, "no token arrived") }
        case .authenticating, .connecting:
            // The token has arrived. It is the server that takes too long.
            if now - connectedAt > limits.authenticationTimeout { close(CloseCode.tryAgainLater, "try again later") }
        case .open:
            if tokenExpiresAt <= time { close(CloseCode.tokenExpired, "the token has expired") }
        case .closing: return []
        }
        if let waiting {
            let hasTaken = budget.waits(waiting.channelBytes + (unflushed?.sizeBytes ?? 0))
            // The server's pings are queued behind what isn't read yet, so they can't be answered.
            if slowReader?.note(waiting, hasTaken: hasTaken, at: now) == true { lastHeardAt = now }
            publish()
        }
        if signals.isOverfull || slowReader?.isOver(limits, isServerHalfFull: pressure.isServerHalfFull, at: now) == true {
            close(CloseCode.resume, "read faster, then resume")
        }
        if now - lastHeardAt > limits.idleTimeout { close(.goingAway, "nothing received") }
        if isClosing { return takeActions() }
        // The user's budget may have room again without a reply on this socket.
        if isReadingPaused { decode(pressure) }
        if !isClosing, now - lastPingAt >= limits.pingInterval {
            lastPingAt = now
            writeControl(.ping, readConfirmation.inFlight)
        }
        return takeActions()
    }
}
