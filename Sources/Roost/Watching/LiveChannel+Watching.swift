public import RoostAPI

extension LiveChannel {
    /// Watches the channel on this connection, and answers with its state (ST-01, ST-05). A watch ends with the connection.
    ///
    /// - Parameter limit: Messages in the answer, 1 to 100; 30 when it is nil. With 0 there are no members and watchers in it either, but their numbers.
    /// - Throws: `RoostError` with `not_member`, `not_found`, and as ``Chat/call(_:)`` does.
    @discardableResult
    public func watch(limit: Int? = nil) async throws -> WatchedChannel {
        try await chat.call(WatchChannel(channel: id, limit: limit))
    }

    /// Stops watching. Does nothing if the channel isn't watched (ST-10).
    ///
    /// - Throws: `RoostError` as ``Chat/call(_:)`` does.
    public func unwatch() async throws { _ = try await chat.call(UnwatchChannel(channel: id)) }
}

extension WatchChannel: CachedOperation {
    var cacheEffect: Sync.CacheEffect { .watch(channel) }
}
