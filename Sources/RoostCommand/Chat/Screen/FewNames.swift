import Roost
import RoostAPI

/// The names of the few users who are told of beside messages: who has read one, or whom one doesn't mention. Those of users who have never written are asked
/// for.
@MainActor
final class FewNames {
    /// More users than this have no names: readers are only counted then.
    static let namedMax = 3

    private let chat: Chat
    private let changed: @MainActor () -> Void
    private var users: [UserID: (user: LiveUser, observation: ObservationToken)] = [:]

    /// - Parameter changed: Called when a name has arrived or is another one.
    init(_ chat: Chat, changed: @escaping @MainActor () -> Void) { (self.chat, self.changed) = (chat, changed) }

    /// The names of some users, as far as they are known. They are all whose names are needed now. With more than ``namedMax`` nobody is asked.
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
