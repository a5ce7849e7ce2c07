public import RoostAPI

/// One row of a member list.
public struct MemberItem: Identifiable, Hashable, Sendable {
    /// The membership: its role, its state and when it began.
    public internal(set) var member: Member
    /// The member, as this device knows them: only the id until their name arrives.
    public internal(set) var user: UserSummary
    /// The whole profile as of when the row was fetched. Nil for a member who joined after that, and for a user who no longer exists.
    public internal(set) var profile: User?
    /// Whether the user is online, as far as is known. It is kept up to date while the channel is watched
    /// (``LiveChannel/watch(limit:watchersLimit:)``). Otherwise it is as of ``MemberList/presenceAsOf``. Nil for a member who joined after the pages
    /// were fetched and has had no update since.
    public internal(set) var isOnline: Bool?
    /// When the user was last online, as far as is known. Nil while they are online, and if they don't share it. A user who stops sharing it while the
    /// list is shown looks like one who went offline, and keeps that time until the row is fetched again.
    public internal(set) var lastActiveAt: Timestamp?
    /// When the member's mute ends. Only for users with the permission `member.listMuted`.
    public internal(set) var mutedUntil: Timestamp?
    /// When the user's ban ends. Only for users with the permission `member.listBanned`.
    public internal(set) var bannedUntil: Timestamp?

    /// The member's user id.
    public var id: UserID { member.userId }

    /// A member from an event.
    init(_ member: Member) {
        self.member = member
        user = UserSummary(userId: member.userId)
    }

    /// A row of a page from the server. An app needs it only for previews and tests of its views: lists make their rows themselves.
    public init(_ entry: MemberEntry) {
        member = entry.member
        user = entry.user?.summary ?? UserSummary(userId: entry.member.userId)
        profile = entry.user
        isOnline = entry.isOnline
        lastActiveAt = entry.lastActiveAt
        mutedUntil = entry.mutedUntil
        bannedUntil = entry.bannedUntil
    }
}
