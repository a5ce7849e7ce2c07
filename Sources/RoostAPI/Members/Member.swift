/// What a user is in one channel, as every other member sees it.
public struct Member: Codable, Hashable, Sendable {
    public var userId: UserID
    public var role: ChannelRole
    public var state: MembershipState
    /// When the user last became a member.
    public var joinedAt: Timestamp
    /// The seq of the newest change of this row in the channel's stream.
    public var changeSeq: Seq

    public init(userId: UserID, role: ChannelRole, state: MembershipState, joinedAt: Timestamp, changeSeq: Seq) {
        self.userId = userId
        self.role = role
        self.state = state
        self.joinedAt = joinedAt
        self.changeSeq = changeSeq
    }
}

/// Where a user stands towards a channel (ledger §8.3).
public enum MembershipState: String, Codable, CaseIterable, Sendable, WireEnumeration {
    case member
    /// Was a member and isn't any more. Such rows stay, so that who was away learns of it.
    case none
}

/// What a member may do in a channel beyond what its type gives to all (ledger §8.4).
public enum ChannelRole: String, Codable, CaseIterable, Sendable, WireEnumeration {
    case member
    case `operator`
    /// Who created the channel.
    case owner
}

/// The caller's own membership in one channel, with what nobody else sees: how far they have read.
public struct Membership: Codable, Hashable, Sendable {
    public var channelId: ChannelID
    public var role: ChannelRole
    public var state: MembershipState
    public var joinedAt: Timestamp
    /// The channel's seq at which this stay began. Who followed the channel before, and not up to here, begins it anew.
    public var joinedSeq: Seq
    /// The channel's seq up to which the caller has read.
    public var readSeq: Seq
    /// The messages of the channel that don't count as unread for the caller: those up to `readSeq`, and the caller's own after it.
    public var readCount: Int
    public var lastReadAt: Timestamp?
    /// The channel's seq at which this was so. `readCount` holds the caller's own messages up to it, so that it doesn't matter whether an
    /// event of the channel or one of the user's stream comes first.
    public var channelSeq: Seq

    public init(
        channelId: ChannelID, role: ChannelRole, state: MembershipState, joinedAt: Timestamp, joinedSeq: Seq, readSeq: Seq,
        readCount: Int,
        lastReadAt: Timestamp? = nil, channelSeq: Seq
    ) {
        self.channelId = channelId
        self.role = role
        self.state = state
        self.joinedAt = joinedAt
        self.joinedSeq = joinedSeq
        self.readSeq = readSeq
        self.readCount = readCount
        self.lastReadAt = lastReadAt
        self.channelSeq = channelSeq
    }
}
