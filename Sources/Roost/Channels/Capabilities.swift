import RoostAPI

/// The user's permissions in a channel, as the server sent them: to the user alone, or to all members by role.
///
/// The two arrive on different streams, whose order isn't defined. Both carry the channel's seq at which they were valid, and the later one wins.
struct Capabilities: Codable, Hashable, Sendable {
    /// Permissions sent to the user alone.
    struct Own: Codable, Hashable, Sendable {
        var permissions: [Permission] = []
        /// The stamp of the user's membership at that time.
        var userSeq: Seq = 0
        var channelSeq: Seq = 0

        func isNewer(than other: Own) -> Bool { (userSeq, channelSeq) > (other.userSeq, other.channelSeq) }
    }

    /// Permissions sent to all members.
    struct ByRole: Codable, Hashable, Sendable {
        /// Without the permissions that this version doesn't know.
        var permissions: [String: [Permission]] = [:]
        var channelSeq: Seq = 0
    }

    var own = Own()
    var byRole = ByRole()

    /// The permissions that a mute takes from a member, even from an operator.
    private static let takenByMute: Set<Permission> = [.messageSend, .messageEditOwn]

    /// Returns the permissions of a role. A deleted role grants those of every member.
    ///
    /// - Parameters:
    ///   - role: The user's role; nil for non-members.
    ///   - isMuted: Whether the user is muted in the channel. The lists by role apply to members who aren't muted; the permissions sent to the user
    ///     alone already take it into account.
    func now(as role: ChannelRole?, isMuted: Bool) -> [Permission] {
        guard let role, byRole.channelSeq > own.channelSeq else { return own.permissions }
        let permissions = byRole.permissions[role.rawValue] ?? byRole.permissions[ChannelRole.member.rawValue] ?? []
        return isMuted ? permissions.filter { !Self.takenByMute.contains($0) } : permissions
    }
}
