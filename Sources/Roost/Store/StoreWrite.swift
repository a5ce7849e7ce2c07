import RoostAPI

/// One change of the cache. Writing it twice is the same as writing it once, but for `countOwn`.
enum StoreWrite: Hashable, Sendable {
    /// Forgets everything: what follows belongs to another history.
    case erase(epoch: String)
    case userPosition(Seq)
    case position(ChannelID, Position)
    /// Forgets a channel's messages and members, to begin afresh.
    case forget(ChannelID)
    /// Forgets what only members know of a channel, its position too.
    case leave(ChannelID)
    /// Replaces a channel; its counters only by newer ones.
    case channel(Channel)
    case counters(ChannelID, ChannelCounters)
    /// Replaces the own membership by a newer one: an answer may be older than an event that overtook it (I8). What is concealed
    /// from the user by it goes; when it ends, what the user may do in the channel is forgotten.
    case membership(Membership)
    /// Counts an own new message as read (``Unread/receive(_:as:in:)``).
    case countOwn(Message)
    /// Replaces members by newer ones, by `changeSeq`.
    case members(ChannelID, [Member])
    /// Replaces messages by newer ones, by `changeSeq`.
    case messages([Message])
    case users([User])
    /// Replaces an invitation by a newer one, by `revision`.
    case invitation(Invitation)
    case preferences(Preferences)
    /// Replaces what the user may do in a channel, unless something newer was told.
    case capabilities(ChannelID, Capabilities.Own)
    /// The same for all members, by role.
    case roleCapabilities(ChannelID, Capabilities.ByRole)

    /// The channel that live objects must read again.
    var channel: ChannelID? {
        switch self {
        case .erase, .userPosition, .users, .preferences: nil
        case .position(let channel, _), .forget(let channel), .leave(let channel), .counters(let channel, _),
            .members(let channel, _), .capabilities(let channel, _), .roleCapabilities(let channel, _):
            channel
        case .channel(let channel): channel.channelId
        case .membership(let membership): membership.channelId
        case .countOwn(let message): message.channelId
        case .messages(let messages): messages.first?.channelId
        case .invitation(let invitation): invitation.channelId
        }
    }
}
