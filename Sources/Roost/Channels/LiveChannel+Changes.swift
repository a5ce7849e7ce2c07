public import RoostAPI

extension LiveChannel {
    /// Replaces the given attributes of the channel. Absent ones stay unchanged; an empty text removes a value (AM-37, SB-11).
    ///
    /// - Parameters:
    ///   - displayName: Its name.
    ///   - avatarFileId: The id of one of the app's files, for its picture.
    ///   - coverUrl: The URL of its cover.
    ///   - customType: The app's own type of channel.
    ///   - data: The app's own text.
    ///   - tags: All of its tags, to find it by (AM-33).
    ///   - metadata: Replaces the whole object: the last writer wins (AM-36).
    ///   - ifMetadataVersion: Writes the metadata only if this is still its version.
    ///   - isDistinct: Whether it is the only channel of its members, at most 100, and of the users with a pending invitation.
    ///   - isPublic: Whether everyone may find and join it.
    ///   - policy: Changes to the channel's differences from its type, for the given parts.
    /// - Throws: `RoostError` with `not_permitted` unless the caller may change the channel, `conflict_version`, `already_exists` if another channel
    ///   is the distinct one of the same members, `immutable_field` for something that the type has fixed, and the errors of
    ///   ``Chat/call(_:isolation:)``.
    public func update(
        displayName: String? = nil, avatarFileId: String? = nil, coverUrl: String? = nil, customType: String? = nil,
        data: String? = nil, tags: [String]? = nil, metadata: JSONValue? = nil, ifMetadataVersion: Int? = nil,
        isDistinct: Bool? = nil, isPublic: Bool? = nil, policy: PolicyChanges? = nil
    ) async throws {
        try await call(
            UpdateChannel(
                channel: id, displayName: displayName, avatarFileId: avatarFileId, coverUrl: coverUrl, customType: customType,
                data: data, tags: tags, metadata: metadata, ifMetadataVersion: ifMetadataVersion, isDistinct: isDistinct,
                isPublic: isPublic, policy: policy))
    }

    /// Deletes the channel for everyone (AM-34); ``delete(_:)-(MessageID)`` deletes one of its messages. Deleting the channel again changes nothing.
    ///
    /// - Throws: `RoostError` with `kind_forbids` if ``ChannelPolicy/delete`` allows only admins or nobody to delete it, even for its owner;
    ///   `not_permitted` and `not_member` for others whom the policy excludes; `not_found`; and the errors of ``Chat/call(_:isolation:)``.
    public func delete() async throws { try await call(DeleteChannel(channel: id)) }

    /// Freezes the channel: only operators can send until it is unfrozen (SB-21). Freezing a frozen channel changes nothing.
    ///
    /// - Throws: `RoostError` with `not_permitted`, `kind_forbids`, and the errors of ``Chat/call(_:isolation:)``.
    public func freeze() async throws { try await call(FreezeChannel(channel: id)) }

    /// Ends a freeze (SB-21).
    ///
    /// - Throws: The errors of ``freeze()``.
    public func unfreeze() async throws { try await call(UnfreezeChannel(channel: id)) }

    /// Silences the channel for its ordinary members (AM-07).
    ///
    /// - Parameter duration: Rounded up to whole seconds; nil for no end.
    /// - Throws: The errors of ``freeze()``; `invalid_argument` for a duration that isn't more than 0, `limit_exceeded` for one of more than
    ///   `Limits.durationSeconds`.
    public func silence(for duration: Duration? = nil) async throws {
        try await call(SilenceChannel(channel: id, seconds: duration?.wholeSeconds))
    }

    /// Ends a silence (AM-07).
    ///
    /// - Throws: The errors of ``freeze()``.
    public func unsilence() async throws { try await call(UnsilenceChannel(channel: id)) }

    /// Sets a rate limit: how many messages the channel should get per window of time (AM-08).
    ///
    /// It is stored and shown; the server doesn't enforce it yet.
    ///
    /// - Parameters:
    ///   - messages: 1 to 1000 per window.
    ///   - window: 1 second to an hour.
    ///   - duration: How long the limit holds; nil for no end.
    /// - Throws: The errors of ``freeze()``; `limit_exceeded` and `invalid_argument` for values out of range.
    public func setRateLimit(messages: Int, per window: Duration, for duration: Duration? = nil) async throws {
        try await call(
            SetRateLimit(channel: id, messages: messages, windowSeconds: window.wholeSeconds, seconds: duration?.wholeSeconds))
    }

    /// Removes the rate limit (AM-08).
    ///
    /// - Throws: The errors of ``freeze()``.
    public func removeRateLimit() async throws { try await call(RemoveRateLimit(channel: id)) }

    /// Hides the channel from the user's own lists, on all the user's devices (SB-26, SB-27). When this returns, the change is stored and shown on
    /// this device. It is sent as soon as possible: ``Chat/outbox`` lists it until then, or with the error if it is refused.
    ///
    /// - Parameters:
    ///   - hidePreviousMessages: Whether the messages so far stay concealed when the channel reappears; they are deleted from this device. If a
    ///     message of the user's is queued or being sent in the channel, and doesn't wait for a refusal to end, these are all messages up to the moment
    ///     at which the server handles the request, including those that the user hasn't seen.
    ///   - allowAutoUnhide: Whether the next message brings the channel back. False archives it.
    /// - Throws: `RoostError` with `invalid_argument` for an id that no channel can have, `storage_failed`, `storage_in_use` or `storage_gone` if
    ///   this device can't store it. If this device has nothing of the channel yet, hiding its messages so far is a call: it throws `not_connected`
    ///   while offline or catching up, the server's refusal, and the errors of ``Chat/call(_:isolation:)``.
    public func hide(hidePreviousMessages: Bool = false, allowAutoUnhide: Bool = true) async throws {
        try await enqueue(
            .hide(HideChannel(channel: id, hidePreviousMessages: hidePreviousMessages, allowAutoUnhide: allowAutoUnhide)))
    }

    /// Shows a hidden channel again (SB-28). Showing a visible one changes nothing.
    ///
    /// - Throws: The errors of ``hide(hidePreviousMessages:allowAutoUnhide:)``.
    public func unhide() async throws { try await enqueue(.unhide(UnhideChannel(channel: id))) }

    /// Mutes the channel for the user alone, on all of their devices (D-29): messages still count in the channel, but not in ``Chat/unread`` and the
    /// totals of lists, and they don't bring the channel back if the user has hidden it. Other users aren't notified.
    ///
    /// When this returns, the change is stored and shown on this device. It is sent as soon as possible.
    /// - Parameter duration: Rounded up to whole seconds; nil until ``unmuteNotifications()``. It starts when the server receives it.
    /// - Throws: `RoostError` with `invalid_argument` for a duration that isn't more than 0 or an id that no channel can have, `limit_exceeded` for a
    ///   duration of more than `Limits.durationSeconds`, `storage_failed`, `storage_in_use` or `storage_gone` if this device can't store it.
    public func muteNotifications(for duration: Duration? = nil) async throws {
        let operation = MuteNotifications(channel: id, seconds: duration?.wholeSeconds)
        try operation.validate()
        try await enqueue(.mute(operation))
    }

    /// Ends ``muteNotifications(for:)``: the channel counts again, with all its unread messages. Does nothing if it isn't muted.
    ///
    /// - Throws: The errors of ``muteNotifications(for:)``.
    public func unmuteNotifications() async throws { try await enqueue(.unmute(UnmuteNotifications(channel: id))) }

    /// Asks the server whether the user may do something here, and if not, which rule refuses it and until when (AM-48).
    ///
    /// - Throws: `RoostError` with `not_found`, and the errors of ``Chat/call(_:isolation:)``.
    public func explain(_ permission: Permission) async throws -> PermissionExplanation {
        try await chat.call(ExplainPermission(channel: id, permission: permission))
    }
}

extension Duration {
    /// Seconds for durations on the wire, rounded up. A duration that isn't more than 0 becomes 0, which every operation refuses: -1 would mean no
    /// end.
    var wholeSeconds: Int {
        guard self > .zero else { return 0 }
        let (seconds, attoseconds) = components
        return Int(clamping: attoseconds > 0 ? seconds.addingReportingOverflow(1).partialValue : seconds)
    }
}
