public import RoostAPI

/// The streams that an operation may move, or whose state its answer relies on.
///
/// An engine with several writers runs operations that share a channel one after another, and locks the heads of all of these
/// streams before the rules run: channels first, then users, each in the order of their ids, so no two transactions wait for
/// each other.
public struct Scope: Hashable, Sendable {
    public var channels: Set<ChannelID> = []
    public var users: Set<UserID> = []

    /// Whether the operation may also move the streams of users that it only finds in the rows: the sender of an invitation,
    /// say. Their heads are locked as they are found, so in rare cases two transactions deadlock. With PostgreSQL's default
    /// `deadlock_timeout`, 1 s, they wait half a second, and their operations are set aside and retried; with one below 500 ms
    /// the database makes one of them start over at once.
    public var findsUsers: Bool = false

    /// The subjects whose access the operation changes: none of their operations commits concurrently, on any node.
    public var access: Set<AccessSubject> = []

    /// Whether the operation changes an app's own type or role, which the rules of any channel may depend on: no other
    /// operation commits concurrently, on any node.
    public var changesRules: Bool = false

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        channels: Set<ChannelID> = [], users: Set<UserID> = [], findsUsers: Bool = false, access: Set<AccessSubject> = [],
        changesRules: Bool = false
    ) {
        self.channels = channels
        self.users = users
        self.findsUsers = findsUsers
        self.access = access
        self.changesRules = changesRules
    }

    /// The scope of an operation that changes an app's own types or roles.
    public static let rules = Scope(changesRules: true)

    /// The same for a caller, but empty if the rule refuses the caller, since all others wait for such an operation.
    static func changingRules(for caller: Caller) -> Scope {
        Permissions.refusal(of: .configManage, for: caller.role) == nil ? .rules : Scope()
    }

    /// Whether the operation's transaction runs alone.
    public var isExclusive: Bool { changesRules || !access.isEmpty }

    /// Returns the scope of a channel named by its id or as `type:id`.
    public static func channel(_ channel: ChannelID, users: Set<UserID> = []) -> Scope {
        var scope = Scope(channels: [channel], users: users)
        if let alias = channel.alias { scope.channels.insert(alias.channel) }
        return scope
    }
    public static func user(_ user: UserID) -> Scope { Scope(users: [user]) }
    public static func channel(_ channel: ChannelID, user: UserID) -> Scope { .channel(channel, users: [user]) }

    /// The same scope, for an operation that may also move the streams of users that it only finds in the rows.
    public var findingUsers: Scope {
        var scope = self
        scope.findsUsers = true
        return scope
    }

    /// One name for the scope's channel, whether the operation names it `N`, `type:N` or, when creating it, both; nil for an
    /// operation without a channel. Of several channels it is the least: the operation has no order of arrival with operations
    /// on the others.
    ///
    /// Operations with the same name here run one after another, in the order of arrival.
    public var orderingChannel: ChannelID? { channels.lazy.map { $0.withoutTypes }.min() }

    public mutating func formUnion(_ other: Scope) {
        channels.formUnion(other.channels)
        users.formUnion(other.users)
        findsUsers = findsUsers || other.findsUsers
        access.formUnion(other.access)
        changesRules = changesRules || other.changesRules
    }

    /// Locks the heads until the transaction ends. Does nothing if there is one writer. A head that doesn't exist yet isn't
    /// locked: if two transactions create it, the second waits for the first at its primary key. A transaction that finds it
    /// created by another in the meantime is run again (``HeldStreams``).
    public func lock(in transaction: any Transaction) throws {
        guard let rowLock = transaction.dialect.rowLock else { return }
        let held = transaction.heldStreams
        let askedAfter = held?.operationCount
        for part in channels.map(\.rawValue).sortedByBytes().chunked(by: Self.locksPerStatement) {
            try transaction.perform(
                "SELECT channel_id FROM channel_heads WHERE channel_id IN (\(list: part)) ORDER BY channel_id \(rowLock)"
            ) { held?.insert(.channel($0.identifier()), askedAfter: askedAfter) }
        }
        for part in users.map(\.rawValue).sortedByBytes().chunked(by: Self.locksPerStatement) {
            try transaction.perform(
                "SELECT user_id FROM user_heads WHERE user_id IN (\(list: part)) ORDER BY user_id \(rowLock)"
            ) { held?.insert(.user($0.identifier()), askedAfter: askedAfter) }
        }
    }

    /// Returns the streams whose heads another transaction has locked, without waiting.
    public func occupied(in transaction: any Transaction) throws -> Scope {
        var occupied = Scope()
        guard let rowLock = transaction.dialect.rowLock else { return occupied }
        for part in channels.map(\.rawValue).sortedByBytes().chunked(by: Self.locksPerStatement) {
            let all: [ChannelID] = try transaction.rows(
                "SELECT channel_id FROM channel_heads WHERE channel_id IN (\(list: part))"
            ) { $0.identifier() }
            let free: [ChannelID] = try transaction.rows(
                "SELECT channel_id FROM channel_heads WHERE channel_id IN (\(list: part)) ORDER BY channel_id \(rowLock) SKIP LOCKED"
            ) { $0.identifier() }
            occupied.channels.formUnion(Set(all).subtracting(free))
        }
        for part in users.map(\.rawValue).sortedByBytes().chunked(by: Self.locksPerStatement) {
            let all: [UserID] = try transaction.rows(
                "SELECT user_id FROM user_heads WHERE user_id IN (\(list: part))"
            ) { $0.identifier() }
            let free: [UserID] = try transaction.rows(
                "SELECT user_id FROM user_heads WHERE user_id IN (\(list: part)) ORDER BY user_id \(rowLock) SKIP LOCKED"
            ) { $0.identifier() }
            occupied.users.formUnion(Set(all).subtracting(free))
        }
        return occupied
    }

    public func intersects(_ other: Scope) -> Bool {
        !channels.isDisjoint(with: other.channels) || !users.isDisjoint(with: other.users)
    }

    private static let locksPerStatement = 512
}

extension [String] {
    /// Sorts like a database that compares text by its bytes.
    fileprivate func sortedByBytes() -> [String] { sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) } }
}

extension Array {
    package func chunked(by size: Int) -> [ArraySlice<Element>] {
        stride(from: 0, to: count, by: size).map { self[$0..<Swift.min($0 + size, count)] }
    }
}
