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

    /// Tells that the user reads the channel on this device from now on (AM-45): nothing of it is unread, on this device at every moment and on the others within seconds,
    /// however much arrives. May be called again, and for several channels at once.
    ///
    /// It goes on over reconnects, and without a connection. It ends with ``stopReading()``, with ``markUnread(from:)`` on any of the user's devices, and with the membership. When
    /// the app ends or its connection is lost, the server ends it (AM-46): what hasn't arrived by then stays unread.
    ///
    /// This returns when the server has taken it, and at once without a connection. A server that can't take it now is asked again, which may take long; cancelling ends
    /// the wait, not the reading.
    /// - Throws: `RoostError` with `not_member` or another refusal of the server: then nobody reads. `CancellationError`.
    public func startReading() async throws { try await chat.driver.startReading(id) }

    /// Tells that the user doesn't read the channel on this device any more. What has arrived until now is read, also where there is no connection. Does nothing if it isn't
    /// read.
    ///
    /// - Throws: `RoostError` with `unavailable` when this device can't store it.
    public func stopReading() async throws { try await chat.driver.stopReading(id) }

    /// Marks the messages from a seq on as unread again, on all of the user's devices: to be answered later, say. It is the one act that moves the position back;
    /// the others aren't told.
    ///
    /// It is on this device's disk and shown when this returns, and is sent as soon as that is possible. What holds ``markReadWhileVisible(_:every:)`` reads what
    /// comes after it, and not these again.
    /// - Parameter seq: The seq of the first message that is to be unread.
    /// - Throws: `RoostError` with `invalid_argument` for a seq that can't be one, `unavailable` when this device can't store it.
    public func markUnread(from seq: Seq) async throws {
        let operation = MarkUnread(channel: id, seq: seq)
        try operation.validate()
        try await chat.driver.enqueue(.unread(operation))
    }
}

extension Chat {
    /// Marks all of the user's channels as read, those that have unread messages by what this device knows. See ``LiveChannel/markRead(upTo:)``.
    ///
    /// - Throws: `RoostError` with `unavailable` when this device can't store it.
    public func markAllRead() async throws {
        let unread = try await driver.files().store.read {
            try ChannelQuery(hidden: .all).places(in: $0).filter { $0.unreadCount > 0 }
        }
        for channel in unread.map(\.id) { try await driver.enqueue(.read(MarkRead(channel: channel))) }
    }
}
