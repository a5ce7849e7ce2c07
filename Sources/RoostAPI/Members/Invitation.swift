/// An invitation of one user to one channel (ledger §8.3). There is one for each inviter, user and channel: inviting again renews it.
public struct Invitation: Codable, Hashable, Sendable {
    /// The channel that the user is invited to.
    public var channelId: ChannelID
    /// The invited user.
    public var userId: UserID
    /// The user who sent the invitation.
    public var inviter: UserID
    /// The inviter's text (EM-24).
    public var welcome: String?
    /// Whether it is pending, or how it ended.
    public var state: InvitationState
    /// When the user was invited.
    public var invitedAt: Timestamp
    /// When it was accepted, declined or withdrawn.
    public var endedAt: Timestamp?
    /// Grows with each change of the invitation: of two versions the higher one is newer.
    public var revision: Int

    // derived: init
    /// Creates a value with these fields. Those that are left out have their defaults.
    public init(
        channelId: ChannelID, userId: UserID, inviter: UserID, welcome: String? = nil, state: InvitationState, invitedAt: Timestamp,
        endedAt: Timestamp? = nil, revision: Int
    ) {
        self.channelId = channelId
        self.userId = userId
        self.inviter = inviter
        self.welcome = welcome
        self.state = state
        self.invitedAt = invitedAt
        self.endedAt = endedAt
        self.revision = revision
    }
}

extension Invitation: Identifiable {
    /// What an invitation keeps when it is renewed: there is one for each channel, user and inviter.
    public struct ID: Hashable, Sendable {
        /// The channel that the user is invited to.
        public var channelId: ChannelID
        /// The invited user.
        public var userId: UserID
        /// The user who sent the invitation.
        public var inviter: UserID
    }

    /// Stays the same when the invitation is sent again.
    public var id: ID { ID(channelId: channelId, userId: userId, inviter: inviter) }
}

extension Invitation: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("channelId", channelId)
        json.member("userId", userId)
        json.member("inviter", inviter)
        json.member("welcome", welcome)
        json.member("state", state)
        json.member("invitedAt", invitedAt)
        json.member("endedAt", endedAt)
        json.member("revision", revision)
        json.endObject()
    }
}

/// The state of an invitation.
public enum InvitationState: OpenWireEnumeration {
    /// Still unanswered, or how it ended.
    case pending, accepted, declined, withdrawn
    /// A state unknown to this version. The invitation doesn't count as pending here.
    case unknown(String)

    public static let allCases: [InvitationState] = [.pending, .accepted, .declined, .withdrawn]

    public var rawValue: String {
        switch self {
        case .pending: "pending"
        case .accepted: "accepted"
        case .declined: "declined"
        case .withdrawn: "withdrawn"
        case .unknown(let name): name
        }
    }
}

/// An invitation with its channel, as far as the invited user may see it: a summary without messages.
public struct InvitationEntry: Codable, Hashable, Sendable {
    /// The invitation, with its state.
    public var invitation: Invitation
    /// The channel that the user is invited to.
    public var channel: Channel

    // derived: init
    /// Creates a value with these fields.
    public init(invitation: Invitation, channel: Channel) {
        self.invitation = invitation
        self.channel = channel
    }
}

extension InvitationEntry: WireWritable {
    // derived: write(to:)
    public func write(to json: inout JSONBytes) {
        json.beginObject()
        json.member("invitation", invitation)
        json.member("channel", channel)
        json.endObject()
    }
}
