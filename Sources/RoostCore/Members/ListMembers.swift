public import RoostAPI

extension ListMembers: Handled, PagedQuery {
    public var requiredPresence: PresenceRequirement { .channel(channel) }

    public func handle(in context: inout Context) throws -> Page<MemberEntry> {
        let access = try context.require(.memberList, in: channel)
        let listing = try context.members(
            of: access, states: states, roles: roles, sort: sort ?? .firstCreated, order: effectiveOrder)
        return try listing.page(for: self, through: listing.sources(in: context.transaction), context)
    }
}

extension GetMember: Handled {
    public var requiredPresence: PresenceRequirement { .channel(channel) }

    public func handle(in context: inout Context) throws -> MemberEntry {
        let access = try context.require(.memberList, in: channel)
        let listing = try context.members(of: access, states: nil, roles: nil, sort: .userId, order: .ascending)
        let isOnline = context.presence.isOnline(user, access.channelId)
        guard let entry = try listing.entry(of: user, isOnline: isOnline, in: context.transaction) else {
            throw RoostError.notFound("user")
        }
        return entry
    }
}
