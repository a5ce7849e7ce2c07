public import RoostAPI

extension LiveChannel {
    /// Marks the channel as read, on all of the user's devices (AM-45). The position only moves forward.
    ///
    /// - Parameter seq: The seq of the newest message seen; all of the channel when it is nil.
    /// - Throws: `RoostError` with `not_member`, and as ``Chat/call(_:)`` does.
    @discardableResult
    public func markRead(upTo seq: Seq? = nil) async throws -> UnreadCount {
        try await chat.call(MarkRead(channel: id, seq: seq))
    }
}
