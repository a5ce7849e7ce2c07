public import RoostAPI

/// One row of a channel list.
public struct ChannelItem: Identifiable, Hashable, Sendable {
    /// The channel with its attributes and counters.
    public var channel: Channel
    /// The user's membership, current or former; nil for a user who never was a member.
    public var membership: Membership?
    /// The user's invitation while it waits for an answer.
    public var invitation: Invitation?
    /// The newest message on this device.
    public var lastMessage: Message?
    /// Messages that the user hasn't read (AM-43); 0 for non-members.
    public var unreadCount: Int
    /// Whether the user hid the channel (SB-29).
    public var hiddenState: HiddenState
    /// The user's permissions in the channel (AM-48).
    public var ownCapabilities: [Permission]

    /// The channel's id.
    public var id: ChannelID { channel.channelId }

    init(_ view: ChannelView, now: Timestamp) {
        channel = view.channel
        channel.updateTimedStates(now)
        membership = view.membership
        invitation = view.invitation
        lastMessage = view.lastMessage
        unreadCount = view.unreadCount
        hiddenState = view.hiddenState
        ownCapabilities = view.ownCapabilities
    }
}

extension Channel {
    /// Sets what follows from the times at which a silence and a rate limit end (AM-07, AM-08).
    mutating func updateTimedStates(_ now: Timestamp) {
        isMuted = mutedUntil.map { $0 > now } ?? false
        isRateLimited = rateLimitedUntil.map { $0 > now } ?? false
    }
}
