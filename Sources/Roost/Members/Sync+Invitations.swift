import RoostAPI

extension Sync {
    /// The writes for the invitations in a call's answer, and for the summary of the channel if the user is invited to it.
    func invitationWrites(_ invitations: [Invitation], channel: Channel) -> [StoreWrite] {
        invitations.map { .invitation($0) } + summaryWrites(Rows(channel: channel, invitations))
    }

    /// The writes for the summary of a channel that the user is invited to, if the rows include both.
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
