public import RoostAPI

/// Work to do after a commit or at a time: a row written by the same transaction. It is therefore done if and only if the
/// transaction commits, even if the server stops in between.
public struct Effect: Hashable, Sendable {
    public var kind: EffectKind.Name
    /// The effect's subject: at most one effect per kind and key is queued.
    public var key: String
    /// Data that only its kind understands.
    public var payload: String
    /// When it is due. Once it has been started: when its lease expires.
    public var dueAt: Timestamp
    /// Changes with each request: a run started before a newer request doesn't complete that request.
    var revision: Int64
    /// How often it has been started so far.
    public var attempts: Int

    /// The maximum characters of a key, and bytes of a payload.
    public static let keyLengthMax = Limits.effectKeyLength
    public static let payloadBytesMax = 65_536
}

/// How effects of one name run. Kinds are declared once, in `EffectKinds.all`.
public struct EffectKind: Sendable {
    public struct Name: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public var description: String { rawValue }
    }

    public let name: Name
    /// The number of failures after which it isn't retried and is listed as dead.
    public var attemptsMax: Int = 12
    /// The streams that ``run`` may move.
    public var scope: @Sendable (Effect) -> Scope = { _ in Scope() }
    /// Runs exactly once, in the transaction that deletes the effect. A kind with an action outside the database performs that
    /// beforehand, at least once, and passes on its outcome.
    public var run: @Sendable (_ effect: Effect, _ outcome: String, _ context: inout Context) throws -> Void

    // derived: init (_ name)
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        _ name: Name, attemptsMax: Int = 12, scope: @escaping @Sendable (Effect) -> Scope = { _ in Scope() },
        run: @escaping @Sendable (_ effect: Effect, _ outcome: String, _ context: inout Context) throws -> Void
    ) {
        self.name = name
        self.attemptsMax = attemptsMax
        self.scope = scope
        self.run = run
    }

    /// The most seconds that an effect can be leased for.
    public static let leaseSecondsMax = 60

    /// Returns the seconds until a retry after a number of failures: 1, 2, 4 and so on, at most an hour.
    public static func pauseSeconds(after attempts: Int) -> Int { attempts > 12 ? 3600 : min(1 << max(0, attempts - 1), 3600) }
}

/// The kinds that this server knows. An effect of another kind, written by a newer version, waits for that version.
public enum EffectKinds {
    public static let all: [EffectKind] = [
        .expireIdempotencyKeys, .forgetVersions, .markMemberships, .push, .unmuteNotifications,
    ]
}

// MARK: Scheduling effects

extension Context {
    /// Schedules an effect for a time. It replaces a queued effect of the same kind and key, dead or not.
    ///
    /// - Throws: `internal_error` for a key or payload past their limits, which are the rule's own.
    public mutating func schedule(_ kind: EffectKind.Name, key: String, payload: String = "", at time: Timestamp) throws {
        try insertEffect(.effect, kind, key, payload, at: time)
    }

    /// Schedules an effect unless one of the kind and key exists already. That one stays unchanged, dead or not.
    ///
    /// It locks nothing if one exists, so operations that request the same effect don't block one another.
    public mutating func scheduleUnlessQueued(_ kind: EffectKind.Name, key: String, payload: String = "", at time: Timestamp) throws
    {
        try insertEffect(.effectUnlessQueued, kind, key, payload, at: time, isReplacing: false)
    }

    /// The same, but moves an effect that is queued for after a limit: it was requested while the clock was ahead, and would wait until the clock
    /// gets there, and every later request with it.
    ///
    /// Normally it finds none, and so locks none.
    ///
    /// - Parameter latest: The latest time that a request made now can be for.
    mutating func scheduleUnlessQueued(
        _ kind: EffectKind.Name, key: String, payload: String = "", at time: Timestamp, movingFromAfter latest: Timestamp
    ) throws {
        // An effect that has been started waits for its retry or for the end of its lease: an hour at most, and minutes.
        let latestAgain = latest.after(seconds: 2 * EffectKind.pauseSeconds(after: .max))
        try transaction.bypassingBatchMemory {
            try transaction.perform(
                """
                UPDATE effects SET due_at = \(time)
                WHERE kind = \(kind.rawValue) AND effect_key = \(key) AND dead_at IS NULL AND due_at > \(latest)
                      AND (attempts = 0 OR due_at > \(latestAgain))
                """)
        }
        try scheduleUnlessQueued(kind, key: key, payload: payload, at: time)
    }

    /// Schedules an effect for a time, unless one of the kind and key is queued for an earlier time, which stays unchanged. A dead one is replaced.
    ///
    /// Where several nodes write, it locks an existing effect: effects that many operations request at once have several keys.
    mutating func scheduleAtLatest(_ kind: EffectKind.Name, key: String, payload: String = "", at time: Timestamp) throws {
        try insertEffect(.effectAtLatest, kind, key, payload, at: time)
    }

    private mutating func insertEffect(
        _ row: NewRow.Kind, _ kind: EffectKind.Name, _ key: String, _ payload: String, at time: Timestamp, isReplacing: Bool = true
    ) throws {
        guard key.count <= Effect.keyLengthMax, payload.utf8.count <= Effect.payloadBytesMax else {
            throw RoostError(.internalError, "An effect of the kind \(kind) exceeds the limit of its key or payload.")
        }
        let revision = ids.next(at: now).rawValue
        let values: [SQLValue] = [
            .text(kind.rawValue), .text(key), .text(payload), .integer(time.milliseconds), .integer(revision), .integer(0),
        ]
        // Rows that replace nothing may share a key within a statement.
        let name = isReplacing ? "\(kind.rawValue)\n\(key)" : "\(kind.rawValue)\n\(key)\n\(revision)"
        try transaction.bypassingBatchMemory { try transaction.insert(NewRow(row, values), named: name) }
        noteEffect(dueAt: time)
    }
}

extension NewRow.Kind {
    private static let effects: SQL = "effects (kind, effect_key, payload, due_at, revision, attempts)"
    private static let replacing: SQL = """
        ON CONFLICT (kind, effect_key) DO UPDATE SET payload = excluded.payload, due_at = excluded.due_at, revision = excluded.revision, attempts = 0,
        failure = NULL, dead_at = NULL
        """

    /// Replaces the queued effect.
    fileprivate static let effect = NewRow.Kind(into: effects, replacing)
    fileprivate static let effectUnlessQueued = NewRow.Kind(into: effects, unlessTaken: "kind, effect_key")
    /// Replaces an effect that is queued for a later time, or dead.
    fileprivate static let effectAtLatest = NewRow.Kind(
        into: effects, "\(replacing) WHERE effects.dead_at IS NOT NULL OR effects.due_at > excluded.due_at")
}

// MARK: Running effects

extension Effect {
    /// Whether it is due.
    ///
    /// Pushes are requested for at once. One that is later than any request, pause or lease could make it dates from before the clock was set back,
    /// and doesn't wait until the clock gets there again. If another node has leased it, it is performed twice.
    fileprivate func isDue(at now: Timestamp) -> Bool {
        if dueAt <= now { return true }
        guard kind == .push else { return false }
        let longest = attempts == 0 ? 0 : max(EffectKind.pauseSeconds(after: attempts), EffectKind.leaseSecondsMax)
        // Transactions of one moment may differ a little.
        return dueAt > now.after(seconds: longest + 1)
    }
}

extension Transaction {
    /// Returns due effects of some kinds, and when the next of the others is due. Those longest due come first, whatever their
    /// kind, so many of one kind don't hold up the others.
    ///
    /// - Parameter limit: The most of each kind.
    public func effectsDue(
        of kinds: [EffectKind.Name], at now: Timestamp, limit: Int
    ) throws -> (due: [Effect], next: Timestamp?) {
        var due: [Effect] = []
        var next: Timestamp?
        for kind in kinds {
            let sql: SQL = """
                SELECT effect_key, payload, due_at, revision, attempts FROM effects
                WHERE kind = \(kind.rawValue) AND dead_at IS NULL ORDER BY due_at LIMIT \(Int64(limit) + 1)
                """
            let oldest = try rows(sql) { row in
                Effect(
                    kind: kind, key: row.string(), payload: row.string(), dueAt: row.timestamp(), revision: row.int64(),
                    attempts: row.int())
            }
            due += oldest.lazy.filter { $0.isDue(at: now) }.prefix(limit)
            if let waiting = oldest.first(where: { !$0.isDue(at: now) }) { next = min(next ?? waiting.dueAt, waiting.dueAt) }
        }
        due.sort { $0.dueAt < $1.dueAt }
        return (due, next)
    }

    /// Returns the state of effects for operators.
    public func effectsState(of kinds: [EffectKind.Name], at now: Timestamp) throws -> EffectsState {
        var state = EffectsState()
        state.deadCount = try first("SELECT COUNT(*) FROM effects WHERE dead_at IS NOT NULL") { $0.int() } ?? 0
        let sql: SQL = "SELECT kind, effect_key, failure FROM effects WHERE dead_at IS NOT NULL ORDER BY dead_at DESC LIMIT 1"
        state.lastDead = try first(sql) { "\($0.string()) \($0.string()): \($0.optionalString() ?? "unknown")" }
        let (due, _) = try effectsDue(of: kinds, at: now, limit: 1)
        state.lateMilliseconds = max(0, due.map { now.milliseconds - $0.dueAt.milliseconds }.max() ?? 0)
        // Skips from kind to kind in the index, past any number of effects.
        var kind = try first("SELECT MIN(kind) FROM effects") { $0.optionalString() } ?? nil
        while let found = kind {
            if !kinds.contains(where: { $0.rawValue == found }) { state.unknownKinds.append(found) }
            kind = try first("SELECT MIN(kind) FROM effects WHERE kind > \(found)") { $0.optionalString() } ?? nil
        }
        return state
    }
}

/// The state of effects for operators.
public struct EffectsState: Hashable, Sendable {
    /// Effects that failed permanently and aren't retried.
    public var deadCount = 0
    /// The kind and key of the newest of them, and the reason of its failure.
    public var lastDead: String?
    /// How long the oldest due effect has been waiting.
    public var lateMilliseconds: Int64 = 0
    /// Kinds that this version doesn't know: their effects wait for a version that does.
    public var unknownKinds: [String] = []
}

extension Context {
    /// Leases an effect until `leaseEnd`. Returns nil if another runner has it, or if it is no longer requested.
    public func lease(_ effect: Effect, until leaseEnd: Timestamp) throws -> Effect? {
        let leased = try transaction.execute(
            """
            UPDATE effects SET attempts = attempts + 1, due_at = \(leaseEnd)
            WHERE kind = \(effect.kind.rawValue) AND effect_key = \(effect.key) AND revision = \(effect.revision)
                  AND attempts = \(Int64(effect.attempts)) AND dead_at IS NULL
            """)
        guard leased == 1 else { return nil }
        var effect = effect
        effect.attempts += 1
        effect.dueAt = leaseEnd
        return effect
    }

    /// Deletes an effect and runs its kind in the database. Returns false if another runner has done so, or holds it now.
    public mutating func finish(_ effect: Effect, _ outcome: String = "", as kind: EffectKind) throws -> Bool {
        let ended = try transaction.execute(
            """
            DELETE FROM effects
            WHERE kind = \(effect.kind.rawValue) AND effect_key = \(effect.key) AND revision = \(effect.revision)
                  AND attempts = \(Int64(effect.attempts)) AND dead_at IS NULL
            """)
        guard ended == 1 else { return false }
        try kind.run(effect, outcome, &self)
        return true
    }

    /// Records a failure of an effect: it is retried after a pause, or becomes dead.
    ///
    /// - Parameters:
    ///   - attempts: How often it has failed, including this time.
    ///   - reason: Shown to operators, so without secrets.
    /// - Returns: Whether it is dead now.
    @discardableResult
    public mutating func recordFailure(of effect: Effect, attempts: Int, reason: String, as kind: EffectKind) throws -> Bool {
        let isDead = attempts >= kind.attemptsMax
        let again = Timestamp(milliseconds: now.milliseconds + Int64(EffectKind.pauseSeconds(after: attempts)) * 1000)
        let changed = try transaction.execute(
            """
            UPDATE effects SET attempts = \(Int64(attempts)), due_at = \(again), failure = \(String(reason.prefix(500))),
                dead_at = \(isDead ? now : nil)
            WHERE kind = \(effect.kind.rawValue) AND effect_key = \(effect.key) AND revision = \(effect.revision)
                  AND attempts = \(Int64(effect.attempts)) AND dead_at IS NULL
            """)
        if !isDead, changed == 1 { noteEffect(dueAt: again) }
        return isDead && changed == 1
    }

    /// Makes a dead effect due now, as if requested again. One that isn't dead stays unchanged.
    ///
    /// - Returns: Whether there is such an effect.
    mutating func retryEffect(kind: String, key: String) throws -> Bool {
        let revived = try transaction.execute(
            """
            UPDATE effects SET due_at = \(now), revision = \(ids.next(at: now).rawValue), attempts = 0, failure = NULL, dead_at = NULL
            WHERE kind = \(kind) AND effect_key = \(key) AND dead_at IS NOT NULL
            """)
        if revived == 1 {
            noteEffect(dueAt: now)
            return true
        }
        let sql: SQL = "SELECT 1 FROM effects WHERE kind = \(kind) AND effect_key = \(key)"
        return try transaction.first(sql) { $0.int64() } != nil
    }
}
