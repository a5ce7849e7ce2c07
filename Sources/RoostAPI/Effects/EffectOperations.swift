/// A scheduled effect that failed too often to be retried. Its payload isn't shown.
public struct DeadEffect: Codable, Hashable, Sendable {
    /// The kind of the effect: `idempotencyKeys.expire`.
    public var kind: String
    /// Its subject: there is at most one effect of a kind and key. Empty for a kind with only one effect.
    public var key: String
    /// The number of attempts.
    public var attempts: Int
    /// The code of its last error; `timeout` or `never_ended` if it didn't end; an error's name if it has no code.
    public var failureCode: String
    /// When it was given up.
    public var deadAt: Timestamp

    // derived: init
    /// Creates a value with these fields.
    public init(kind: String, key: String, attempts: Int, failureCode: String, deadAt: Timestamp) {
        self.kind = kind
        self.key = key
        self.attempts = attempts
        self.failureCode = failureCode
        self.deadAt = deadAt
    }
}

extension DeadEffect: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("kind", kind)
        json.member("key", key)
        json.member("attempts", attempts)
        json.member("failureCode", failureCode)
        json.member("deadAt", deadAt)
        json.endObject()
    }
}

/// Returns permanently failed effects, the latest first.
public struct ListDeadEffects: Operation {
    public typealias Response = Page<DeadEffect>
    public static let name = "effect.listDead"
    public static let method = HTTPMethod.get
    public static let path = "/v1/effects/dead"
    public static let permission = Permission.effectManage
    public static let summary = "List permanently failed effects, the latest first. For admins."

    /// 1 to 100, 30 when left out.
    public var limit: Int?
    /// Where the page begins: the `nextCursor` of the page before. The first page when left out.
    public var cursor: String?

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(limit: Int? = nil, cursor: String? = nil) {
        self.limit = limit
        self.cursor = cursor
    }

    public func validate() throws(RoostError) {
        _ = try Limits.page(limit, Limits.effectPage)
        try Limits.check(cursor, length: Limits.cursorLength, field: "cursor")
    }
}

/// Makes a dead effect due now, with as many attempts as a new one. An effect that isn't dead is already waiting and stays unchanged, so
/// this call can safely be repeated.
///
/// - Throws: `not_found` for an effect that doesn't exist: it was never requested, or has run.
public struct RetryEffect: Operation {
    public typealias Response = Done
    public static let name = "effect.retry"
    public static let method = HTTPMethod.post
    public static let path = "/v1/effects/retry"
    public static let permission = Permission.effectManage
    public static let summary = "Retry a dead effect. For admins."

    /// Its kind, as `effect.listDead` names it.
    public var kind: String
    /// Its key among those of its kind.
    public var key: String

    // derived: init
    /// Creates a value with these fields.
    public init(kind: String, key: String) {
        self.kind = kind
        self.key = key
    }

    public func validate() throws(RoostError) {
        guard !kind.isEmpty else { throw .invalidArgument("kind", "must not be empty") }
        try Limits.check(kind, length: Limits.effectKindLength, field: "kind")
        try Limits.check(key, length: Limits.effectKeyLength, field: "key")
    }
}
