import Observation
import RoostAPI

/// Keeps a live object up to date: it has the object's work done when something changes, one piece after another, as long as the object
/// exists, and knows how far it has come.
///
/// Work that begins later sees a later state, and its result is shown later. An object that can't read the store goes on showing what it
/// has; its phase and the log say why. It reads it again in a while, a bounded number of times, and with the next change.
@MainActor @Observable
final class Follower {
    /// How a piece of work ended.
    enum Outcome {
        case done
        /// The server, or a limit, refuses for good: the app has to know.
        case refused(RoostError)
        /// There will be another occasion: a connection, a change, or the same question in a while. Or the user has logged out meanwhile.
        case failed
    }

    /// How far the object has come.
    private(set) var phase = LivePhase.loading
    /// Whether the object has something to show, however far it has come since.
    @ObservationIgnored private(set) var hasAnswer = false
    /// Whether the user has logged out. What the server has told before isn't shown any more.
    @ObservationIgnored private(set) var hasEnded = false
    @ObservationIgnored private var waiting: [Int: CheckedContinuation<Void, any Error>] = [:]
    @ObservationIgnored private var lastWaiting = 0
    @ObservationIgnored private let driver: SyncDriver
    @ObservationIgnored private var following: ObservationToken?
    /// What asks soon, or within some seconds.
    @ObservationIgnored private var delayed: (task: Task<Void, Never>, isSpread: Bool)?
    @ObservationIgnored private var random: any RandomNumberGenerator & Sendable
    @ObservationIgnored private var turns = Turns()
    /// What asks the server: what changes meanwhile is shown without waiting for the answers.
    @ObservationIgnored private var questions = Turns()
    /// Whether it is unavailable because there is no connection.
    @ObservationIgnored private var isAway = false
    /// Whether it is unavailable because this device's files couldn't be opened, which is tried again when the app connects.
    @ObservationIgnored private var awaitsFiles = false
    @ObservationIgnored private var away: (@MainActor () async -> Bool)?
    /// Has the server asked once more.
    @ObservationIgnored private var connected: (@MainActor () async -> Void)?
    @ObservationIgnored private var askingAgain: Task<Void, Never>?
    /// How often in a row the server couldn't answer.
    @ObservationIgnored private var failures = 0
    /// Whether a change couldn't be looked at.
    @ObservationIgnored private var hasMissedChange = false
    @ObservationIgnored private var changed: (@MainActor (StoreChange) async -> Void)?
    /// What came with changes for which the store couldn't be read.
    @ObservationIgnored private var missed = StoreChange()
    /// How often the store couldn't be read.
    @ObservationIgnored private var failedReads = 0
    @ObservationIgnored private var readingAgain: Task<Void, Never>?
    /// How often the store was read again in vain since it could be read.
    @ObservationIgnored private var rereads = 0
    private static let rereadsMax = 8
    /// Users whom the object shows, as it has said, each with the version that was known.
    @ObservationIgnored private var shown: [UserID: Int64] = [:]

    init(_ driver: SyncDriver) {
        self.driver = driver
        random = driver.environment.random
    }

    /// Follows a topic until this object is released.
    ///
    /// - Parameters:
    ///   - connected: Called when there is a connection, and everything that was missed is stored. It gets no turn: it may ask the server.
    ///   - away: Called when there is no connection and no answer yet, to show what is known. Returns whether only the server has the answer, so
    ///     that the object is unavailable.
    ///   - ended: Takes its turn when the user has logged out, to forget what the server has answered. The object is loaded then, as one that reads
    ///     the store is.
    ///   - changed: Called with everything at once, then with each change. If the store can't be read in ``work(isQuestion:asksServer:_:)``, it is called again in a
    ///     while, with what the change was about and everything.
    ///   - failed: Called when this device's files can't be opened, each time that was tried.
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
                self?.showAgain()
                await connected?()
            }, away: away == nil ? nil : absent,
            failed: { [weak self] error in
                failed?()
                self?.enter(.unavailable(error), awaitsFiles: true)
            },
            changed: { [weak self] change in
                // With another history, or another file, users who were known aren't.
                if change.isEverything { self?.shown = [:] }
                if change.isEnd { await self?.end(ended) }
                await self?.look(at: change)
            })
    }

    /// Has the object look at a change, and at what it couldn't read before.
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

    /// Has what couldn't be read looked at once more in a while. After several times in vain, the next change is the next occasion.
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

    /// Follows a topic, and has a step take its turn for everything at once and then for each change. What came with a change for which that failed is only found by
    /// looking at everything: the next change is one of everything.
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

    /// Has a step take its turn.
    ///
    /// - Parameters:
    ///   - isQuestion: Whether it asks for what the object shows, so that its success ends an earlier refusal.
    ///   - asksServer: Whether it waits for the server, and so takes its turn among what does. What it makes of the answer it does in a ``turn(_:)``.
    @discardableResult
    func work(
        isQuestion: Bool = true, asksServer: Bool = false, _ step: @escaping @MainActor () async throws -> Void
    ) async -> Outcome {
        let hadEnded = hasEnded
        do {
            try await (asksServer ? questions : turns).take(step)
            switch phase {
            case .refused where isQuestion, .unavailable where !isAway: enter(hasAnswer ? .loaded : .loading)
            case .refused, .unavailable, .loading, .loaded: break
            }
            if isQuestion {
                askingAgain?.cancel()
                (failures, askingAgain) = (0, nil)
            }
            return .done
        } catch let error as RoostError {
            // The user has logged out meanwhile: the object shows that, and not what becomes of what was asked before.
            guard hasEnded == hadEnded else { return .failed }
            guard !error.isRetryable else {
                if isQuestion { askAgain(after: error) }
                return .failed
            }
            enter(.refused(error))
            return .refused(error)
        } catch is CancellationError {
            return .failed
        } catch {
            if let error = driver.thrown(error) as? RoostError { enter(.unavailable(error)) }
            readAgain(after: error)
            return .failed
        }
    }

    /// Whether the server is asked once more in a while.
    var isAskingAgain: Bool { askingAgain != nil }

    /// Asks once more in a while what the server couldn't answer now, as long as the connection lasts: the next one asks by itself.
    private func askAgain(after error: RoostError) {
        guard let connected, askingAgain == nil, driver.statuses.current == .online else { return }
        let pause = Duration.pause(after: error, failures: failures, first: 500)
        failures += 1
        let clock = driver.environment.clock
        askingAgain = Task { [weak self] in
            try? await clock.sleep(for: pause)
            guard !Task.isCancelled, let driver = self?.driver else { return }
            self?.askingAgain = nil
            if driver.statuses.current == .online { await connected() }
        }
    }

    /// Has a part of work that asks the server take its turn among what changes the object. Does nothing once the user has logged out.
    ///
    /// - Throws: What it throws.
    func turn(_ step: @escaping @MainActor () async throws -> Void) async throws {
        try await turns.take { [weak self] in if self?.hasEnded == false { try await step() } }
    }

    /// Has a step of the app's take its turn. One that asks the server is cancelled with the caller's task. One that reads this device's files isn't: it is done
    /// in a moment, and what it changes has to be whole.
    ///
    /// - Parameter asksServer: As for ``work(isQuestion:asksServer:_:)``.
    /// - Throws: The `RoostError` that it throws, and one with `unavailable` if the store can't be read; `CancellationError` if it asks the server.
    func take(asksServer: Bool, _ step: @escaping @MainActor () async throws -> Void) async throws {
        do {
            if asksServer { try await questions.takeUnlessCancelled(step) } else { try await turns.take(step) }
        } catch {
            throw driver.thrown(error)
        }
    }

    /// Calls back in a moment, once for all that ask until then: several events cost one question to the server.
    ///
    /// What was to be done within some seconds isn't needed any more.
    func soon(_ work: @escaping @MainActor () async -> Void) {
        if let delayed {
            guard delayed.isSpread else { return }
            delayed.task.cancel()
        }
        delayed = (delay(work, by: .milliseconds(250)), isSpread: false)
    }

    /// Calls back within some seconds, once for all that ask until then, unless something calls back sooner: a signal has given many clients a reason to ask, and they
    /// mustn't all do so at the same moment.
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

    /// Has it learned from the server what is shown of users, if that has changed: each is named once, however often the object shows them.
    func shows(_ users: some Sequence<UserSummary>) {
        var new: [UserID: Int64] = [:]
        // A user often has the next row as well, and looking into a set takes longer.
        var last: UserID?
        for user in users where user.userId != last {
            last = user.userId
            if shown[user.userId] == nil { new[user.userId] = user.version }
        }
        shows(new)
    }

    /// The same of users with the versions of what the object shows; 0 for one of whom only the id is known.
    func shows(_ users: [UserID: Int64]) {
        let new = users.filter { shown[$0.key] == nil }
        guard !new.isEmpty else { return }
        if shown.count >= Sync.UserQuestions.rememberedMax { shown = [:] }
        shown.merge(new) { _, latest in latest }
        let driver = driver
        Task { await driver.submit(.show(new)) }
    }

    /// With another connection, whoever is shown may have changed.
    private func showAgain() {
        guard !shown.isEmpty else { return }
        let (driver, shown) = (driver, shown)
        Task { await driver.submit(.show(shown)) }
    }

    // MARK: Phases

    /// Says that the object shows an answer now. A refusal, or a failure, that came after it is ended by the next work that succeeds.
    func answered() {
        hasAnswer = true
        if phase == .loading || isAway { enter(.loaded) }
    }

    /// Says that there is no connection, if that is so and the object waits for an answer of the server.
    func lookForConnection() async { await go(away: driver.statuses.current.absence) }

    /// There is no connection to answer the object, or one is being made if there is no reason.
    private func go(away error: RoostError?) async {
        guard let away, phase == .loading || isAway else { return }
        guard let error else { return enter(.loading) }
        guard await away(), phase == .loading || isAway else { return }
        enter(.unavailable(error), isAway: true)
    }

    /// Says that the object was asked for something else. What it shows stays until there is an answer.
    func askedAnew() { enter(.loading) }

    /// Cancels the work that is under way, because the object was asked for something else: the work for that doesn't wait for it.
    func abandonWork() {
        turns.cancel()
        questions.cancel()
        (turns, questions) = (Turns(), Turns())
        askingAgain?.cancel()
        (failures, askingAgain) = (0, nil)
    }

    /// Says that the object won't be asked for.
    func refused(_ error: RoostError) { enter(.refused(error)) }

    private var isUnanswered: Bool {
        phase == .loading || isAway && !driver.statuses.current.isGivenUpForNow || awaitsFiles && driver.statuses.current.isUnderWay
    }

    /// Returns once there is an answer.
    ///
    /// - Throws: The error of the phase; `CancellationError`.
    func loaded() async throws {
        // A connection that is being made, or that the app hasn't asked for yet, is waited for.
        while isUnanswered {
            lastWaiting += 1
            let number = lastWaiting
            try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                    // A task that has an executor of its own goes through that on its way here: the answer, or the end of the task, may have come.
                    if Task.isCancelled { return continuation.resume(throwing: CancellationError()) }
                    guard isUnanswered else { return continuation.resume() }
                    waiting[number] = continuation
                }
            } onCancel: {
                Task { @MainActor in waiting.removeValue(forKey: number)?.resume(throwing: CancellationError()) }
            }
        }
        // The reason may be a newer one than that of the phase, which follows.
        if isAway, let error = driver.statuses.current.absence { throw error }
        if let error = phase.error { throw error }
    }

    private func enter(_ new: LivePhase, isAway: Bool = false, awaitsFiles: Bool = false) {
        (self.isAway, self.awaitsFiles) = (isAway, awaitsFiles)
        if new != phase { phase = new }
        guard new != .loading else { return }
        // Also whoever began to wait while a connection was being made that failed as the one before did.
        for continuation in waiting.values { continuation.resume() }
        waiting = [:]
    }
}

extension Duration {
    /// How long to wait before the server is asked again: as long as it says, and twice as long from one time to the next.
    ///
    /// - Parameters:
    ///   - failures: How often in a row it was asked in vain before.
    ///   - first: The first wait, in milliseconds.
    static func pause(after error: any Error, failures: Int, first: Int64) -> Duration {
        let asked = (error as? RoostError)?.retryAfterMilliseconds ?? 0
        // Whatever a server says, it is asked within the hour.
        return .milliseconds(min(max(asked, first << min(failures, 7)), 3_600_000))
    }

    /// How long to wait before asking what many clients were told at once to ask.
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
