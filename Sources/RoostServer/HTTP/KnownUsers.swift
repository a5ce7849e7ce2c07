import RoostAPI
import Synchronization

/// Users known to exist, which saves requests a database query. Bounded: emptied when it is full.
final class KnownUsers: Sendable {
    private static let sizeMax = 100_000
    private let users = Mutex<Set<UserID>>([])

    func contains(_ user: UserID) -> Bool { users.withLock { $0.contains(user) } }
    func insert(_ user: UserID) {
        users.withLock { users in
            if users.count >= Self.sizeMax { users.removeAll() }
            users.insert(user)
        }
    }
}
