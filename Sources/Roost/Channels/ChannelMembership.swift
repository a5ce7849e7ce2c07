public import RoostAPI

/// The user's current membership in a channel (AM-31).
public enum ChannelMembership: Hashable, Sendable {
    /// Neither a member nor invited, or the channel isn't known on this device.
    case none
    /// The user has a pending invitation.
    case invited(Invitation)
    /// A member.
    case member
    /// Banned until the given time: an app leaves the channel's screen.
    case banned(until: Timestamp)

    init(_ view: ChannelView?, now: Timestamp) {
        if let until = view?.membership?.bannedUntil, until > now {
            self = .banned(until: until)
        } else if view?.membership?.state == .member, view?.channel.deletedAt == nil {
            self = .member
        } else if let invitation = view?.invitation {
            self = .invited(invitation)
        } else {
            self = .none
        }
    }
}
