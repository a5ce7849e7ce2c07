/// An invitation of one user into one channel (ledger §8.3). There is at most one for each pair: inviting again begins it anew.
public struct Invitation: Codable, Hashable, Sendable {
    public var channelId: ChannelID
    /// Who is invited.
    public var userId: UserID
    /// Who invited.
    public var inviter: UserID
    /// What the inviter wrote to it (EM-24).
    public var welcome: String?
    public var state: InvitationState
    public var invitedAt: Timestamp
    /// When it was accepted, declined or withdrawn.
    public var endedAt: Timestamp?
    /// Grows with each change of the invitation: of two versions the one with the higher is newer.
    public var revision: Int

    // derived: init
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

/// What became of an invitation.
public enum InvitationState: String, Codable, CaseIterable, Sendable, WireEnumeration {
    case pending, accepted, declined, withdrawn
}

/// An invitation with the channel that it leads to, as far as the invited may see it: its summary, no messages.
public struct InvitationEntry: Codable, Hashable, Sendable {
    public var invitation: Invitation
    public var channel: Channel

    // derived: init
    public init(invitation: Invitation, channel: Channel) {
        self.invitation = invitation
        self.channel = channel
    }
}
