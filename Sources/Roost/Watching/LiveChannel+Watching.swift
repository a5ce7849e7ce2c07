public import RoostAPI

extension LiveChannel {
    /// Watches the channel on this connection, and answers with its state (ST-01, ST-05). A watch ends with the connection.
    ///
    /// - Parameters:
    ///   - limit: Messages in the answer, 1 to 100; 30 when it is nil. With 0 there are no members and watchers in it either, but their numbers.
    ///   - watchersLimit: The most watchers in it, 0 to 300; 30 when it is nil (ST-11).
    /// - Throws: `RoostError` with `not_member`, `not_found`, and as ``Chat/call(_:)`` does.
    @discardableResult
    public func watch(limit: Int? = nil, watchersLimit: Int? = nil) async throws -> WatchedChannel {
        try await chat.call(WatchChannel(channel: id, limit: limit, watchersLimit: watchersLimit))
    }

    /// Stops watching, also what ``presence()`` watches. Does nothing if the channel isn't watched (ST-10).
    ///
    /// - Throws: `RoostError` as ``Chat/call(_:)`` does.
    public func unwatch() async throws { _ = try await chat.call(UnwatchChannel(channel: id)) }
}

extension Chat {
    /// Returns a page of channels by filters, and watches them on this connection: no further call is needed (ST-09). The watches are renewed after a reconnect, and end with
    /// ``LiveChannel/unwatch()``.
    ///
    /// Channels that the user may find and not watch are returned all the same.
    /// - Throws: `RoostError` as ``call(_:)`` does.
    public func watch(_ query: QueryChannels) async throws -> Page<ChannelView> {
        try await call(QueryAndWatchChannels(query: query))
    }

    /// Makes a channel if there is none of that id, watches it on this connection, and answers with its state: one call for what an app does when it opens a channel by its
    /// name (ST-01).
    ///
    /// - Parameters:
    ///   - id: The channel, by its id or as `type:id`.
    ///   - draft: What it is created with if there is none, without an id: that is the one to watch.
    /// - Throws: `RoostError` with the codes of `channel.create` and `channel.watch`, and as ``call(_:)`` does.
    public func watch(_ id: ChannelID, creating draft: CreateChannel) async throws -> WatchedChannel {
        var operation = WatchChannel(channel: id)
        operation.create = draft
        return try await call(operation)
    }
}

extension QueryAndWatchChannels: CachedOperation {
    var cacheEffect: Sync.CacheEffect { .watchAll(except: []) }
}

extension WatchChannel: CachedOperation {
    var cacheEffect: Sync.CacheEffect { .watch(channel) }
}
