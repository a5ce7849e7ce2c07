public import RoostAPI

extension LiveChannel {
    /// Marks the channel as read, on all of the user's devices (AM-45). The position only moves forward.
    ///
    /// It is on this device's disk and shown when this returns, and is sent as soon as that is possible; of several, the highest.
    /// - Parameter seq: The seq of the newest message seen; all that this device has of the channel when it is nil.
    /// - Throws: `RoostError` with `invalid_argument` for a seq that can't be one, `unavailable` when this device can't store it.
    public func markRead(upTo seq: Seq? = nil) async throws {
        let operation = MarkRead(channel: id, seq: seq)
        try operation.validate()
        try await chat.driver.enqueue(.read(operation))
    }
}
