import Roost

/// The names of the users that a page names.
struct UserNames {
    private let users: [UserID: UserSummary]

    init(_ users: [UserSummary]?) {
        self.users = Dictionary((users ?? []).map { ($0.userId, $0) }, uniquingKeysWith: { first, _ in first })
    }

    /// The name, or the id if there is none.
    func name(of id: UserID) -> String { (users[id] ?? UserSummary(userId: id)).name.safe() }

    /// The display name with the id, which is what commands accept.
    func nameWithID(of id: UserID) -> String {
        let (name, id) = (name(of: id), id.rawValue.safe())
        return name == id ? id : "\(name) (\(id))"
    }
}
