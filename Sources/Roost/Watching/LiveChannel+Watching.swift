public import RoostAPI

extension LiveChannel {
    /// Watches the channel until the token is invalidated or released: a screen that shows the channel keeps one (ST-06).
    ///
    /// Without a connection, the watch begins with the next one. It begins again after each reconnect, and when the user rejoins the channel or, as a
    /// member, may watch it again. A non-member who was refused is asked about again only with the next connection, because no event tells them that
    /// they may watch now. Tokens are counted: the channel is watched as long as one is kept, for example by one of two windows that show it, and
    /// neither ``unwatch()`` nor the end of a ``LivePresence`` changes that. While the server refuses the watch, for instance with `not_member`, the channel
    /// isn't watched; ``watch(limit:watchersLimit:)`` throws the reason, and returns the channel's state.
    ///
    /// Watching makes a non-member who may read the channel receive its events, as ``watch(limit:watchersLimit:)`` does. The token keeps the chat alive.
    public func watching() -> ObservationToken {
        let watch = ChannelWatch(of: id, in: chat)
        return ObservationToken { withExtendedLifetime(watch) {} }
    }

    /// Watches the channel and returns its state (ST-01, ST-05). A watch ends with the connection; the client renews it after a reconnect.
    ///
    /// It needs a connection: a call that fails isn't repeated. Calls aren't counted: one ``unwatch()`` ends the watches of all of them. For a screen, use
    /// ``watching()``.
    ///
    /// A non-member who may read the channel receives its events as a member does while it is watched (ST-06): ``Chat/events`` delivers them, this object
    /// follows the channel's counters and newest message, and lists show its messages. If events were missed, for example during a reconnect,
    /// ``ChatEvent/missed(after:)`` says so and lists reload. Nothing counts as unread, and nothing of the channel is kept on this device after the watch.
    ///
    /// If the task is cancelled before the answer arrives, or none arrives in time, the channel isn't watched, unless something else watches it.
    ///
    /// - Parameters:
    ///   - limit: Messages in the answer, 1 to 100; 30 if nil. With 0, the answer has no members or watchers either, only their counts.
    ///   - watchersLimit: The maximum number of watchers in the answer, 0 to 300; 30 if nil (ST-11).
    /// - Throws: `RoostError` with `not_member`, `not_found`, and the errors of ``Chat/call(_:isolation:)``.
    @discardableResult
    public func watch(limit: Int? = nil, watchersLimit: Int? = nil) async throws -> WatchedChannel {
        try await chat.call(WatchChannel(channel: id, limit: limit, watchersLimit: watchersLimit))
    }

    /// Ends the watches that ``watch(limit:watchersLimit:)`` and ``Chat/watch(_:isolation:)`` began, however many calls there were. Does nothing if there
    /// are none (ST-10).
    ///
    /// A token of ``watching()`` and a ``LivePresence`` of the channel hold their own watches: while one is kept, the channel stays watched and its events
    /// keep arriving.
    ///
    /// Without a connection this returns at once: the watch has ended with the connection, and a reconnect doesn't renew it.
    /// - Throws: The errors of ``Chat/call(_:isolation:)``, except `not_connected` while offline.
    public func unwatch() async throws { _ = try await chat.call(UnwatchChannel(channel: id)) }
}

extension Chat {
    /// Returns a page of the channels that match filters, and watches them: no further call is needed (ST-09). The watches are renewed after a
    /// reconnect, and end with ``LiveChannel/unwatch()``.
    ///
    /// Channels that the user may find but not watch are returned too. If the task is cancelled before the answer arrives, or none arrives in time,
    /// this call leaves none of them watched. Leave `isolation` out, as for ``call(_:isolation:)``.
    /// - Throws: The errors of ``call(_:isolation:)``.
    public func watch(
        _ query: QueryChannels, isolation: isolated (any Actor)? = #isolation
    ) async throws -> Page<ChannelView> {
        try await call(QueryAndWatchChannels(query: query))
    }

    /// Creates a channel if none has that id, watches it, and returns its state: everything an app needs to open a channel by its name, in one call (ST-01).
    ///
    /// - Parameters:
    ///   - id: The channel, by its id or as `type:id`.
    ///   - draft: The channel to create, without an id: `id` is used.
    ///   - isolation: Leave it out, as for ``call(_:isolation:)``.
    /// - Throws: `RoostError` with the codes of `channel.create` and `channel.watch`, and the errors of ``call(_:isolation:)``.
    public func watch(
        _ id: ChannelID, creating draft: CreateChannel, isolation: isolated (any Actor)? = #isolation
    ) async throws -> WatchedChannel {
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
