import Observation
import RoostAPI

/// Keeps a live object up to date as long as the object exists: it runs the object's work when something changes, one piece after another, and tracks
/// the object's phase.
///
/// Work that starts later sees a later state, and its result is shown later. An object that can't read the store keeps showing what it has; its phase
/// and the log say why. The store is read again after a while, a bounded number of times, and with the next change. A request to the server that reads
/// the store first is repeated as long as the connection lasts.
@MainActor @Observable
final class Follower {
    /// How a piece of work ended.
    enum Outcome {
        case done
        /// The server, or a limit, refuses permanently: the app has to know.
        case refused(RoostError)
        /// It will be retried: on a connection, on a change, or by the same request after a while. Or the user has logged out meanwhile.
        case failed
    }

    /// The phase of the object.
    private(set) var phase = LivePhase.loading
    /// Whether the object has something to show, whatever its phase is now.
    @ObservationIgnored private(set) var hasAnswer = false
    /// Whether the user has logged out. Earlier answers of the server aren't shown any longer.
    @ObservationIgnored private(set) var hasEnded = false
    @ObservationIgnored private var waiting: [Int: CheckedContinuation<Void, any Error>] = [:]
    @ObservationIgnored private var lastWaiting = 0
    @ObservationIgnored private let driver: SyncDriver
    @ObservationIgnored private var following: ObservationToken?
    /// A scheduled call, due soon or within some seconds.
    @ObservationIgnored private var delayed: (task: Task<Void, Never>, isSpread: Bool)?
    @ObservationIgnored private var random: any RandomNumberGenerator & Sendable
    @ObservationIgnored private var turns = Turns()
    /// Work that asks the server: changes in the meantime are shown without waiting for the answers.
    @ObservationIgnored private var serverTurns = Turns()
    /// Whether the object is unavailable because there is no connection.
    @ObservationIgnored private var isAway = false
    /// Whether the object is unavailable because this device's files couldn't be opened, which is retried when the app connects.
    @ObservationIgnored private var awaitsFiles = false
    @ObservationIgnored private var away: (@MainActor () async -> Bool)?
    /// Asks the server again.
    @ObservationIgnored private var connected: (@MainActor () async -> Void)?
    @ObservationIgnored private var askingAgain: Task<Void, Never>?
    /// How many times in a row the server couldn't answer, or the store couldn't be read for a request.
    @ObservationIgnored private var failures = 0
    /// Whether a change couldn't be processed.
    @ObservationIgnored private var hasMissedChange = false
    @ObservationIgnored private var changed: (@MainActor (StoreChange) async -> Void)?
    /// The changes for which the store couldn't be read.
    @ObservationIgnored private var missed = StoreChange()
    /// How many times the store couldn't be read.
    @ObservationIgnored private var failedReads = 0
    @ObservationIgnored private var readingAgain: Task<Void, Never>?
    /// How many times in a row rereading the store has failed.
    @ObservationIgnored private var rereads = 0
    private static let rereadsMax = 8
    /// Users that the object shows, each with the version known at the time.
    @ObservationIgnored private var shown: [UserID: Int64] = [:]

    init(_ driver: SyncDriver) {
        self.driver = driver
        random = driver.environment.random
    }

    /// Follows a topic until this object is released.
    ///
    /// - Parameters:
    ///   - connected: Called when there is a connection and everything missed is stored. It doesn't take a turn, so it may ask the server.
    ///   - away: Called when there is no connection and no answer yet, to show what is known. Returns whether only the server has the answer, which
    ///     makes the object unavailable.
    ///   - ended: Takes a turn when the user has logged out, to discard the server's answers. The object is loaded then, like one that reads the
    ///     store.
    ///   - changed: Called with everything at once, then with each change. If the store can't be read in ``work(isQuery:asksServer:_:)``, it is
    ///     called again after a while, with the subject of the change and everything.
    ///   - failed: Called each time this device's files can't be opened.
    func follow(
        _ topic: ChangeSignals.Topic, connected: (@MainActor () async -> Void)? = nil,
        away: (@MainActor () async -> Bool)? = nil, ended: (@MainActor () -> Void)? = nil,
        changed: @escaping @MainActor (StoreChange) async -> Void, failed: (@MainActor () -> Void)? = nil
    ) {
        self.away = away
        self.connected = connected
        self.changed = changed
        let absent: @MainActor (RoostError?) async -> Void = { [weak self] error in await self?.go(away: error) }
        following = driver.follow(
            topic,
            connected: { [weak self] in
                self?.endPause()
                self?.showAgain()
                await connected?()
            }, away: away == nil ? nil : absent,
            failed: { [weak self] error in
                failed?()
                self?.enter(.unavailable(error), awaitsFiles: true)
            },
            changed: { [weak self] change in
                // With another history or another file, what was known of users no longer holds.
                if change.isEverything { self?.shown = [:] }
                if change.isEnd { await self?.end(ended) }
                await self?.look(at: change)
            })
    }

    /// Passes a change to the object, together with the changes that it couldn't read before.
    private func look(at change: StoreChange) async {
        readingAgain?.cancel()
        readingAgain = nil
        var change = change
        change.merge(missed)
        missed = StoreChange()
        let failedBefore = failedReads
        await changed?(change)
        if failedReads == failedBefore { rereads = 0 } else { missed.merge(change) }
    }

    /// Retries after a while what couldn't be read. After several failures the next retry is with the next change.
    private func readAgain(after error: any Error) {
        failedReads += 1
        missed.merge(.everything)
        guard changed != nil, readingAgain == nil, !hasEnded, rereads < Self.rereadsMax else { return }
        let pause = Duration.pause(after: error, failures: rereads, first: 1000)
        let clock = driver.environment.clock
        readingAgain = Task { [weak self] in
            try? await clock.sleep(for: pause)
            guard !Task.isCancelled, let self else { return }
            readingAgain = nil
            rereads += 1
            await look(at: StoreChange())
        }
    }

    private func end(_ forget: (@MainActor () -> Void)?) async {
        hasEnded = true
        delayed?.task.cancel()
        askingAgain?.cancel()
        readingAgain?.cancel()
        if let forget { await work { forget() } }
    }

    /// Follows a topic, and runs a step for everything at once and then for each change. After a failed step the next change is one of everything,
    /// because only that finds what the failed change was about.
    func follow(
        _ topic: ChangeSignals.Topic, connected: (@MainActor () async -> Void)? = nil,
        reload: @escaping @MainActor (StoreChange) async throws -> Void
    ) {
        follow(
            topic, connected: connected,
            changed: { [weak self] change in
                guard let self else { return }
                var change = change
                if hasMissedChange { change.isEverything = true }
                hasMissedChange = true
                if case .done = await work({ try await reload(change) }) { hasMissedChange = false }
            })
    }

    /// Runs a step in its turn.
    ///
    /// - Parameters:
    ///   - isQuery: Whether it asks for what the object shows, so that its success ends an earlier refusal.
    ///   - asksServer: Whether it waits for the server, and so takes its turn among such steps. It processes the answer in a ``turn(_:)``.
    @discardableResult
    func work(
        isQuery: Bool = true, asksServer: Bool = false, _ step: @escaping @MainActor () async throws -> Void
    ) async -> Outcome {
        let hadEnded = hasEnded
        do {
            try await (asksServer ? serverTurns : turns).take(step)
            switch phase {
            case .refused where isQuery, .unavailable where !isAway: enter(hasAnswer ? .loaded : .loading)
            case .refused, .unavailable, .loading, .loaded: break
            }
            if isQuery { endPause() }
            return .done
        } catch let error as RoostError {
            // The user has logged out meanwhile: the object shows that, not the outcome of earlier requests.
            guard hasEnded == hadEnded else { return .failed }
            guard !error.isRetryable else {
                if isQuery { askAgain(after: error, first: 500) }
                return .failed
            }
            enter(.refused(error))
            return .refused(error)
        } catch is CancellationError {
            return .failed
        } catch {
            if let error = driver.thrown(error) as? RoostError { enter(.unavailable(error)) }
            readAgain(after: error)
            // Reading again reports a change to the object, which is no reason for it to ask the server.
            if isQuery { askAgain(after: error, first: 1000) }
            return .failed
        }
    }

    /// Whether another request to the server is scheduled.
    var isAskingAgain: Bool { askingAgain != nil }

    /// Asks the server again after a while if it couldn't answer now, or if the store couldn't be read for the request, as long as the connection
    /// lasts: a new connection asks by itself.
    ///
    /// - Parameter first: The first pause, in milliseconds.
    private func askAgain(after error: any Error, first: Int64) {
        guard let connected, askingAgain == nil, driver.statuses.current == .online else { return }
        let pause = Duration.pause(after: error, failures: failures, first: first)
        failures += 1
        let clock = driver.environment.clock
        askingAgain = Task { [weak self] in
            try? await clock.sleep(for: pause)
            guard !Task.isCancelled, let driver = self?.driver else { return }
            self?.askingAgain = nil
            if driver.statuses.current == .online { await connected() }
        }
    }

    /// Ends the pause before the server is asked again, and counts failures anew: after an answer, on a new connection and for another query.
    private func endPause() {
        askingAgain?.cancel()
        (failures, askingAgain) = (0, nil)
    }

    /// Runs a part of work that asks the server, in its turn among the steps that change the object. Does nothing once the user has logged out.
    ///
    /// - Throws: The step's error.
    func turn(_ step: @escaping @MainActor () async throws -> Void) async throws {
        try await turns.take { [weak self] in if self?.hasEnded == false { try await step() } }
    }

    /// Runs a step for the app in its turn. A step that asks the server is cancelled with the caller's task. A step that reads this device's files
    /// isn't: it takes only a moment, and its changes have to be complete.
    ///
    /// - Parameter asksServer: As for ``work(isQuery:asksServer:_:)``.
    /// - Throws: The step's `RoostError`, or one with `storage_failed` if the store can't be read; `CancellationError` if it asks the server.
    func take(asksServer: Bool, _ step: @escaping @MainActor () async throws -> Void) async throws {
        do {
            if asksServer { try await serverTurns.takeUnlessCancelled(step) } else { try await turns.take(step) }
        } catch {
            throw driver.thrown(error)
        }
    }

    /// Calls back in a moment, once for all calls until then: several events cost one request to the server.
    ///
    /// Replaces a call that was due within some seconds.
    func soon(_ work: @escaping @MainActor () async -> Void) {
        if let delayed {
            guard delayed.isSpread else { return }
            delayed.task.cancel()
        }
        delayed = (delay(work, by: .milliseconds(250)), isSpread: false)
    }

    /// Calls back within some seconds, once for all calls until then, unless an earlier callback is scheduled meanwhile: a signal has given many
    /// clients a reason to ask, and they mustn't all ask at the same moment.
    func withinSeconds(_ work: @escaping @MainActor () async -> Void) {
        guard delayed == nil else { return }
        delayed = (delay(work, by: .spread(random.next())), isSpread: true)
    }

    private func delay(_ work: @escaping @MainActor () async -> Void, by pause: Duration) -> Task<Void, Never> {
        let clock = driver.environment.clock
        return Task { [weak self] in
            try? await clock.sleep(for: pause)
            guard !Task.isCancelled else { return }
            self?.delayed = nil
            if self?.hasEnded == false { await work() }
        }
    }

    // MARK: Users

    /// Has shown users fetched from the server if they have changed: each is requested once, however often the object shows them.
    func shows(_ users: some Sequence<UserSummary>) {
        var new: [UserID: Int64] = [:]
        // Consecutive rows often have the same user, and a lookup in a set takes longer.
        var last: UserID?
        for user in users where user.userId != last {
            last = user.userId
            if shown[user.userId] == nil { new[user.userId] = user.version }
        }
        shows(new)
    }

    /// Does the same for users with the versions that the object shows; 0 if only the id is known.
    func shows(_ users: [UserID: Int64]) {
        let new = users.filter { shown[$0.key] == nil }
        guard !new.isEmpty else { return }
        if shown.count >= Sync.UserRequests.rememberedMax { shown = [:] }
        shown.merge(new) { _, latest in latest }
        let driver = driver
        Task { await driver.submit(.show(new)) }
    }

    /// On a new connection, the users shown may have changed.
    private func showAgain() {
        guard !shown.isEmpty else { return }
        let (driver, shown) = (driver, shown)
        Task { await driver.submit(.show(shown)) }
    }

    // MARK: Phases

    /// Records that the object shows an answer now. A later refusal or failure is ended by the next work that succeeds.
    func answered() {
        hasAnswer = true
        if phase == .loading || isAway { enter(.loaded) }
    }

    /// Records that there is no connection, if there is none and the object waits for an answer of the server.
    func lookForConnection() async { await go(away: driver.statuses.current.absence) }

    /// Handles the absence of a connection; without a reason, one is being made.
    private func go(away error: RoostError?) async {
        guard let away, phase == .loading || isAway else { return }
        guard let error else { return enter(.loading) }
        guard await away(), phase == .loading || isAway else { return }
        enter(.unavailable(error), isAway: true)
    }

    /// Records that the object was asked for something else. It keeps showing what it has until there is an answer.
    func beginLoading() { enter(.loading) }

    /// Cancels the current work because the object was asked for something else: the new work doesn't wait for it.
    func abandonWork() {
        turns.cancel()
        serverTurns.cancel()
        (turns, serverTurns) = (Turns(), Turns())
        endPause()
    }

    /// Records that the object's request is refused.
    func refused(_ error: RoostError) { enter(.refused(error)) }

    private var isUnanswered: Bool {
        phase == .loading || isAway && !driver.statuses.current.isGivenUpForNow || awaitsFiles && driver.statuses.current.isActive
    }

    /// Returns once there is an answer.
    ///
    /// - Throws: The error of the phase; `CancellationError`.
    func loaded() async throws {
        // Waits also for a connection that is being made, or that the app hasn't asked for yet.
        while isUnanswered {
            lastWaiting += 1
            let number = lastWaiting
            try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                    // A task with a custom executor passes through it on its way here: the answer, or the end of the task, may have come first.
                    if Task.isCancelled { return continuation.resume(throwing: CancellationError()) }
                    guard isUnanswered else { return continuation.resume() }
                    waiting[number] = continuation
                }
            } onCancel: {
                Task { @MainActor in waiting.removeValue(forKey: number)?.resume(throwing: CancellationError()) }
            }
        }
        // The reason may be newer than the phase's, which follows it.
        if isAway, let error = driver.statuses.current.absence { throw error }
        if let error = phase.error { throw error }
    }

    private func enter(_ new: LivePhase, isAway: Bool = false, awaitsFiles: Bool = false) {
        (self.isAway, self.awaitsFiles) = (isAway, awaitsFiles)
        if new != phase { phase = new }
        guard new != .loading else { return }
        // Also resumes callers that began to wait while a connection was being made that failed for the same reason as the one before.
        for continuation in waiting.values { continuation.resume() }
        waiting = [:]
    }
}

extension Duration {
    /// How long to wait before asking the server again: at least as long as it says, and twice as long after each failure.
    ///
    /// - Parameters:
    ///   - failures: How many times in a row it was asked in vain.
    ///   - first: The first wait, in milliseconds.
    static func pause(after error: any Error, failures: Int, first: Int64) -> Duration {
        let asked = (error as? RoostError)?.retryAfterMilliseconds ?? 0
        // Whatever the server says, it is asked again within the hour.
        return .milliseconds(min(max(asked, first << min(failures, 7)), 3_600_000))
    }

    /// How long to wait before a request that many clients were prompted to make at once.
    ///
    /// - Parameter random: A random number.
    static func spread(_ random: UInt64) -> Duration { .milliseconds(500 + Int64(random % 4500)) }
}

extension ConnectionStatus {
    /// Whether an attempt to connect has failed, and none is under way.
    fileprivate var isGivenUpForNow: Bool {
        switch self {
        case .offline, .connecting, .online: false
        case .waiting, .refused, .failed: true
        }
    }
}
