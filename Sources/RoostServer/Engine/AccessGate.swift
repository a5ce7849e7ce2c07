import RoostAPI
import RoostCore
import RoostDatabase
import Synchronization

/// Keeps out callers whose user is deactivated or whose token is revoked, in the order of commits.
///
/// It remembers only whose access has ever changed, as a number each; for these the database is asked, in the transaction of the operation. So an
/// operation of anybody else costs a look into a set, which is empty on most servers.
///
/// - A subject is put into the set before the operation that changes its access runs, so that what follows in the same batch asks already.
/// - With several writers each transaction also asks for the number of the newest change, and learns what other nodes have changed. One
///   that writes holds a lock meanwhile that a change of access waits for: after that change commits, nothing else of the user does.
final class AccessGate: Sendable {
    fileprivate struct State {
        var revision: Int64
        /// Subjects by their hash. A collision costs a question.
        var users: Set<Int> = []
        /// Tokens, and when each may be forgotten.
        var tokens: [Int: Timestamp] = [:]
        var tokensPrunedAbove: Int
        /// The clock that revocations are written by.
        let now: @Sendable () -> Timestamp
        let tokensKeptMin: Int
    }

    private let state: Mutex<State>

    /// Learns of all changes so far.
    ///
    /// - Parameter tokensKeptMin: how many revoked tokens there are before those that have ended are looked for.
    init(_ database: any Database, tokensKeptMin: Int = 1024) throws {
        state = Mutex(
            try database.read { transaction in
                var state = State(
                    revision: try transaction.accessRevision(), tokensPrunedAbove: tokensKeptMin, now: { database.now() },
                    tokensKeptMin: tokensKeptMin)
                try transaction.eachAccessChange(after: 0) { state.insert($0) }
                return state
            })
    }

    /// Begins a transaction: takes its lock if it writes, and learns what others have changed.
    ///
    /// - Returns: the changes that this server didn't know of, for the sockets that they concern.
    func begin(_ transaction: any Transaction, writing scope: Scope?) throws -> [AccessChange] {
        if let scope { expect(scope.access) }
        guard let lock = transaction.dialect.accessLock else { return [] }
        if let scope {
            for statement in scope.access.isEmpty ? lock.shared : lock.exclusive { try transaction.perform(statement) }
        }
        let known = state.withLock { $0.revision }
        let revision = try transaction.accessRevision()
        guard revision > known else { return [] }
        var changes: [AccessChange] = []
        try transaction.eachAccessChange(after: known) { changes.append($0) }
        state.withLock { state in
            for change in changes { state.insert(change) }
            state.revision = max(state.revision, revision)
        }
        return changes
    }

    /// Throws when the caller is shut out.
    func requireAccess(_ context: Context) throws {
        let caller = context.caller
        let isConcerned = state.withLock { state in
            guard !state.users.isEmpty || !state.tokens.isEmpty else { return false }
            return caller.accessSubjects.contains { state.holds($0) }
        }
        if isConcerned { try context.requireAccess() }
    }

    /// Whether the database is asked about whoever has this token.
    func isConcerned(token: String) -> Bool { state.withLock { $0.holds(.token(token)) } }

    /// Operations of this server have changed somebody's access.
    func learn(_ changes: [AccessChange]) {
        state.withLock { state in for change in changes { state.insert(change) } }
    }

    /// Operations are about to change the access of these.
    private func expect(_ subjects: Set<AccessSubject>) {
        guard !subjects.isEmpty else { return }
        state.withLock { state in for subject in subjects { state.insert(subject, until: .forever) } }
    }
}

extension AccessGate.State {
    fileprivate mutating func insert(_ change: AccessChange) {
        if case .revoked(_, let until) = change {
            insert(change.subject, until: until)
        } else {
            insert(change.subject, until: .forever)
        }
    }

    fileprivate mutating func insert(_ subject: AccessSubject, until: Timestamp) {
        switch subject {
        case .user(let user): users.insert(user.hashValue)
        case .token(let token):
            tokens[token.hashValue] = until
            guard tokens.count > tokensPrunedAbove else { return }
            let now = now()
            tokens = tokens.filter { $0.value > now }
            tokensPrunedAbove = max(tokensKeptMin, tokens.count * 2)
        }
    }

    fileprivate func holds(_ subject: AccessSubject) -> Bool {
        switch subject {
        case .user(let user): users.contains(user.hashValue)
        case .token(let token): tokens[token.hashValue] != nil
        }
    }
}
