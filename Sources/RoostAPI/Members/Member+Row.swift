extension Member: StreamRow {
    package static let kind = "members"
    package var key: String { userId.rawValue }
    package var stamp: Int64 { changeSeq }
    package var namedUsers: [UserID] { [userId] }
    package var contentSizeBytes: Int { userId.rawValue.utf8.count + 200 }
}

/// Only on the member's own stream, and in the member's own changes.
extension Membership: StreamRow {
    package static let kind = "memberships"
    package var key: String { channelId.rawValue }
    package var stamp: Int64 { userSeq }
    package var contentSizeBytes: Int { channelId.rawValue.utf8.count + 300 }
}

/// On the streams of inviter and invited, and on the channel's if its members get invitations.
extension Invitation: StreamRow {
    package static let kind = "invitations"
    /// Identifiers hold no line breaks.
    package var key: String { "\(channelId)\n\(userId)\n\(inviter)" }
    package var stamp: Int64 { Int64(revision) }
    package var namedUsers: [UserID] { [inviter, userId] }
    package var contentSizeBytes: Int {
        let ids = channelId.rawValue.utf8.count + userId.rawValue.utf8.count + inviter.rawValue.utf8.count
        return (welcome.map(JSONBytes.sizeBytes) ?? 0) + ids + 200
    }
}

extension Rows {
    /// Changed members of the stream's channel; nil for none.
    public var members: [Member]? {
        get { self[Member.self] }
        set { self[Member.self] = newValue }
    }

    /// The caller's own changed memberships; nil for none.
    public var memberships: [Membership]? {
        get { self[Membership.self] }
        set { self[Membership.self] = newValue }
    }

    /// Changed invitations; nil for none.
    public var invitations: [Invitation]? {
        get { self[Invitation.self] }
        set { self[Invitation.self] = newValue }
    }
}
