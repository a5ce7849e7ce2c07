import RoostAPI
import Synchronization

/// The users of whom it is known that they exist, so that not every request asks the database. Bounded: when it is full it starts anew.
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
