import Roost
import RoostAPI

/// The names of the few users shown next to messages: a message's readers, or the users that it doesn't mention. Names of users who have
/// never written are fetched.
@MainActor
final class FewNames {
    /// The most users to name: with more, readers are only counted.
    static let namedMax = 3

    private let chat: Chat
    private let changed: @MainActor () -> Void
    private var users: [UserID: (user: LiveUser, observation: ObservationToken)] = [:]

    /// - Parameter changed: Called when a name has arrived or changed.
    init(_ chat: Chat, changed: @escaping @MainActor () -> Void) { (self.chat, self.changed) = (chat, changed) }

    /// The names of some users, as far as known. Pass all users whose names are currently needed. With more than ``namedMax`` no names are fetched.
    func names(of ids: [UserID]) -> [String] {
        guard ids.count <= Self.namedMax else {
            users = [:]
            return ids.map { $0.rawValue.safe() }
        }
        users = users.filter { ids.contains($0.key) }
        return ids.map { id in
            if let known = users[id] { return known.user.user.name.safe() }
            let user = chat.user(id)
            users[id] = (user, user.observe { [changed] _ in changed() })
            return user.user.name.safe()
        }
    }
}
