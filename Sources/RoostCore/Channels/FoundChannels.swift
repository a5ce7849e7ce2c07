public import RoostAPI

/// A page of channels that was read before its operation takes its turn among the writers: see ``Handled/channelQuestion``.
///
/// By then some of them may have changed. Searching takes long, and seeing which have changed doesn't, so only those are read again.
public struct FoundChannels: Sendable {
    fileprivate let page: Page<ChannelView>
    /// The position of the caller's own stream before the page was read.
    fileprivate let userSeq: Seq

    /// Reads the page of a query, which is the operation's field `query`.
    ///
    /// - Throws: Those of `channel.query`.
    public init(_ query: QueryChannels, in context: inout Context) throws {
        userSeq = try context.transaction.streamHead(of: context.caller.user)
        do { page = try query.handle(in: &context) } catch let refusal as RoostError { throw refusal.inside("query") }
    }

    /// About what the page takes while it waits.
    public var sizeBytes: Int { page.items.contentSizeBytes }
}

extension QueryChannels {
    /// Returns a page that the query has found, with the channels as they are now. One that has changed keeps its place, and is left out if the query
    /// doesn't find it any more.
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
        // They have grown beyond a page: only the walk knows where that ends.
        guard current.nextCursor == nil, page.items.contentSizeBytes <= Limits.pageContentBytes else {
            return try handle(in: &context)
        }
        page.users = try context.summaries(for: page.items)
        return page
    }
}

extension Context {
    /// Returns those of some channels that aren't for the caller what they were when they were read.
    ///
    /// - Parameter userSeq: The position of the caller's own stream before that.
    fileprivate func changes(among views: [ChannelView], after userSeq: Seq) throws -> [ChannelView] {
        var capabilityCache = Permissions.CapabilityCache(of: caller.role, now: now)
        var hasOwnChanges: Bool?
        return try views.filter { view in
            guard let access = try transaction.access(to: view.channel.channelId, of: caller.user) else { return true }
            // What the caller deletes for themselves moves no seq of the channel.
            if access.mayHaveOwnDeletions {
                let isChanged = try hasOwnChanges ?? (transaction.streamHead(of: caller.user) != userSeq)
                hasOwnChanges = isChanged
                if isChanged { return true }
            }
            // The policy of a type and a time that is over change what the caller may, and no seq.
            return access.counters.seq != view.channel.counters.seq || access.membership != view.membership
                || access.invitation != view.invitation
                || capabilityCache.capabilities(in: access.facts) != view.ownCapabilities
        }
    }
}

extension [ChannelView] {
    fileprivate var contentSizeBytes: Int { reduce(0) { $0 + $1.contentSizeBytes } }
}
