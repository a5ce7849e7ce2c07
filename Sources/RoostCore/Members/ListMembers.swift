public import RoostAPI

extension ListMembers: Handled, PagedQuery {
    public var presenceChannel: ChannelID? { channel }

    public func handle(in context: inout Context) throws -> Page<MemberEntry> {
        let access = try context.require(.memberList, in: channel)
        let listing = try context.members(
            of: access, states: states, roles: roles, sort: sort ?? .firstCreated, order: effectiveOrder)
        let walk = try Walk(self, shape: listing.shape, limits: Limits.memberPage, isDescending: listing.isDescending)
        let (transaction, online) = (context.transaction, context.presence.onlineMembers(of: access.channelId))
        return try walk.page(through: listing.sources(in: transaction)) { user in
            try listing.entry(of: user, online: online, in: transaction)
        }
    }
}

extension GetMember: Handled {
    public var presenceChannel: ChannelID? { channel }

    public func handle(in context: inout Context) throws -> MemberEntry {
        let access = try context.require(.memberList, in: channel)
        let listing = try context.members(of: access, states: nil, roles: nil, sort: .userId, order: .ascending)
        let online = context.presence.onlineMembers(of: access.channelId)
        guard let entry = try listing.entry(of: user, online: online, in: context.transaction) else {
            throw RoostError.notFound("user")
        }
        return entry
    }
}
