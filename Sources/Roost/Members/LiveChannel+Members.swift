public import RoostAPI

extension LiveChannel {
    /// Joins the channel. Joining again changes nothing and answers the same (AM-26).
    ///
    /// - Throws: `RoostError` with `not_found`, `member_limit`, `channel_limit`, and as ``Chat/call(_:)`` does.
    @discardableResult
    public func join() async throws -> ChannelView { try await chat.call(JoinChannel(channel: id)) }

    /// Leaves the channel: it and its messages go from this device (AM-41). Leaving again changes nothing.
    ///
    /// - Throws: `RoostError` as ``Chat/call(_:)`` does.
    public func leave() async throws { _ = try await chat.call(LeaveChannel(channel: id)) }

    /// One page of the channel's members in the order of their ids (AM-42).
    ///
    /// - Parameters:
    ///   - limit: 1 to 100; 30 when it is nil.
    ///   - cursor: the `nextCursor` of the page before.
    /// - Throws: `RoostError` with `not_member`, and as ``Chat/call(_:)`` does.
    public func members(limit: Int? = nil, cursor: String? = nil) async throws -> Page<Member> {
        try await chat.call(ListMembers(channel: id, limit: limit, cursor: cursor))
    }
}
