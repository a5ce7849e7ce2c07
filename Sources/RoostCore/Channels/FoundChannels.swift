public import RoostAPI

/// A page of channels that was read before its operation takes its turn among the writers: see ``Handled/channelQuery``.
///
/// Some of them may have changed by then. Searching takes long and finding the changed ones doesn't, so only those are read again.
public struct FoundChannels: Sendable {
    fileprivate let page: Page<ChannelView>
    /// The position of the caller's own stream before the page was read.
    fileprivate let userSeq: Seq

    /// Reads the page of a query, the operation's field `query`.
    ///
    /// - Throws: The errors of `channel.query`.
    public init(_ query: QueryChannels, in context: inout Context) throws {
        userSeq = try context.transaction.streamHead(of: context.caller.user)
        do { page = try query.handle(in: &context) } catch let refusal as RoostError { throw refusal.inside("query") }
    }

    /// The approximate size of the page while it is held.
    public var sizeBytes: Int { page.items.contentSizeBytes }
}

extension QueryChannels {
    /// Returns a page that the query found, with the channels in their current state. A changed one keeps its place, and is
    /// left out if the query no longer finds it.
    func page(of found: FoundChannels, in context: inout Context) throws -> Page<ChannelView> {
        var page = found.page
        let changed = try context.changes(among: page.items, after: found.userSeq)
        guard !changed.isEmpty else { return page }
        var query = self
        (query.ids, query.limit, query.cursor) = (changed.map(\.channel.channelId), Limits.channelPage.max, nil)
        let current = try query.handle(in: &context)
        let views = Dictionary(current.items.map { ($0.channel.channelId, $0) }, uniquingKeysWith: { first, _ in first })
        let changedIDs = Set(query.ids ?? [])
        page.items = page.items.compactMap { changedIDs.contains($0.channel.channelId) ? views[$0.channel.channelId] : $0 }
        // They have grown beyond a page: only the walk knows where it ends.
        guard current.nextCursor == nil, page.items.contentSizeBytes <= Limits.pageContentBytes else {
            return try handle(in: &context)
        }
        page.users = try context.summaries(for: page.items)
        return page
    }
}

extension Context {
    /// Returns the channels that have changed for the caller since they were read.
    ///
    /// - Parameter userSeq: The position of the caller's own stream before that read.
    fileprivate func changes(among views: [ChannelView], after userSeq: Seq) throws -> [ChannelView] {
        var capabilityCache = Permissions.CapabilityCache(of: caller.role, now: now)
        var hasOwnChanges: Bool?
        return try views.filter { view in
            guard let access = try transaction.access(to: view.channel.channelId, of: caller.user) else { return true }
            // The caller's own deletions move no seq of the channel.
            if access.mayHaveOwnDeletions {
                let isChanged = try hasOwnChanges ?? (transaction.streamHead(of: caller.user) != userSeq)
                hasOwnChanges = isChanged
                if isChanged { return true }
            }
            // A type's policy and an elapsed time limit change the caller's permissions without moving a seq.
            return access.counters.seq != view.channel.counters.seq || access.membership != view.membership
                || access.invitation != view.invitation
                || capabilityCache.capabilities(in: access.facts) != view.ownCapabilities
        }
    }
}

extension [ChannelView] {
    fileprivate var contentSizeBytes: Int { reduce(0) { $0 + $1.contentSizeBytes } }
}
