import RoostAPI

extension Sync {
    /// Invitations of an answer to a call, and the summary of the channel that one to the user leads to.
    func invitationWrites(_ invitations: [Invitation], channel: Channel) -> [StoreWrite] {
        invitations.map { .invitation($0) } + summaryWrites(Rows(channel: channel, invitations))
    }

    /// The summary of the channel that an invitation to the user leads to, where rows bring both.
    func summaryWrites(_ rows: Rows) -> [StoreWrite] {
        guard let channel = rows.channel, saved.channels[channel.channelId] == nil,
            (rows.invitations ?? []).contains(where: {
                $0.channelId == channel.channelId && $0.userId == user && $0.state == .pending
            })
        else { return [] }
        return [.channel(channel)]
    }
}

extension Rows {
    /// The channel of an invitation.
    var invitedChannel: ChannelID? { invitations?.first?.channelId }
}

extension AcceptInvitation: CachedOperation {
    var cacheEffect: Sync.CacheEffect { .membership }
}

extension ListMyInvitations: CachedOperation {
    var cacheEffect: Sync.CacheEffect { .invitations }
}
