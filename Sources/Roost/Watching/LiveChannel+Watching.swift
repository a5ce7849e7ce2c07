public import RoostAPI

extension LiveChannel {
    /// Watches the channel, and returns its state (ST-01, ST-05). A watch ends with the connection; the client begins it again after a reconnect.
    ///
    /// A non-member who may read the channel has what happens in it as a member does, as long as it is watched (ST-06): it is told by ``Chat/events``, this
    /// object follows its counters and newest message, and lists show its messages. If something was missed, as by a reconnect,
    /// ``ChatEvent/missed(after:)`` says so, and lists begin afresh. Nothing counts as unread, and nothing of it is kept on this device after the watch.
    ///
    /// If the task is cancelled before the answer has come, or none comes in time, the channel isn't watched, unless something else watches it.
    ///
    /// - Parameters:
    ///   - limit: Messages in the answer, 1 to 100; 30 when it is nil. With 0 it has no members and watchers either, only their numbers.
    ///   - watchersLimit: The most watchers in it, 0 to 300; 30 when it is nil (ST-11).
    /// - Throws: `RoostError` with `not_member`, `not_found`, and as ``Chat/call(_:isolation:)`` does.
    @discardableResult
    public func watch(limit: Int? = nil, watchersLimit: Int? = nil) async throws -> WatchedChannel {
        try await chat.call(WatchChannel(channel: id, limit: limit, watchersLimit: watchersLimit))
    }

    /// Ends what ``watch(limit:watchersLimit:)`` and ``Chat/watch(_:)`` began. Does nothing if they haven't (ST-10).
    ///
    /// A ``LivePresence`` of the channel has a watch of its own: as long as one is kept, the channel stays watched, and what it tells goes on.
    ///
    /// Without a connection this returns at once: the watch has ended with the connection, and a reconnect doesn't begin it again.
    /// - Throws: `RoostError` as ``Chat/call(_:isolation:)`` does, but for `not_connected` while offline.
    public func unwatch() async throws { _ = try await chat.call(UnwatchChannel(channel: id)) }
}

extension Chat {
    /// Returns a page of channels by filters, and watches them: no further call is needed (ST-09). The watches begin again after a reconnect, and end with
    /// ``LiveChannel/unwatch()``.
    ///
    /// Channels that the user may find but not watch are returned, too. If the task is cancelled before the answer has come, or none comes in time, none is watched
    /// because of this call.
    /// - Throws: `RoostError` as ``call(_:isolation:)`` does.
    public func watch(_ query: QueryChannels) async throws -> Page<ChannelView> {
        try await call(QueryAndWatchChannels(query: query))
    }

    /// Creates a channel if there is none with that id, watches it, and returns its state: everything that an app does to open a channel by its name, in one call
    /// (ST-01).
    ///
    /// - Parameters:
    ///   - id: The channel, by its id or as `type:id`.
    ///   - draft: What the channel is created with, without an id: `id` is used.
    /// - Throws: `RoostError` with the codes of `channel.create` and `channel.watch`, and as ``call(_:isolation:)`` does.
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
