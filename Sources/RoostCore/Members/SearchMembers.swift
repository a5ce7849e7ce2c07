public import RoostAPI

extension SearchMembers: Handled, PagedQuery {
    public var requiredPresence: PresenceRequirement { .channel(channel) }

    public func handle(in context: inout Context) throws -> Page<MemberEntry> {
        let access = try context.require(.memberList, in: channel)
        var listing = try context.members(
            of: access, states: states, roles: roles, sort: .lastCreated, order: .descending, searching: true)
        let search = NameSearch(text)
        listing.further = [condition(search)]
        let transaction = context.transaction
        let sources: [Walk.Source<UserID>] =
            if let candidates = try candidates(search, in: access, transaction) {
                [try listing.source(among: candidates, in: transaction)]
            } else {
                listing.sources(in: transaction)
            }
        return try listing.page(for: self, through: sources, context)
    }

    /// The maximum number of users that a text may match for each to be checked.
    private static let candidatesMax = 2000

    private func condition(_ search: NameSearch?) -> SQL {
        let beginsID: SQL = "(m.user_id >= \(text) AND m.user_id < \(endOfIDs))"
        guard let search else { return beginsID }
        return """
            (\(beginsID) OR EXISTS (SELECT 1 FROM users u WHERE u.user_id = m.user_id
                                    AND \(search.condition(.user, id: "u.user_id", key: "u.name_key"))))
            """
    }

    /// A bound above all ids that start with the text: no id continues with the highest of all characters.
    private var endOfIDs: String { text + "\u{10FFFF}" }

    /// Returns the users that the text may match; nil if there are too many to check each.
    private func candidates(
        _ search: NameSearch?, in access: ChannelAccess, _ transaction: any Transaction
    ) throws -> Set<UserID>? {
        let max = Self.candidatesMax
        let sql: SQL = """
            SELECT m.user_id FROM members m
            WHERE m.channel_id = \(access.channelId) AND m.user_id >= \(text) AND m.user_id < \(endOfIDs) LIMIT \(max + 1)
            """
        let byID: [UserID] = try transaction.rows(sql) { $0.identifier() }
        guard byID.count <= max else { return nil }
        guard let search else { return Set(byID) }
        return try search.candidates(.user, max: max, in: transaction).map { Set($0.map(UserID.init(rawValue:)) + byID) }
    }
}
