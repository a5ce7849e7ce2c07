import Dispatch
import Logging
import RoostAPI
import RoostCore
import RoostDatabase
import Synchronization

/// Runs due effects: changes to the database exactly once, and work outside it at least once.
///
/// One thread looks for due effects, and only that blocks. Each effect then runs through the engine, as one of the server's own operations. An
/// effect of a kind with a performer is first leased: no other node starts it before the lease expires, and a runner that returns after its lease
/// can't complete the effect. The order of effects isn't kept.
final class EffectRunner: Sendable {
    typealias Performer = EffectSettings.Performer

    private struct Place: Hashable {
        let kind: EffectKind.Name
        let key: String
    }

    /// What the last successful look found, and when.
    private struct LastLook {
        var state: EffectsState?
        var at: ContinuousClock.Instant
    }

    private let engine: Engine
    private let database: any Database
    private let alarm: EffectAlarm
    private let kinds: [EffectKind.Name: EffectKind]
    private let settings: EffectSettings
    private let metrics: ServerMetrics
    private let logger: Logger
    private let pace = LogThrottle()
    private let threads = Threads()
    private let inFlight = Mutex<Set<Place>>([])
    private let lastLook: Mutex<LastLook>
    private let clock: @Sendable () -> ContinuousClock.Instant
    private let isStopping = Atomic<Bool>(false)

    /// How long effects may stay unread before they count as late. They are read about once a second.
    private static let unreadMax = Duration.seconds(5)

    /// - Parameter clock: The monotonic clock that measures how long effects couldn't be read.
    init(
        engine: Engine, database: any Database, alarm: EffectAlarm, settings: EffectSettings, metrics: ServerMetrics,
        logger: Logger, clock: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        self.engine = engine
        self.database = database
        self.alarm = alarm
        self.kinds = Dictionary(uniqueKeysWithValues: settings.kinds.map { ($0.name, $0) })
        self.settings = settings
        self.metrics = metrics
        self.logger = logger
        self.clock = clock
        lastLook = Mutex(LastLook(at: clock()))
    }

    func start() {
        lastLook.withLock { $0.at = clock() }
        threads.start("roost-effects") { [self] in
            var stateIsDue = ContinuousClock.now
            while !isStopping.load(ordering: .acquiring) { look(stateIsDue: &stateIsDue) }
        }
    }

    /// Stops starting effects. Those under way end with the engine, or run again after the next start. Blocks for a moment.
    func stop() {
        isStopping.store(true, ordering: .releasing)
        alarm.ring(at: Timestamp(milliseconds: .min))
        // Doesn't wait for a database that doesn't respond.
        _ = threads.wait(atMost: .milliseconds(200))
    }

    /// The state of effects for operators, at most a second old while the database responds. Nil before its first answer.
    var state: EffectsState? { lastLook.withLock { $0.state } }

    /// How long the oldest due effect has been waiting, as of ``state``. If effects can't be read, at least for how long already, from a few seconds
    /// on. Nil before the first answer, unless that takes as long.
    var lateMilliseconds: Int64? {
        let last = lastLook.withLock { $0 }
        let unread = clock() - last.at
        guard unread > Self.unreadMax else { return last.state?.lateMilliseconds }
        return max(last.state?.lateMilliseconds ?? 0, Int64(unread / .milliseconds(1)))
    }

    private var names: [EffectKind.Name] { kinds.keys.sorted { $0.rawValue < $1.rawValue } }

    // MARK: Looking

    private func look(stateIsDue: inout ContinuousClock.Instant) {
        alarm.reset()
        let now = database.now()
        do {
            let busy = inFlight.withLock { $0 }
            let isStateDue = ContinuousClock.now >= stateIsDue
            let (state, due, next) = try database.read { transaction -> (EffectsState?, [Effect], Timestamp?) in
                var state: EffectsState?
                if isStateDue { state = try transaction.effectsState(of: names, at: now) }
                // Effects under way may be among the first ones found.
                let (due, next) = try transaction.effectsDue(of: names, at: now, limit: settings.inFlightMax + busy.count)
                return (state, due, next)
            }
            lastLook.withLock { last in
                last.at = clock()
                if let state { last.state = state }
            }
            if isStateDue { stateIsDue = .now + .seconds(1) }
            for effect in due where !isStopping.load(ordering: .acquiring) {
                guard begin(effect) else { break }
            }
            // If the limit is reached, the alarm rings when an effect ends.
            alarm.sleep(until: next, now: now, atMost: settings.pollInterval)
        } catch {
            if pace.shouldLog() { note(error) }
            alarm.sleep(until: nil, now: now, atMost: settings.retryAfter)
        }
    }

    /// Logs why effects can't be read. Damage is counted once per line, since reading is tried again all the time.
    private func note(_ error: any Error) {
        let isDamage = (error as? DatabaseFailure)?.kind == .damage
        if isDamage { metrics.damaged() }
        logger.log(
            level: isDamage ? .error : .warning,
            isDamage
                ? "Due effects can't be read: a page of the database is damaged. Restore a backup."
                : "Due effects can't be read from the database.",
            metadata: ["error": "\(error)"])
    }

    /// - Returns: False if as many effects are under way as allowed.
    private func begin(_ effect: Effect) -> Bool {
        guard let kind = kinds[effect.kind] else { return true }
        let place = Place(kind: effect.kind, key: effect.key)
        let isFree: Bool? = inFlight.withLock { places in
            guard places.count < settings.inFlightMax else { return nil }
            // Leaves room for other kinds next to one whose outside work takes long.
            if settings.performers[effect.kind] != nil,
                places.count(where: { $0.kind == effect.kind }) >= settings.performedMax
            {
                return false
            }
            return places.insert(place).inserted
        }
        guard let isFree else { return false }
        guard isFree else { return true }
        if let performer = settings.performers[effect.kind] {
            lease(effect, of: kind, for: performer)
        } else {
            finish(effect, "", of: kind)
        }
        return true
    }

    /// Frees an effect's slot.
    private func end(_ effect: Effect, after pause: Duration = .zero) {
        let free: @Sendable () -> Void = { [self] in
            inFlight.withLock { _ = $0.remove(Place(kind: effect.kind, key: effect.key)) }
            alarm.ring(at: Timestamp(milliseconds: .min))
        }
        if pause == .zero { return free() }
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(Int(pause / .milliseconds(1))), execute: free)
    }

    // MARK: One effect

    private func lease(_ effect: Effect, of kind: EffectKind, for performer: @escaping Performer) {
        guard effect.attempts < kind.attemptsMax else {
            let reason = "never_ended: It was started \(effect.attempts) times and never finished."
            return recordFailure(of: effect, attempts: effect.attempts, reason, of: kind)
        }
        let answer = Answer<Effect?>(nil)
        let leaseMilliseconds = Int64(settings.performingTime * 2 / .milliseconds(1))
        submit(Scope()) { context in
            answer.value = try context.lease(effect, until: Timestamp(milliseconds: context.now.milliseconds + leaseMilliseconds))
        } then: { [self] result in
            switch result {
            case .failure: end(effect, after: settings.retryAfter)
            case .success:
                guard let leased = answer.value else { return end(effect) }
                Task { await perform(leased, of: kind, performer) }
            }
        }
    }

    private func perform(_ effect: Effect, of kind: EffectKind, _ performer: @escaping Performer) async {
        do {
            finish(effect, try await withinTime { try await performer(effect) }, of: kind)
        } catch {
            recordFailure(of: effect, attempts: effect.attempts, Self.reason(of: error), of: kind)
        }
    }

    /// Runs a performer with a time limit.
    private func withinTime(_ body: @escaping @Sendable () async throws -> String) async throws -> String {
        try await withThrowingTaskGroup(of: String.self) { group in
            group.addTask { try await body() }
            group.addTask { [settings] in
                try await Task.sleep(for: settings.performingTime)
                throw TimedOut()
            }
            defer { group.cancelAll() }
            guard let outcome = try await group.next() else { throw TimedOut() }
            return outcome
        }
    }

    private struct TimedOut: Error {}

    private func finish(_ effect: Effect, _ outcome: String, of kind: EffectKind) {
        let answer = Answer(false)
        let refusal = Answer<RoostError?>(nil)
        submit(kind.scope(effect)) { context in
            refusal.value = nil
            do {
                answer.value = try context.finish(effect, outcome, as: kind)
            } catch let error as RoostError {
                refusal.value = error
                throw error
            }
        } then: { [self] result in
            switch result {
            case .success:
                // Otherwise another node has done it.
                if answer.value { metrics.effect(effect.kind, .done) }
                end(effect)
            case .failure(let error) where refusal.value == nil && error.retryAfterMilliseconds != nil:
                // A failure of the engine says nothing about the effect; a refusal by its own rule does.
                end(effect, after: settings.retryAfter)
            case .failure(let error):
                // Leasing has already counted the attempt.
                let attempts = settings.performers[effect.kind] == nil ? effect.attempts + 1 : effect.attempts
                recordFailure(of: effect, attempts: attempts, Self.reason(of: error), of: kind)
            }
        }
    }

    private func recordFailure(of effect: Effect, attempts: Int, _ reason: String, of kind: EffectKind) {
        let answer = Answer(false)
        submit(Scope()) { context in
            answer.value = try context.recordFailure(of: effect, attempts: attempts, reason: reason, as: kind)
        } then: { [self] result in
            guard case .success = result else { return end(effect, after: settings.retryAfter) }
            metrics.effect(effect.kind, answer.value ? .dead : .failed)
            if answer.value {
                logger.error(
                    "An effect failed permanently and won't be retried.",
                    metadata: ["kind": "\(effect.kind)", "key": "\(effect.key)", "reason": "\(reason)"])
            }
            end(effect)
        }
    }

    /// Returns an error's description for operators: a code and a sentence. An error from another library may contain anything, so only its type is
    /// used.
    private static func reason(of error: any Error) -> String {
        switch error {
        case let error as RoostError: "\(error.code.rawValue): \(error.message)"
        case is TimedOut: "timeout: It took too long."
        default: "\(type(of: error))"
        }
    }

    private func submit(
        _ scope: Scope, _ run: @escaping @Sendable (inout Context) throws -> Void,
        then: @escaping @Sendable (Result<[UInt8], RoostError>) -> Void
    ) {
        let job = Job(
            .init(operation: OperationName.effect, scope: scope), caller: .server,
            run: {
                try run(&$0)
                return []
            }, destination: .waiting(then))
        do {
            try engine.submit(write: job)
        } catch {
            then(.failure(error))
        }
    }
}

/// A rule's result for the waiting caller: the rule may run more than once, and the last run counts.
private final class Answer<Value: Sendable>: Sendable {
    private let held: Mutex<Value>
    init(_ value: Value) { held = Mutex(value) }
    var value: Value {
        get { held.withLock { $0 } }
        set { held.withLock { $0 = newValue } }
    }
}
