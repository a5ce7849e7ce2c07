import RoostAPI
import RoostCore
import RoostDatabase
import Synchronization

/// Keeps out callers whose user is deactivated, whose token is revoked or whose device was signed out, in the order of commits.
///
/// It remembers only the subjects whose access has ever changed, as one number each; for these it asks the database, in the operation's
/// transaction. Operations of all others cost one lookup in a set, which is empty on most servers.
///
/// - A subject is put into the set before the operation that changes its access runs, so later operations of the same batch are already checked.
/// - With several writers each transaction also reads the number of the newest change, and learns the changes of other nodes. A writing transaction
///   holds a lock that a change of access waits for: once that change has committed, no further operation of the user commits.
final class AccessGate: Sendable {
    fileprivate struct State {
        var revision: Int64
        /// Users by their hash. A collision costs a query.
        var users: Set<Int> = []
        /// Tokens, and the time when each may be forgotten.
        var tokens: [Int: Timestamp] = [:]
        /// Signed-out devices, likewise.
        var devices: [Int: Timestamp] = [:]
        var prunedAbove: Int
        /// The clock of revocations.
        let now: @Sendable () -> Timestamp
        let tokensKeptMin: Int
        let expiredTokensMax: Int
    }

    private let state: Mutex<State>
    private let epoch: String?

    /// The database's epoch was renewed while a server was running, which still holds positions of the old one.
    struct EpochRenewed: Error, CustomStringConvertible {
        var description: String { "The database has a new epoch, and this server holds positions of the old one." }
    }

    /// Loads all changes so far.
    ///
    /// - Parameters:
    ///   - tokensKeptMin: How many revoked tokens and signed-out devices are kept before expired ones are searched for.
    ///   - expiredTokensMax: How many expired ones of the tokens are kept then, as in the database.
    init(_ database: any Database, tokensKeptMin: Int = 1024, expiredTokensMax: Int = Limits.revokedTokens) throws {
        let loaded = try database.read { transaction in
            let (revision, epoch) = try transaction.accessRevisionAndEpoch()
            var state = State(
                revision: revision, prunedAbove: tokensKeptMin, now: { database.now() }, tokensKeptMin: tokensKeptMin,
                expiredTokensMax: expiredTokensMax)
            try transaction.eachAccessChange(after: 0) { state.insert($0) }
            return (state: state, epoch: epoch)
        }
        state = Mutex(loaded.state)
        epoch = loaded.epoch
    }

    /// Begins a transaction: takes its lock if it writes, and learns the changes of other nodes.
    ///
    /// - Returns: The changes that this server didn't know of, for the affected sockets.
    /// - Throws: ``EpochRenewed``, which ends the server.
    func begin(_ transaction: any Transaction, writing scope: Scope?) throws -> [AccessChange] {
        if let scope { expect(scope.access) }
        guard let lock = transaction.dialect.accessLock else { return [] }
        if let scope {
            for statement in scope.isExclusive ? lock.exclusive : lock.shared { try transaction.perform(statement) }
        }
        let known = state.withLock { $0.revision }
        let (revision, epoch) = try transaction.accessRevisionAndEpoch()
        guard epoch == self.epoch else { throw EpochRenewed() }
        guard revision > known else { return [] }
        var changes: [AccessChange] = []
        try transaction.eachAccessChange(after: known) { changes.append($0) }
        try transaction.eachSignOut(after: known) { changes.append($0) }
        state.withLock { state in
            for change in changes { state.insert(change) }
            state.revision = max(state.revision, revision)
        }
        return changes
    }

    /// Throws if the caller is shut out.
    func requireAccess(_ context: Context) throws {
        let caller = context.caller
        let isConcerned = state.withLock { state in
            guard !state.users.isEmpty || !state.tokens.isEmpty || !state.devices.isEmpty else { return false }
            return caller.accessSubjects.contains { state.holds($0) }
        }
        if isConcerned { try context.requireAccess() }
    }

    /// Records changes of access made by operations of this server.
    func learn(_ changes: [AccessChange]) {
        state.withLock { state in for change in changes { state.insert(change) } }
    }

    /// Adds the subjects whose access operations are about to change.
    private func expect(_ subjects: Set<AccessSubject>) {
        guard !subjects.isEmpty else { return }
        state.withLock { state in
            for subject in subjects { state.insert(subject, until: state.expectedUntil(subject)) }
        }
    }
}

extension AccessGate.State {
    fileprivate mutating func insert(_ change: AccessChange) {
        switch change {
        // As long as the database keeps the revocation, unless it has too many of expired tokens.
        case .revoked(_, let until): insert(change.subject, until: until.after(seconds: RevocationMargin.seconds))
        // Its sockets are closed at once; their earlier calls have run long before this expires.
        case .signedOut: insert(change.subject, until: now().after(seconds: Self.signedOutSeconds))
        case .user: insert(change.subject, until: .forever)
        }
    }

    fileprivate mutating func insert(_ subject: AccessSubject, until: Timestamp) {
        switch subject {
        case .user(let user): users.insert(user.hashValue)
        case .token: tokens[Self.key(of: subject)] = until
        case .device: devices[Self.key(of: subject)] = until
        }
        if tokens.count + devices.count > prunedAbove { prune() }
    }

    /// Forgets what is past and, as the database does, all but a number of the expired tokens: those that expired first.
    private mutating func prune() {
        let past = now().minusClockSkew
        devices = devices.filter { $0.value > past }
        tokens = tokens.filter { $0.value > past }
        let expiredUntil = past.after(seconds: RevocationMargin.seconds)
        let expired = tokens.filter { $0.value <= expiredUntil }
        if expired.count > expiredTokensMax {
            for (key, _) in expired.sorted(by: { $0.value < $1.value }).dropLast(expiredTokensMax) { tokens[key] = nil }
        }
        prunedAbove = max(tokensKeptMin, (tokens.count + devices.count) * 2)
    }

    /// Until when a subject is kept whose access an operation is about to change. Any user can sign out devices that don't exist: these are soon
    /// forgotten.
    fileprivate func expectedUntil(_ subject: AccessSubject) -> Timestamp {
        if case .device = subject { now().after(seconds: 60) } else { .forever }
    }

    private static func key(of subject: AccessSubject) -> Int { subject.hashValue }
    private static let signedOutSeconds = 3600

    fileprivate func holds(_ subject: AccessSubject) -> Bool {
        switch subject {
        case .user(let user): users.contains(user.hashValue)
        case .token: tokens[Self.key(of: subject)] != nil
        case .device: devices[Self.key(of: subject)] != nil
        }
    }
}
