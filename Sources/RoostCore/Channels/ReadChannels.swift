public import RoostAPI

extension GetChannel: Handled {
    public func handle(in context: inout Context) throws -> ChannelView {
        try context.view(of: try context.require(.channelRead, in: channel))
    }
}

extension ListMyChannels: Handled {
    public func handle(in context: inout Context) throws -> Page<ChannelView> {
        try context.require(.streamRead)
        let limit = try Limits.page(limit, Limits.channelPage)
        let ids: [ChannelID] = try context.transaction.rows(
            """
            SELECT m.channel_id FROM members m JOIN channels c ON c.channel_id = m.channel_id
            WHERE m.user_id = \(context.caller.user) AND m.state = \(MembershipState.member) AND m.channel_id > \(cursor ?? "")
                  AND c.deleted_at IS NULL
            ORDER BY m.channel_id LIMIT \(limit + 1)
            """
        ) { $0.identifier() }
        let views = try ids.prefix(limit).map { id in
            guard let access = try context.transaction.access(to: id, of: context.caller.user) else {
                throw RoostError.notFound("channel")
            }
            return try context.view(of: access)
        }
        return Page(items: views, nextCursor: ids.count > limit ? views.last?.channel.channelId.rawValue : nil)
    }
}
