import Logging
import RoostAPI

/// The client's side of the protocol as a pure state machine: it is given what happens, and says what to do.
///
/// It has no clock, no randomness of its own, no store and no socket, so that the same inputs give the same outputs: tests and
/// simulations run it as it is. ``SyncDriver`` runs it in an app.
///
/// Its parts, each in a file of its own:
/// - `Sync+Connection`: tokens, connecting, backoff, liveness.
/// - `Sync+Streams`: events, positions, catching up after a gap or a reconnect.
/// - `Sync+Rows`: the writes for rows.
/// - `Sync+Permissions`: what follows from what the user may read, and asking for permissions.
/// - `Sync+Calls`: calls and their replies.
/// - `Sync+History`: pages of messages that the stream doesn't bring.
/// - `Sync+Enqueuing`: taking operations into the outbox.
/// - `Sync+Outbox`: operations on their way, one at a time in each channel.
/// - `Sync+SharedOutbox`: what other chats of the same files do with the outbox.
/// - `Sync+Sending`: what ends a message on its way.
/// - `Sync+Events`: telling the app what happened.
/// - `Sync+Users`: asking for users of whom only the id is known.
/// - `Sync+Watching`: watching again after a reconnect.
/// - `Sync+Visits`: following channels of others while they are watched.
/// - `Sync+Reading`: what the user reads at this moment.
///
/// It does not guarantee that requested writes are stored: a driver whose store fails must report it with ``Input/storeFailed(_:_:_:)``.
struct Sync: Sendable {
    /// An app's settings.
    struct Settings: Sendable {
        /// The first and the longest wait between two attempts to connect. Each is drawn evenly from 0 to a bound that doubles.
        var backoff: ClosedRange<Duration> = .milliseconds(500)...(.seconds(30))
        /// A resume has more time after one that took too long: twice as much each time, up to eight times.
        var callTimeout: Duration = .seconds(30)
        /// The most bytes of one message that the transport can send.
        var outgoingSizeBytesMax = Limits.messageSizeBytes
        /// From the beginning of a connection to the server's welcome.
        var handshakeTimeout: Duration = .seconds(20)
        var tokenTimeout: Duration = .seconds(60)
        /// How long a server that is asked for a sign of life, since the app was nudged, has for it.
        var nudgeTimeout: Duration = .seconds(5)
        /// Events kept while catching up. More than that are dropped, and fetched by catching up once more.
        var heldEventsMax = 10_000
        /// Times that the server may answer a message with `internal_error` before it counts as refused.
        var internalErrorsMax = 8
        /// From a change of a draft until it is sent, with what was typed meanwhile.
        var draftPause: Duration = .seconds(1)
        /// From the first message that arrives until it is told that it has, with those that come meanwhile.
        var arrivalPause: Duration = .seconds(3)
        /// Whether a queue waits for the end of a refusal that has one, instead of going on with the next operation.
        var waitsForEndOfRefusal = true
        /// The kinds of rows that are read from the server's frames.
        var rowKinds = RowKinds.standard
    }

    enum Phase: Hashable, Sendable {
        case idle, fetchingToken, opening, authenticating, catchingUp, online, waiting
    }

    /// What the app is told of the connection. Times are counted from when it is told.
    enum Status: Hashable, Sendable {
        case offline, connecting, online
        case waiting(Duration, WaitingReason)
        case refused(RoostError)
    }

    let user: UserID
    /// The user's role in the app, from the server's welcome.
    var role: AppRole?
    let client: String
    /// What the server is told of this device; nil for nothing.
    let device: DeviceDescription?
    let settings: Settings
    var random: any RandomNumberGenerator & Sendable

    // Connection.
    var phase = Phase.idle
    var status = Status.offline
    var connection: Int64 = 0
    var token: String?
    /// Whether that token was fetched for the attempt to connect that is under way, and no server has let anybody in with it. Any other may have run out
    /// since it was fetched.
    var isTokenFresh = false
    var isFetchingToken = false
    var attempts = 0
    var pingInterval = Duration.seconds(30)
    var silentTicks = 0
    /// Whether a nudge has asked for a sign of life that hasn't come yet.
    var isBeingProbed = false
    var retryAfter: Duration?
    /// Whether the wait is one that the server asked for.
    var waitsAsAsked = false

    // Streams.
    var saved: SavedState
    var held: [IncomingEvent] = []
    var hasDroppedEvents = false
    var catchUpsInARow = 0
    /// Answers to a resume, one after another, that have moved nothing.
    var idleResumes = 0
    /// How often in a row, 3 at most, a resume had no answer in time: its page is long for a slow network, and a shorter one can't be asked for.
    var slowResumes = 0
    /// The channels that the resume under way asks for, by their ids: all, unless their positions don't fit into a message.
    var resumedIDs = IDRange()
    /// Channels with a hole that can be fetched now: the next resume leaves their positions out, so that they come as to a fresh client.
    var refreshing: Set<ChannelID> = []
    /// Those that the resume under way fetches afresh. They still are to be fetched if the connection ends before its answer.
    var fetchedAfresh: Set<ChannelID> = []

    // Permissions.
    /// The user's roles in channels, as far as rows have brought them since the start.
    var channelRoles: [ChannelID: ChannelRole] = [:]
    /// The channels whose permissions are to be asked for, since events had only those of others.
    var owedPermissions: Set<ChannelID> = []
    /// Where those channels were when they were last asked for.
    var askedPermissions: [ChannelID: Seq] = [:]

    // Events.
    /// Where the streams were before what was missed: by channel, empty for the user's own alone. Nil for nothing.
    var missed: [ChannelID: Seq]?
    /// Whether a call of this connection that may change something had no answer in time, or wasn't waited for: it may yet be carried out.
    var hasLostCalls = false

    // Calls.
    var lastCall: Int64 = 0
    var calls: [Int64: Purpose] = [:]
    /// Answers that came before what was missed, and wait for it.
    var earlyAnswers: [CallToken: EarlyAnswer] = [:]
    /// What was read of answers that are on their way to their callers.
    var readAnswers: [CallToken: any Sendable] = [:]

    // History.
    var loads: [HistoryPlace: HistoryLoad] = [:]
    /// A seq of each part of a channel's cached messages that a list shows, as it was told last.
    var shownPlaces: [ChannelID: Set<Seq>] = [:]

    // Users.
    var userQuestions = UserQuestions()

    // Watching.
    /// The channels that the app watches.
    var watched: Set<ChannelID> = []
    /// What live objects watch as long as they are there, by their numbers. They ask anew with each connection.
    var watchHolders: [Int64: ChannelID] = [:]
    /// Channels that something here watches no longer, while something else did or had asked to: once nothing does, the server is told.
    var endingWatches: Set<ChannelID> = []
    /// Whether this connection watches none of them yet.
    var mustRenewWatches = false
    /// Watches that the server couldn't begin now, with how often it said so.
    var watchRetries: [ChannelID: PassingRefusals] = [:]
    /// The channels of others that are followed as long as they are watched (``Position/isVisit``).
    var visits: [ChannelID: Visit] = [:]
    /// Those that aren't followed any more, though they are still to be, each with a seq after which the app may not have been told of everything.
    var forgottenVisits: [ChannelID: Seq] = [:]
    /// The visits that have to begin afresh, since events of theirs are missing.
    var owedVisits: Set<ChannelID> = []
    /// The newest events of watched channels of others that weren't applied, since the last renewal of the watch: an answer of before them lacks them.
    var droppedSeqs: [ChannelID: Seq] = [:]
    /// The channels whose watch is being renewed without asking for messages, since an answer with them couldn't be read.
    var plainRenewals: Set<ChannelID> = []
    /// Whether something that watched a channel may have ended: only then is it looked at which visits nothing wants any more.
    var mayEndVisits = false

    // Reading.
    /// The channels that the user reads at this moment, each with the position that the server has told since; 0 before it has.
    var reading: [ChannelID: Seq] = [:]
    /// Those that it couldn't be told of now, and those that aren't read any more of which that holds.
    var readingRetries: [ChannelID: ReadingRetry] = [:]
    /// Those that the user read on this connection and doesn't any more, each with the seq up to which the server may yet mark it for that.
    var readBefore: [ChannelID: Seq] = [:]

    // What has arrived.
    /// The newest messages that have arrived since it was told, by channel.
    var arrivals: [ChannelID: Seq] = [:]
    var isTellingArrivals = false

    // Outbox.
    var queues: [ChannelID?: OutboxQueue] = [:]
    /// How many of the operations that come often may have a key now.
    var keyAllowance = KeyAllowance()
    /// Acknowledged messages whose event the stream hasn't brought yet, with their rows in the outbox.
    var acknowledged: [MessageKey: Acknowledged] = [:]
    /// Answers to other operations that came while what was missed is fetched.
    var heldAnswers: [HeldAnswer] = []
    var lastNumber: Int64 = 0
    /// Callers that wait until their operation is in the file, each with how many of the writes just before its ``Output/kept(_:_:of:)`` are its own.
    var keeping: [CallToken: Int] = [:]
    /// The messages that are given up by some of these.
    var givenUp: [CallToken: MessageKey] = [:]
    /// What is shown over the server's rows.
    var overlays: [ChannelID?: Overlay] = [:]
    /// Whether the store failed, and may show others.
    var mustShowOverlays = false
    /// The server that operations are sent to: the one that was met last.
    var server: String?
    /// The server's clock, never ahead of it: by its welcome, and by the ticks since then. This device's if the welcome doesn't tell it.
    var serverTime = Timestamp(milliseconds: 0)
    var livenessPause = Duration.zero
    /// This device's clock when the last connection opened, in place of a server's that doesn't tell its own.
    var deviceTime: Timestamp?

    private(set) var outputs: [Output] = []

    /// - Parameters:
    ///   - saved: The state in the store.
    ///   - outbox: The operations still to be sent, in any order.
    ///   - random: Where the jitter of reconnecting comes from.
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

    /// Takes in what happened, and returns what to do about it, in order.
    mutating func handle(_ input: Input) -> [Output] {
        switch input {
        case .start: start()
        case .stop: stop()
        case .nudge: nudge()
        case .token(let token): tokenArrived(token)
        case .tokenFailed(let reason): tokenFailed(reason)
        case .deviceTime(let time): deviceTime = time
        case .transport(let number, let event): transport(event, of: number)
        case .timer(let timer): fire(timer)
        case .call(let token, let operation): call(operation, for: token)
        case .cancel(let token): cancel(token)
        case .cancelAsking(let token): if isStillToAnswer(token) { cancel(token) }
        case .loadMessages(let token, let channel, let load, let limit): self.load(load, in: channel, limit: limit, for: token)
        case .showing(let places): shownPlaces = places
        case .show(let users): show(users)
        case .hold(let token, let channel, let holder): hold(channel, by: holder, for: token)
        case .release(let holder): release(holder)
        case .untold(let arrivals): noteUntold(arrivals)
        case .enqueue(let token, let operation, let id, let time, let told):
            enqueue(operation, id: id, at: time, told: told, for: token)
        case .startReading(let token, let channel): startReading(channel, for: token)
        case .stopReading(let token, let channel, let id, let time, let told):
            stopReading(channel, id: id, at: time, told: told, for: token)
        case .kept(let token, let id, let channel, let isGone, let underWay):
            kept(id, of: channel, isGone: isGone, underWay, for: token)
        case .noted(let id, let channel, let row, let isTaken): noted(id, of: channel, as: row, isTaken: isTaken)
        case .outboxFailed(let outbox, let reason, let isAwaited): outboxFailed(outbox, reason, isAwaited: isAwaited)
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
        if mayEndVisits { endUnwantedVisits() }
        defer { outputs = [] }
        return outputs
    }

    mutating func emit(_ output: Output) { outputs.append(output) }

    mutating func log(_ level: Logger.Level, _ message: String) { emit(.log(level, message)) }

    /// Whether the server knows who this connection is.
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
        case .arrivals: tellArrivals()
        case .reading(let channel): tellReading(of: channel)
        case .watch(let channel): watchAgain(channel)
        }
    }
}
