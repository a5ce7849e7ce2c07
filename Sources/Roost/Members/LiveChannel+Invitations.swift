public import RoostAPI

extension LiveChannel {
    /// Invites users, with a result for each (SB-13, EM-24). Users who accept invitations automatically are members at once (SB-18).
    ///
    /// - Parameters:
    ///   - users: 1 to 100, each once.
    ///   - welcome: At most 500 characters, shown to the invited users.
    /// - Throws: `RoostError` with `not_member` (SB-13), `kind_forbids` for a conversation, `not_permitted`, and the errors of
    ///   ``Chat/call(_:isolation:)``.
    @discardableResult
    public func invite(_ users: [UserID], welcome: String? = nil) async throws -> [MemberResult] {
        try await chat.call(InviteMembers(channel: id, users: users, welcome: welcome)).results
    }

    /// Accepts the user's invitation: the user becomes a member, which this object shows when this returns (SB-15, EM-25). Accepting again as a
    /// member changes nothing.
    ///
    /// - Throws: `RoostError` with `not_invited`, `member_limit`, `channel_limit`, and the errors of ``Chat/call(_:isolation:)``.
    public func acceptInvitation() async throws { try await call(AcceptInvitation(channel: id)) }

    /// Declines the user's invitation. To join later, the user needs another one (SB-16, EM-26).
    ///
    /// - Throws: `RoostError` with `not_invited`, also the second time, and the errors of ``Chat/call(_:isolation:)``.
    public func declineInvitation() async throws { try await call(DeclineInvitation(channel: id)) }

    /// Withdraws invitations, with a result for each: the user's own, or anyone's if the user may remove members.
    ///
    /// - Parameter users: 1 to 100 invited users, each once.
    /// - Throws: The errors of ``invite(_:welcome:)``.
    @discardableResult
    public func withdrawInvitations(of users: [UserID]) async throws -> [MemberResult] {
        try await chat.call(WithdrawInvitations(channel: id, users: users)).results
    }
}
