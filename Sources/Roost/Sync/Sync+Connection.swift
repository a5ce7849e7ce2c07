import Logging
import RoostAPI

/// Tokens, connecting, backoff and liveness.
extension Sync {
    mutating func start() {
        guard phase == .idle || phase == .waiting else { return }
        emit(.cancelTimer(.reconnect))
        beginConnecting()
    }

    mutating func stop() {
        endConnection(RoostError(.notConnected, "The client was disconnected."))
        emit(.cancelTimer(.reconnect))
        phase = .idle
        attempts = 0
        set(.offline)
    }

    /// Fetches a token first, unless the current one was never refused; then connects.
    mutating func beginConnecting() {
        // The delay requested by the server ends now. A delay requested from now on applies to the next attempt.
        retryAfter = nil
        // A refusal stays visible while the next attempt is in progress: an app has to act on it.
        if case .refused = status {} else { set(.connecting) }
        guard token == nil else {
            // It is from an earlier attempt, and may have expired since.
            isTokenFresh = false
            return open()
        }
        phase = .fetchingToken
        guard !isFetchingToken else { return }
        isFetchingToken = true
        emit(.fetchToken)
        emit(.startTimer(.token, settings.tokenTimeout))
    }

    private mutating func open() {
        phase = .opening
        connection += 1
        emit(.open(connection))
        emit(.startTimer(.handshake, settings.handshakeTimeout))
    }

    // MARK: Tokens

    mutating func tokenArrived(_ token: String) {
        guard isFetchingToken else { return }
        isFetchingToken = false
        emit(.cancelTimer(.token))
        self.token = token
        isTokenFresh = true
        if phase == .fetchingToken { open() }
    }

    mutating func tokenFailed(_ reason: String) {
        guard isFetchingToken else { return }
        isFetchingToken = false
        emit(.cancelTimer(.token))
        log(.warning, "The token provider failed: \(reason)")
        if phase == .fetchingToken { wait(because: WaitingReason(.tokenProvider, "the token provider failed: \(reason)")) }
    }

    /// The user's session in the app has ended: to ask again would only trouble its backend.
    mutating func tokenDenied(_ error: RoostError) {
        guard isFetchingToken else { return }
        isFetchingToken = false
        emit(.cancelTimer(.token))
        log(.notice, "The token provider has no token: \(error.message)")
        if phase == .fetchingToken { giveUp(.failed(error), because: error) }
    }

    mutating func tokenTimedOut() {
        guard isFetchingToken else { return }
        emit(.cancelToken)
        tokenFailed("it gave no answer within \(settings.tokenTimeout)")
    }

    // MARK: One connection

    mutating func transport(_ event: TransportEvent, of number: Int64) {
        // Events of an abandoned connection are ignored.
        guard number == connection, phase != .idle, phase != .waiting, phase != .fetchingToken else { return }
        idleTicks = 0
        isBeingProbed = false
        switch event {
        case .opened: authenticate()
        case .heard: break
        case .message(let bytes): receive(bytes)
        case .closed(let code, let reason, let cause): closed(code, WaitingReason(cause, reason))
        }
    }

    private mutating func authenticate() {
        guard phase == .opening, let token else { return }
        do {
            let frame = try JSONWriter.bytes(of: AuthenticateFrame(token: token, client: client, device: device))
            guard frame.count <= Limits.unauthenticatedSizeBytes else {
                // Whatever the provider returned, such as a proxy's page, no server would read it.
                let max = Limits.unauthenticatedSizeBytes
                return refused(
                    RoostError(.unauthenticated, "The token's frame has \(frame.count) bytes; a server reads at most \(max)."))
            }
            emit(.send(frame))
            phase = .authenticating
        } catch {
            self.token = nil
            lose(.tokenProvider, "the token can't be written: \(error)")
        }
    }

    private mutating func receive(_ bytes: [UInt8]) {
        let frame: IncomingFrame
        do {
            frame = try IncomingFrame(bytes, settings.rowKinds)
        } catch {
            // An unreadable frame is skipped. If it was an event, the next one of its stream reveals the gap.
            return log(.error, "A frame of \(bytes.count) bytes couldn't be read and was skipped: \(error)")
        }
        if let event = frame.event {
            if isAuthenticated { receive(event) }
        } else if let number = frame.reply {
            reply(number, frame.error, bytes)
        } else if let welcome = frame.welcome {
            welcomed(welcome)
        } else if let closing = frame.closing {
            retryAfter = Self.pause(milliseconds: closing.retryAfterMilliseconds)
        } else if let unwatched = frame.unwatched {
            endWatch(of: unwatched.channel)
            emit(.unwatched(unwatched.channel))
            log(.notice, "\(unwatched.channel) is no longer watched: the right to watch it has ended, or there are too many.")
        } else if let ended = frame.readingEnded {
            readingHasEnded(ended.channel)
        } else if let signal = frame.signal {
            guard isAuthenticated else { return }
            if let change = signal.users { take(change) } else { emit(.signal(signal)) }
        } else if let error = frame.error {
            // An error ends a connection only before the welcome: later the server closes it instead.
            guard !isAuthenticated else {
                return log(.notice, "The server couldn't read a frame: \(error.code.rawValue): \(error.message)")
            }
            refused(error)
        }
    }

    private mutating func welcomed(_ welcome: IncomingFrame.Welcome) {
        guard phase == .authenticating else { return }
        guard welcome.user == user else {
            return refused(RoostError(.unauthenticated, "The token is for \(welcome.user), not for \(user)."))
        }
        emit(.cancelTimer(.handshake))
        isTokenFresh = false
        role = welcome.role
        watches.mustRenew = true
        pingInterval = .seconds(min(max(1, welcome.pingIntervalSeconds), 3600))
        idleTicks = 0
        startLiveness(pingInterval / 2)
        serverTime = welcome.now ?? deviceTime ?? serverTime
        noteServer(welcome.server)
        discardFormerHistory(for: welcome.epoch)
        if saved.epoch != welcome.epoch { resetCache(epoch: welcome.epoch) }
        // The user's permissions and readable history in each channel depend on the role too, and no stream reports that it has changed.
        if let former = saved.role, former != role {
            for (channel, position) in saved.channels where !position.hasEnded && !position.isVisit {
                // The messages of an ephemeral channel can't be fetched again.
                if position.messageCount == nil { permissionsToRequest.insert(channel) } else { resuming.toRefresh.insert(channel) }
            }
        }
        if mustShowOverlays {
            // The failed write of the store may have been the end of a visit.
            emit(.store([.keepVisits(Set(watches.visits.keys))]))
            showOverlays()
        }
        resuming.catchUpsInARow = 0
        catchUp()
    }

    /// Handles the server's refusal of this connection. A refused token isn't sent again.
    private mutating func refused(_ error: RoostError) {
        log(.warning, "The server refused the connection: \(error.code.rawValue): \(error.message)")
        switch error.code {
        case .tokenExpired, .tokenRevoked: return renewToken(error)
        case .userDeactivated: return shutOut(error)
        // Asked again with the same frame, the server would answer the same. A temporary refusal has nothing to do with the token.
        default: if !error.isRetryable { token = nil }
        }
        retryAfter = error.retryAfterMilliseconds.map(Self.pause) ?? retryAfter
        endConnection(error)
        wait(
            because: WaitingReason(.server, "the server doesn't accept the connection: \(error.message)"),
            refusal: error.isRetryable ? nil : error)
    }

    private mutating func closed(_ code: UInt16?, _ reason: WaitingReason) {
        switch code.flatMap(CloseCode.init(rawValue:)) {
        case .tokenExpired: renewToken(RoostError(.tokenExpired, "The token has expired."))
        case .tokenRevoked: renewToken(RoostError(.tokenRevoked, "The token was revoked."))
        case .userDeactivated: shutOut(RoostError(.userDeactivated, "The user is deactivated."))
        case .unauthenticated:
            refused(RoostError(.unauthenticated, reason.message.isEmpty ? "The token was refused." : reason.message))
        default:
            if let code, phase == .authenticating, Self.codesAboutFrames.contains(code) {
                return refused(RoostError(.unauthenticated, "The server couldn't read the token: \(code) \(reason.message)"))
            }
            guard let code else { return lose(reason.cause, reason.message.isEmpty ? "the connection ended" : reason.message) }
            lose(.server, "the server closed the connection: \(code) \(reason.message)")
        }
    }

    /// The close codes of RFC 6455 with which a server rejects what it was sent: its bytes, form or size.
    private static let codesAboutFrames: Set<UInt16> = [1002, 1003, 1007, 1008, 1009]

    /// An expired or revoked token is normal, also after a while without a connection: another one is fetched at once, unless the refused one was
    /// fetched for this attempt.
    private mutating func renewToken(_ error: RoostError) {
        token = nil
        let wasOnline = isAuthenticated
        endConnection(error)
        guard !isTokenFresh, !wasOnline || attempts == 0 else {
            return wait(because: WaitingReason(.server, error.message), refusal: isTokenFresh ? error : nil)
        }
        attempts += 1
        beginConnecting()
    }

    /// No token lets a deactivated user connect.
    private mutating func shutOut(_ error: RoostError) { giveUp(.refused(error), because: error) }

    /// Tries nothing until the app connects again.
    private mutating func giveUp(_ status: Status, because error: RoostError) {
        token = nil
        endConnection(error)
        emit(.cancelTimer(.reconnect))
        phase = .idle
        attempts = 0
        set(status)
    }

    mutating func handshakeTimedOut() {
        if phase == .opening || phase == .authenticating { lose(.server, "no welcome within \(settings.handshakeTimeout)") }
    }

    /// Two of the server's ping intervals without receiving anything mean that the connection is dead, whatever the operating system believes. Ticks
    /// are half as long, so the silence is noticed soon after.
    mutating func livenessTick() {
        guard isAuthenticated else { return }
        // Timers are late rather than early, so this is never ahead.
        serverTime = serverTime.adding(livenessPause)
        guard !isBeingProbed else { return lose(.network, "nothing received for \(settings.nudgeTimeout) after a ping") }
        idleTicks += 1
        // Until a long page has arrived completely, nothing is received, not even the answer to a ping.
        let idleTicksMax = phase == .catchingUp ? 4 << resuming.slowCount : 4
        guard idleTicks <= idleTicksMax else {
            return lose(.network, "nothing received for \(pingInterval * idleTicksMax / 2)")
        }
        if idleTicks == 1 {
            // A connection that has lasted this long resets the backoff.
            attempts = 0
        } else if idleTicks == 3 {
            emit(.ping)
        }
        startLiveness(pingInterval / 2)
    }

    private mutating func startLiveness(_ pause: Duration) {
        livenessPause = pause
        emit(.startTimer(.liveness, pause))
    }

    /// Reconnects or probes the connection: what the client waits for may be available, or the connection may have ended without notice. A delay
    /// requested by the server is respected.
    mutating func nudge() {
        switch phase {
        case .waiting where !waitsForRetryAfter:
            emit(.cancelTimer(.reconnect))
            beginConnecting()
        case .online:
            // Repeated nudges must not delay the end of a dead connection.
            guard !isBeingProbed else { return }
            isBeingProbed = true
            emit(.ping)
            startLiveness(settings.nudgeTimeout)
        case .catchingUp:
            // The answer to a ping would arrive after a page that may be long. The timeout of the resume ends a dead connection.
            break
        case .waiting, .idle, .fetchingToken, .opening, .authenticating: break
        }
    }

    mutating func lose(_ cause: WaitingReason.Cause, _ reason: String) {
        log(.info, "Connection lost: \(reason)")
        endConnection(RoostError(.notConnected, "The connection was lost before the answer."))
        wait(because: WaitingReason(cause, reason))
    }

    mutating func storeFailed(_ saved: SavedState, _ outbox: SavedOutbox?, _ reason: String) {
        log(.error, "The cache failed: \(reason)")
        // The app was last notified up to what was stored, which may be any point since the visits began.
        for (channel, visit) in watches.visits { rememberVisit(of: channel, from: visit.start) }
        self.saved = saved
        mustShowOverlays = true
        // The data of the answers isn't stored.
        userRequests.forget()
        defer {
            // The operations that they ended are still in the file, and are sent again.
            if let outbox { restoreSettlingLost(from: outbox) }
        }
        guard phase != .idle else { return }
        endConnection(RoostError(.notConnected, "The connection was closed because the cache failed."))
        emit(.cancelTimer(.reconnect))
        wait(because: WaitingReason(.storage, "this device's store failed: \(reason)"))
    }

    /// Ends what depends on the connection. The outbox is kept.
    private mutating func endConnection(_ error: RoostError) {
        switch phase {
        case .idle, .waiting, .fetchingToken: break
        case .opening, .authenticating, .catchingUp, .online:
            emit(.close)
            emit(.cancelTimer(.handshake))
            emit(.cancelTimer(.liveness))
            emit(.cancelTimer(.users))
            emit(.cancelTimer(.userPause))
            userRequests.disconnected()
        }
        phase = .waiting
        isBeingProbed = false
        held = []
        hasDroppedEvents = false
        resuming.toRefresh.formUnion(resuming.beingRefreshed)
        resuming.beingRefreshed = []
        failCalls(RoostError(.notConnected, error.message))
        stopSending()
    }

    /// Full jitter: each client waits for a random time, so they don't all reconnect to a restarted server at once.
    private mutating func wait(because reason: WaitingReason, refusal: RoostError? = nil) {
        phase = .waiting
        let doubled = settings.backoff.lowerBound * (1 << min(attempts, 16))
        let bound = min(settings.backoff.upperBound, max(doubled, settings.backoff.lowerBound))
        // 53 random bits fill a double evenly between 0 and 1.
        let fraction = Double(random.next() >> 11) / Double(1 << 53)
        let delay = (retryAfter ?? .zero) + bound * fraction
        attempts += 1
        waitsForRetryAfter = retryAfter != nil
        retryAfter = nil
        set(refusal.map(Status.refused) ?? .waiting(delay, reason))
        emit(.startTimer(.reconnect, delay))
    }

    /// Returns the pause that the server requests, limited to an hour.
    static func pause(milliseconds: Int64) -> Duration { .milliseconds(min(max(0, milliseconds), 3_600_000)) }

    mutating func set(_ new: Status) {
        // A repeated refusal is news to a caller that began to connect in between.
        if case .refused = new {} else if status == new { return }
        status = new
        emit(.status(new))
    }
}
