import RoostAPI

/// What the user may do in a channel, as the server told it: to the user alone, or to all members by their roles.
///
/// The two come on different streams, between which there is no order. Both say as of which seq of the channel they are, and the
/// later one holds.
struct Capabilities: Codable, Hashable, Sendable {
    /// What was told to the user alone.
    struct Own: Codable, Hashable, Sendable {
        var permissions: [Permission] = []
        /// The user's membership at that moment, by its stamp.
        var userSeq: Seq = 0
        var channelSeq: Seq = 0

        func isNewer(than other: Own) -> Bool { (userSeq, channelSeq) > (other.userSeq, other.channelSeq) }
    }

    /// What was told to all members.
    struct ByRole: Codable, Hashable, Sendable {
        /// Without the permissions that this version doesn't know.
        var permissions: [String: [Permission]] = [:]
        var channelSeq: Seq = 0
    }

    var own = Own()
    var byRole = ByRole()

    /// What holds for a role. One that was deleted grants what every member has.
    func now(as role: ChannelRole?) -> [Permission] {
        guard let role, byRole.channelSeq > own.channelSeq else { return own.permissions }
        return byRole.permissions[role.rawValue] ?? byRole.permissions[ChannelRole.member.rawValue] ?? []
    }
}
