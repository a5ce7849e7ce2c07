public import RoostAPI

extension Chat {
    /// A channel as a live object. Each call makes a new one; keep it while it is shown.
    @MainActor public func channel(_ id: ChannelID) -> LiveChannel { LiveChannel(id, of: self) }

    /// The user's channels as a live collection. Each call makes a new one; keep it while it is shown.
    @MainActor public func channels() -> ChannelList { ChannelList(of: self) }

    /// Creates a channel. The user becomes its owner and first member (D-17).
    ///
    /// - Parameters:
    ///   - id: unique for ever; the server makes one when it is nil (AM-13).
    ///   - users: members from the start, beside the user; at most `Limits.membersPerCall` (AM-24).
    /// - Throws: `RoostError` with `already_exists` (AM-23), `not_found` for an unknown user, and as ``call(_:)`` does.
    @MainActor @discardableResult
    public func createChannel(
        _ id: ChannelID? = nil, type: ChannelType = .community, displayName: String? = nil, tags: [String]? = nil,
        metadata: JSONValue? = nil, users: [UserID]? = nil
    ) async throws -> LiveChannel {
        let created = try await call(
            CreateChannel(channel: id, type: type, displayName: displayName, tags: tags, metadata: metadata, users: users))
        return channel(created.channel.channelId)
    }
}

extension LiveChannel {
    /// Replaces what is given of the channel's attributes. What is left out stays as it is (AM-37).
    ///
    /// - Parameter metadata: replaces the whole object: the last writer wins (AM-36).
    /// - Throws: `RoostError` with `not_permitted` for who is neither owner nor operator, and as ``Chat/call(_:)`` does.
    @discardableResult
    public func update(
        displayName: String? = nil, avatarFileId: String? = nil, tags: [String]? = nil, metadata: JSONValue? = nil
    ) async throws -> Channel {
        try await chat.call(
            UpdateChannel(channel: id, displayName: displayName, avatarFileId: avatarFileId, tags: tags, metadata: metadata))
    }

    /// Deletes the channel for everyone (AM-34). Deleting it again changes nothing.
    ///
    /// - Throws: `RoostError` with `not_permitted` for who isn't its owner, and as ``Chat/call(_:)`` does.
    public func destroy() async throws { _ = try await chat.call(DeleteChannel(channel: id)) }
}
