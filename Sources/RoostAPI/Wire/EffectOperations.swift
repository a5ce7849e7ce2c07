/// Something that was to happen later and failed so often that it isn't tried any more. What it carries isn't shown.
public struct DeadEffect: Codable, Hashable, Sendable {
    /// What was to happen: `idempotencyKeys.expire`.
    public var kind: String
    /// What it is about: of one kind and key there is one at most. Empty for a kind of which there is only one.
    public var key: String
    /// How often it was tried.
    public var attempts: Int
    /// The code of its last error; `timeout` or `never_ended` if it didn't come to an end; the name of an error that has no code.
    public var failureCode: String
    /// When it was given up.
    public var deadAt: Timestamp

    // derived: init
    public init(kind: String, key: String, attempts: Int, failureCode: String, deadAt: Timestamp) {
        self.kind = kind
        self.key = key
        self.attempts = attempts
        self.failureCode = failureCode
        self.deadAt = deadAt
    }
}

/// Effects that failed too often, those that were given up last first.
public struct ListDeadEffects: Operation {
    public typealias Response = Page<DeadEffect>
    public static let name = "effect.listDead"
    public static let method = HTTPMethod.get
    public static let path = "/v1/effects/dead"
    public static let permission = Permission.effectManage
    public static let summary = "What failed too often to be tried again, paged. For admins."

    /// 1 to 100, 30 when left out.
    public var limit: Int?
    public var cursor: String?

    // derived: init
    public init(limit: Int? = nil, cursor: String? = nil) {
        self.limit = limit
        self.cursor = cursor
    }

    public func validate() throws(RoostError) {
        _ = try Limits.page(limit, Limits.effectPage)
        try Limits.check(cursor, length: Limits.cursorLength, field: "cursor")
    }
}

/// Has a dead effect happen now, with as many attempts before it as a new one. One that isn't dead waits already, and stays as it is: so a
/// retry can be repeated.
///
/// - Throws: `not_found` for an effect that isn't there: it was never asked for, or has happened.
public struct RetryEffect: Operation {
    public typealias Response = Done
    public static let name = "effect.retry"
    public static let method = HTTPMethod.post
    public static let path = "/v1/effects/retry"
    public static let permission = Permission.effectManage
    public static let summary = "Try something again that failed too often. For admins."

    public var kind: String
    public var key: String

    // derived: init
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
