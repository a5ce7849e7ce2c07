import Foundation
public import RoostAPI

extension Chat {
    /// A channel as a live object. Each call makes a new one; keep it while it is shown. It shows what this device knows once
    /// ``LiveChannel/loaded()`` returns.
    ///
    /// - Parameter id: The channel's own id. What this device knows is stored by it, so a live object with `type:id` shows nothing (ST-03):
    ///   ``getChannel(_:)`` and ``joinChannel(_:)`` take that too, and return a live object with the channel's own id.
    @MainActor public func channel(_ id: ChannelID) -> LiveChannel { LiveChannel(id, of: self) }

    /// The user's channels as a live collection, the one with the newest message first, hidden ones left out. All of them are rows
    /// of the list. Each call makes a new one; keep it while it is shown.
    @MainActor public func channels() -> ChannelList { channels(matching: ChannelQuery(), pageSize: .max) }

    /// The channels that match a query, as a live collection (AM-32, AM-33, SB-23 to SB-32, ST-09). Each call makes a new one; keep
    /// it while it is shown.
    ///
    /// - Parameters:
    ///   - query: Filters and order; with none, the user's own channels by their newest message. A query outside its limits makes a
    ///     list in the phase `refused`.
    ///   - pageSize: The rows that one page adds: any number of the user's own channels, up to 100 of those from the server.
    @MainActor public func channels(matching query: ChannelQuery, pageSize: Int = 50) -> ChannelList {
        ChannelList(query, pageSize: pageSize, in: self)
    }

    /// Fetches a channel without joining it, and returns it as a loaded live object (AM-27, SB-25). A channel that the user isn't a member of
    /// is shown as last fetched.
    ///
    /// - Parameter id: The channel's id, or `type:id` (ST-03). The live object has the channel's own.
    /// - Throws: `RoostError` with `not_found` for a channel that doesn't exist, or that the user may not know of, and as
    ///   ``call(_:isolation:)`` does.
    @MainActor public func getChannel(_ id: ChannelID) async throws -> LiveChannel {
        await loadedChannel(try await call(GetChannel(channel: id)).channel.channelId)
    }

    /// Joins a channel, and returns it as a loaded live object. Joining again changes nothing, so this can also be used to fetch it
    /// (AM-26).
    ///
    /// - Parameter id: The channel's id, or `type:id` (ST-03). The live object has the channel's own.
    /// - Throws: `RoostError` with `not_found`, `invite_required` for a private channel, `banned`, `member_limit`, `channel_limit`,
    ///   `kind_forbids`, and as ``call(_:isolation:)`` does.
    @MainActor @discardableResult public func joinChannel(_ id: ChannelID) async throws -> LiveChannel {
        await loadedChannel(try await call(JoinChannel(channel: id)).channel.channelId)
    }

    /// Creates a channel with any of its attributes (AM-24, SB-08, SB-09). The user becomes its owner and first member (D-17).
    ///
    /// If the connection is lost before the answer, the call is sent again after a reconnect with the same idempotency key, so it never
    /// creates a second channel (SB-12). A draft without a key gets one.
    /// - Throws: `RoostError` with `already_exists` (AM-23), `not_found` for an unknown user, `kind_forbids` for something that the type
    ///   doesn't allow (AM-19), `member_limit`, `channel_limit`, and as ``call(_:isolation:)`` does.
    @MainActor @discardableResult public func createChannel(_ draft: CreateChannel) async throws -> LiveChannel {
        var draft = draft
        draft.idempotencyKey = draft.idempotencyKey ?? UUID().uuidString.lowercased()
        return await loadedChannel(try await callRepeatedly(draft).channel.channelId)
    }

    /// A channel that a call has brought: its rows were stored before the answer came.
    @MainActor func loadedChannel(_ id: ChannelID) async -> LiveChannel {
        let channel = channel(id)
        // The call has done its work, whatever becomes of reading it.
        try? await channel.loaded()
        return channel
    }

    /// Creates a channel. See ``createChannel(_:)`` for more attributes.
    ///
    /// - Parameters:
    ///   - id: Unique for ever; the server makes one when it is nil (AM-13).
    ///   - type: What kind of channel it is, for good (AM-14).
    ///   - displayName: Its name, if it has one of its own.
    ///   - tags: To find channels by (AM-33).
    ///   - metadata: The app's own data, an object.
    ///   - users: Members from the start, beside the user; at most `Limits.membersPerCall` (AM-24).
    @MainActor @discardableResult
    public func createChannel(
        _ id: ChannelID? = nil, type: ChannelType = .community, displayName: String? = nil, tags: [String]? = nil,
        metadata: JSONValue? = nil, users: [UserID]? = nil
    ) async throws -> LiveChannel {
        try await createChannel(
            CreateChannel(channel: id, type: type, displayName: displayName, tags: tags, metadata: metadata, users: users))
    }

    /// Returns the conversation with some users, and creates it if there is none: the same users always have the same one
    /// (AM-25).
    ///
    /// - Parameters:
    ///   - users: At least one, beside the user; at most `Limits.membersPerCall`.
    ///   - displayName: Its name, if it is created and is to have its own.
    ///   - tags: Tags to find it by, if it is created (AM-33).
    ///   - metadata: The app's own data, an object, if it is created.
    /// - Throws: `RoostError` with `invalid_argument` without users (AM-24), `not_found` for an unknown one, and as ``call(_:isolation:)``
    ///   does.
    @MainActor @discardableResult
    public func createConversation(
        with users: [UserID], displayName: String? = nil, tags: [String]? = nil, metadata: JSONValue? = nil
    ) async throws -> LiveChannel {
        try await createChannel(type: .conversation, displayName: displayName, tags: tags, metadata: metadata, users: users)
    }

    /// Calls an operation that may be repeated, up to four times: after a lost connection, and after a refusal that passes. Offline
    /// it fails at once.
    private func callRepeatedly<Call: RoostAPI.Operation>(
        _ operation: Call, isolation: isolated (any Actor)? = #isolation
    ) async throws -> Call.Response {
        let environment = driver.environment
        guard driver.statuses.current == .online else { return try await call(operation) }
        for pause in [50, 200, 800] as [Int64] {
            do {
                return try await call(operation)
            } catch let error as RoostError where error.isRetryable {
                try await environment.clock.sleep(for: Sync.wait(milliseconds: max(pause, error.retryAfterMilliseconds ?? 0)))
                guard await driver.isOnline(within: environment.settings.callTimeout) else {
                    try Task.checkCancellation()
                    throw error
                }
            }
        }
        return try await call(operation)
    }
}

extension CreateChannel: CachedOperation {
    var cacheEffect: Sync.CacheEffect { .membership }
}

extension GetChannel: CachedOperation {
    var cacheEffect: Sync.CacheEffect { .channel }
}
