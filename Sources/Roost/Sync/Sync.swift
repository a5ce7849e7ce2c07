import Logging
import RoostAPI

/// The client's side of the protocol as a pure state machine: it receives inputs and returns what to do.
///
/// It has no clock, no randomness of its own, no store and no socket, so the same inputs give the same outputs: tests and simulations run it as it
/// is. ``SyncDriver`` runs it in an app.
///
/// Its parts, each in its own file:
/// - `Sync+Connection`: tokens, connecting, backoff, liveness.
/// - `Sync+Streams`: events, positions, catching up after a gap or a reconnect.
/// - `Sync+Rows`: the writes for rows.
/// - `Sync+Permissions`: the consequences of what the user may read, and requests for permissions.
/// - `Sync+Calls`: calls and their replies.
/// - `Sync+History`: pages of messages that the stream doesn't bring.
/// - `Sync+Enqueuing`: adding operations to the outbox.
/// - `Sync+Outbox`: pending operations, one at a time in each channel.
/// - `Sync+SharedOutbox`: how other chats of the same files use the outbox.
/// - `Sync+Sending`: the end of a pending message.
/// - `Sync+Events`: notifying the app of what happened.
/// - `Sync+Users`: requests for users of whom only the id is known.
/// - `Sync+Watching`: watching again after a reconnect.
/// - `Sync+Visits`: following channels while they are watched, without being a member.
/// - `Sync+Reading`: channels that the user reads at this moment.
///
/// It does not guarantee that requested writes are stored: a driver whose store fails must report it with ``Input/storeFailed(_:_:_:)``.
struct Sync: Sendable {
    /// An app's settings.
    struct Settings: Sendable {
        /// The first and the longest wait between two attempts to connect. Each is drawn uniformly from 0 to a bound that doubles.
        var backoff: ClosedRange<Duration> = .milliseconds(500)...(.seconds(30))
        /// After a resume that took too long, the next one has twice as much time, up to eight times.
        var callTimeout: Duration = .seconds(30)
        /// The most bytes of one message that the transport can send.
        var outgoingSizeBytesMax = Limits.messageSizeBytes
        /// From the start of a connection to the server's welcome.
        var handshakeTimeout: Duration = .seconds(20)
        var tokenTimeout: Duration = .seconds(60)
        /// How long the server has to answer the ping of a nudge.
        var nudgeTimeout: Duration = .seconds(5)
        /// Events kept while catching up. Further ones are dropped, and fetched by catching up again.
        var heldEventsMax = 10_000
        /// How often the server may answer a message with `internal_error` before it counts as refused.
        var internalErrorsMax = 8
        /// From a change of a draft until it is sent, with what was typed meanwhile.
        var draftPause: Duration = .seconds(1)
        /// From the first message that arrives until the arrivals are reported, with later ones included.
        var arrivalPause: Duration = .seconds(3)
        /// Whether a queue waits for the end of a refusal that has one, instead of continuing with the next operation.
        var waitsForEndOfRefusal = true
        /// The kinds of rows that are read from the server's frames.
        var rowKinds = RowKinds.standard
    }

    enum Phase: Hashable, Sendable {
        case idle, fetchingToken, opening, authenticating, catchingUp, online, waiting
    }

    /// The connection status reported to the app. Times are counted from the report.
    enum Status: Hashable, Sendable {
        case offline, connecting, online
        case waiting(Duration, WaitingReason)
        case refused(RoostError)
        case failed(RoostError)
    }

    let user: UserID
    /// The user's role in the app, from the server's welcome.
    var role: AppRole?
    let client: String
    /// This device's description for the server; nil for none.
    let device: DeviceDescription?
    let settings: Settings
    var random: any RandomNumberGenerator & Sendable

    // Connection.
    var phase = Phase.idle
    var status = Status.offline
    var connection: Int64 = 0
    var token: String?
    /// Whether that token was fetched for the current attempt to connect and no server has accepted it yet. Any other may have expired since it was fetched.
    var isTokenFresh = false
    var isFetchingToken = false
    var attempts = 0
    var pingInterval = Duration.seconds(30)
    var idleTicks = 0
    /// Whether the ping of a nudge is still unanswered.
    var isBeingProbed = false
    var retryAfter: Duration?
    /// Whether the server requested the wait.
    var waitsForRetryAfter = false

    // Streams.
    var saved: SavedState
    var held: [IncomingEvent] = []
    var hasDroppedEvents = false
    var resuming = Resuming()

    // Permissions.
    /// The user's roles in channels, as far as rows have brought them since the start.
    var channelRoles: [ChannelID: ChannelRole] = [:]
    /// The channels whose permissions must be requested, because events had only those of others.
    var permissionsToRequest: Set<ChannelID> = []
    /// The positions of those channels when they were last requested.
    var askedPermissions: [ChannelID: Seq] = [:]

    // Events.
    /// Where the streams were before what was missed: by channel; empty if only the user's own missed something. Nil if nothing was missed.
    var missed: [ChannelID: Seq]?
    /// Whether a call of this connection that may change something had no answer in time, or was given up: it may still be carried out.
    var hasLostCalls = false

    // Calls.
    var lastCall: Int64 = 0
    var calls: [Int64: Purpose] = [:]
    /// Answers that arrived before missed events, and wait for them.
    var earlyAnswers: [CallToken: EarlyAnswer] = [:]
    /// The values read from answers that are being delivered to their callers.
    var readAnswers: [CallToken: any Sendable] = [:]

    // History.
    var loads: [HistoryPlace: HistoryLoad] = [:]
    /// A seq of each part of a channel's cached messages that a list shows, as last reported.
    var shownPlaces: [ChannelID: Set<Seq>] = [:]

    // Users.
    var userRequests = UserRequests()

    // Watching.
    /// The channels that the app watches.
    var watched: Set<ChannelID> = []
    var watches = Watches()

    // Reading.
    /// The channels that the user reads at this moment, each with the position that the server has since reported; 0 before that.
    var reading: [ChannelID: Seq] = [:]
    /// While the app is in the background: the channels that the user had been reading, each with the seq up to which this device had it then. Nil while
    /// the app is in the foreground.
    var pausedReading: [ChannelID: Seq]?
    /// Channels whose reading, or its end, couldn't be reported to the server yet.
    var readingRetries: [ChannelID: ReadingRetry] = [:]
    /// Channels that the user no longer reads but did on this connection, each with the seq up to which the server may still mark it for that.
    var readBefore: [ChannelID: Seq] = [:]

    // What has arrived.
    /// The newest messages that have arrived since the last report, by channel.
    var arrivals: [ChannelID: Seq] = [:]
    var isReportingArrivals = false

    // Outbox.
    var queues: [ChannelID?: OutboxQueue] = [:]
    /// The operations in the file that only other chats of the same files know, as last read. They stay with those chats, except those that a request
    /// here concerns (``takeOverRows(where:)``).
    var unknownRows: [OutboxItem] = []
    /// How many frequent operations may have a key now.
    var keyAllowance = KeyAllowance()
    /// Acknowledged messages whose event the stream hasn't brought yet, with their rows in the outbox.
    var acknowledged: [MessageKey: Acknowledged] = [:]
    /// Answers to other operations that arrived while missed events are fetched.
    var heldAnswers: [HeldAnswer] = []
    var lastNumber: Int64 = 0
    /// Callers that wait until their operation is in the file, each with the number of writes just before its ``Output/awaitKept(_:_:of:)`` that are its own.
    var keeping: [CallToken: Int] = [:]
    /// The messages that some of these discard.
    var givenUp: [CallToken: MessageKey] = [:]
    /// The overlays that are shown over the server's rows.
    var overlays: [ChannelID?: Overlay] = [:]
    /// Whether the store failed, and may show other overlays.
    var mustShowOverlays = false
    /// The server that operations are sent to: the last one that was met.
    var server: String?
    /// The server's clock: by its welcome, and by the ticks since then. It isn't ahead of it unless that was set back meanwhile. This device's if the
    /// welcome doesn't contain it.
    var serverTime = Timestamp(milliseconds: 0)
    var livenessPause = Duration.zero
    /// This device's clock when the last connection opened, used if the server doesn't send its own.
    var deviceTime: Timestamp?

    private(set) var outputs: [Output] = []

    /// - Parameters:
    ///   - saved: The state in the store.
    ///   - outbox: The operations still to be sent, in any order.
    ///   - random: The source of the jitter of reconnecting.
    init(
        user: UserID, client: String, device: DeviceDescription? = nil, settings: Settings = Settings(),
        saved: SavedState = SavedState(),
        outbox: SavedOutbox = SavedOutbox(), random: any RandomNumberGenerator & Sendable
    ) {
        self.user = user
        self.client = client
        self.device = device
        self.settings = settings
        self.saved = saved
        self.random = random
        restoreQueues(outbox)
    }

    /// Handles an input, and returns what to do about it, in order.
    mutating func handle(_ input: Input) -> [Output] {
        switch input {
        case .start: start()
        case .stop: stop()
        case .nudge: nudge()
        case .token(let token): tokenArrived(token)
        case .tokenFailed(let reason): tokenFailed(reason)
        case .tokenDenied(let error): tokenDenied(error)
        case .deviceTime(let time): deviceTime = time
        case .transport(let number, let event): transport(event, of: number)
        case .timer(let timer): fire(timer)
        case .call(let token, let operation): call(operation, for: token)
        case .cancel(let token): cancel(token)
        case .cancelAsking(let token): if isAwaitingAnswer(token) { cancel(token) }
        case .loadMessages(let token, let channel, let load, let limit): self.load(load, in: channel, limit: limit, for: token)
        case .showing(let places): shownPlaces = places
        case .show(let users): show(users)
        case .hold(let token, let channel, let holder): hold(channel, by: holder, for: token)
        case .release(let holder): release(holder)
        case .unreported(let arrivals): noteUnreported(arrivals)
        case .enqueue(let token, let operation, let id, let time, let serverReadSeq, let mayBeDeleted):
            enqueue(operation, id: id, at: time, serverReadSeq: serverReadSeq, mayBeDeleted: mayBeDeleted, for: token)
        case .startReading(let token, let channel): startReading(channel, for: token)
        case .pauseReading: pauseReading()
        case .continueReading: continueReading()
        case .stopReading(let token, let channel, let id, let time, let serverReadSeq):
            stopReading(channel, id: id, at: time, serverReadSeq: serverReadSeq, for: token)
        case .kept(let token, let id, let channel, let isGone, let inFlight):
            kept(id, of: channel, isGone: isGone, inFlight, for: token)
        case .noted(let id, let channel, let row, let isTaken): noted(id, of: channel, as: row, isTaken: isTaken)
        case .outboxFailed(let outbox, let reason, let code, let isAwaited):
            outboxFailed(outbox, reason, code, isAwaited: isAwaited)
        case .retry(let row): retry(row)
        case .discard(let row): discard(row)
        case .resolveOthers(let discards): resolveOthers(discard: discards)
        case .storeFailed(let saved, let outbox, let reason): storeFailed(saved, outbox, reason)
        case .missedAgain(let after): missAgain(after)
        case .reopened(let saved, let outbox): reopened(saved, outbox)
        case .outboxRead(let outbox): readOutbox(outbox)
        case .left(let outbox): takeOver(outbox)
        case .trim(let starts): trim(starts)
        }
        // Whatever has ended the watch.
        if watches.mayEndVisits { endUnwantedVisits() }
        defer { outputs = [] }
        return outputs
    }

    mutating func emit(_ output: Output) { outputs.append(output) }

    mutating func log(_ level: Logger.Level, _ message: String) { emit(.log(level, message)) }

    /// Whether the server has authenticated this connection.
    var isAuthenticated: Bool { phase == .catchingUp || phase == .online }

    private mutating func fire(_ timer: Timer) {
        switch timer {
        case .reconnect: if phase == .waiting { beginConnecting() }
        case .token: tokenTimedOut()
        case .handshake: handshakeTimedOut()
        case .liveness: livenessTick()
        case .call(let number): callTimedOut(number)
        case .outbox(let channel): sendAgain(in: channel)
        case .draft(let channel): releaseDraft(in: channel)
        case .users: askForUsers()
        case .userPause: userPauseEnded()
        case .arrivals: reportArrivals()
        case .reading(let channel): reportReading(of: channel)
        case .watch(let channel): watchAgain(channel)
        }
    }
}
