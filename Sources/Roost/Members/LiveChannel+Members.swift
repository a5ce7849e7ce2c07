public import RoostAPI

extension LiveChannel {
    /// Joins the channel, and returns once this object shows the membership. Joining again changes nothing and returns the same (AM-26).
    ///
    /// - Throws: `RoostError` with `not_found`, `invite_required` for a private channel, `banned`, `member_limit`, `channel_limit`, `kind_forbids`,
    ///   and the errors of ``Chat/call(_:isolation:)``.
    public func join() async throws { try await call(JoinChannel(channel: id)) }

    /// Leaves the channel: it and its messages are removed from this device (AM-41, SB-20). Leaving again changes nothing.
    ///
    /// When this returns, the change is stored and shown on this device. It is sent as soon as possible. If the server refuses it, as it does for a
    /// conversation (`kind_forbids`, AM-18), the channel reappears, and ``Chat/outbox`` has the error. Joining cancels it if it hasn't been sent.
    /// - Throws: `RoostError` with `invalid_argument` for an id that no channel can have, `storage_failed`, `storage_in_use` or `storage_gone` if
    ///   this device can't store it.
    public func leave() async throws { try await enqueue(.leave(LeaveChannel(channel: id))) }

    /// The channel's members as a live collection (AM-39, R15). Each call makes a new one; keep it while it is shown.
    ///
    /// - Parameters:
    ///   - states: Members in any of these states; `.muted` and `.banned` need the permission to list them. Nil for all members.
    ///   - roles: Only members with one of these roles; at most 10. Nil for all.
    ///   - sort: The earliest member first, the latest first, or by id.
    ///   - order: The direction of the sort `.userId`; not allowed with others (ST-09).
    ///   - pageSize: The number of members that a page adds, 1 to 100.
    public func members(
        states: [MemberFilter]? = nil, roles: [ChannelRole]? = nil, sort: MemberSort = .firstCreated, order: SortDirection? = nil,
        pageSize: Int = 30
    ) -> MemberList {
        MemberList(
            .list(ListMembers(channel: id, states: states, roles: roles, sort: sort, order: order)), pageSize: pageSize, in: chat)
    }

    /// The members whose name or id matches a text as a live collection, the newest membership first (MN-14, MN-15, R16).
    ///
    /// Case and diacritics are ignored. The search is repeated a moment after members join or leave.
    /// - Parameters:
    ///   - text: 1 to 128 characters; for an empty text the list is refused with `invalid_argument`.
    ///   - states: As for ``members(states:roles:sort:order:pageSize:)``; without the permission to search banned members, the list is refused
    ///     (MN-18).
    ///   - roles: Only members with one of these roles; at most 10. Nil for all.
    ///   - pageSize: The number of members that a page adds, 1 to 100.
    public func searchMembers(
        _ text: String, states: [MemberFilter]? = nil, roles: [ChannelRole]? = nil, pageSize: Int = 30
    ) -> MemberList {
        MemberList(.search(SearchMembers(channel: id, text: text, states: states, roles: roles)), pageSize: pageSize, in: chat)
    }

    /// One page of the channel's members (AM-42).
    ///
    /// - Parameters:
    ///   - cursor: `nextCursor` of the previous page; nil for the first one.
    ///   - limit: 1 to 100.
    /// - Throws: `RoostError` with `not_member`, and the errors of ``Chat/call(_:isolation:)``.
    public func members(after cursor: String?, limit: Int = 30) async throws -> Page<MemberEntry> {
        try await chat.call(ListMembers(channel: id, limit: limit, cursor: cursor))
    }

    /// Makes users members at once, with a result for each (AM-40).
    ///
    /// - Parameters:
    ///   - users: 1 to 100, each once.
    ///   - hideHistory: Whether earlier messages are hidden from them. If the app hides these from all new members, they are hidden either way
    ///     (D-11).
    /// - Throws: `RoostError` with `kind_forbids` for a conversation (AM-18), `not_permitted`, and the errors of ``Chat/call(_:isolation:)``.
    @discardableResult
    public func addMembers(_ users: [UserID], hideHistory: Bool = false) async throws -> [MemberResult] {
        try await call(AddMembers(channel: id, users: users, hideHistory: hideHistory)).results
    }

    /// Ends the membership of users with a lower role than the user's own, with a result for each (AM-40).
    ///
    /// - Parameter users: 1 to 100, each once.
    /// - Throws: The errors of ``addMembers(_:hideHistory:)``.
    @discardableResult
    public func removeMembers(_ users: [UserID]) async throws -> [MemberResult] {
        try await call(RemoveMembers(channel: id, users: users)).results
    }

    /// Gives members a role, with a result for each (AM-47, SB-10, R33).
    ///
    /// - Parameters:
    ///   - role: A role that isn't above the user's own and grants nothing that the user's own doesn't. An owner who makes another member the owner
    ///     becomes an operator.
    ///   - users: 1 to 100, each once; exactly one if the role is `owner`. Their current roles must be below the user's own. Users may also give
    ///     themselves a lower role.
    /// - Throws: `RoostError` with `not_found` for an unknown role, `kind_forbids`, `not_permitted`, and the errors of ``Chat/call(_:isolation:)``.
    @discardableResult
    public func setRole(_ role: ChannelRole, of users: [UserID]) async throws -> [MemberResult] {
        try await call(SetMemberRole(channel: id, users: users, role: role)).results
    }
}

extension JoinChannel: CachedOperation {
    var cacheEffect: Sync.CacheEffect { .membership }
}
