public import RoostAPI

extension LiveChannel {
    /// Marks the channel as read, on all of the user's devices (AM-45). The position only moves forward.
    ///
    /// When this returns, the change is stored and shown on this device. It is sent as soon as possible; of several, only the highest.
    /// - Parameter seq: The seq of the newest message that the user has seen. If nil, everything that this device has of the channel is marked. If
    ///   this device has never followed the channel or has lost its data, as after some updates of the app, nothing is marked until it is online and
    ///   has caught up.
    /// - Throws: `RoostError` with `invalid_argument` for an invalid seq, `storage_failed`, `storage_in_use` or `storage_gone` if this device can't
    ///   store it.
    public func markRead(upTo seq: Seq? = nil) async throws {
        let operation = MarkRead(channel: id, seq: seq)
        try operation.validate()
        try await enqueue(.read(operation))
    }

    /// Starts reading the channel on this device (AM-45): nothing in it is unread any longer, at any moment on this device and within seconds on the
    /// user's other devices, however much arrives. It may be called again, and for several channels at once.
    ///
    /// Reading continues across reconnects, and while offline. It ends with ``stopReading()``, with ``markUnread(from:)`` on any of the user's
    /// devices, with the membership, and with the right to read: call this again once the right is back. When the app ends or its connection is lost,
    /// the server ends reading (AM-46): messages that arrive later stay unread. While the app is in the background nothing is read either, and reading
    /// continues when it is back (``Chat/Configuration/followsSystem``).
    ///
    /// Returns when the server has accepted it, or at once without a connection. If the server can't accept it at the moment, it is asked again,
    /// which may take long. Cancelling ends the wait, not the reading.
    /// - Throws: `RoostError` with `not_member` or another refusal of the server: reading has ended then. `CancellationError`.
    public func startReading() async throws { try await chat.driver.startReading(id) }

    /// Stops reading the channel on this device. Everything that has arrived so far is read, even while offline, except what has arrived in the
    /// background. Does nothing if the channel isn't being read.
    ///
    /// - Throws: `RoostError` with `storage_failed`, `storage_in_use` or `storage_gone` if this device can't store it.
    public func stopReading() async throws { try await chat.driver.stopReading(id) }

    /// Marks the messages from a seq on as unread again, on all of the user's devices, for example to answer them later. Nothing else moves the
    /// position back. Other users aren't notified.
    ///
    /// When this returns, the change is stored and shown on this device. It is sent as soon as possible. It also ends reading the channel, and a
    /// token from ``markReadWhileVisible(_:every:)``: later messages stay unread too, until the app starts reading again.
    /// - Parameter seq: The seq of the first message to mark as unread.
    /// - Throws: `RoostError` with `invalid_argument` for an invalid seq, `storage_failed`, `storage_in_use` or `storage_gone` if this device can't
    ///   store it.
    public func markUnread(from seq: Seq) async throws {
        let operation = MarkUnread(channel: id, seq: seq)
        try operation.validate()
        try await enqueue(.unread(operation))
    }
}

extension Chat {
    /// Marks all of the user's channels as read that have unread messages or mention the user, as far as this device knows. See
    /// ``LiveChannel/markRead(upTo:)``.
    ///
    /// Later calls wait until all marks are stored, so a channel that is marked as unread next stays unread. Leave `isolation` out, as for
    /// ``call(_:isolation:)``.
    ///
    /// - Throws: `RoostError` with `storage_failed`, `storage_in_use` or `storage_gone` if this device can't read or store it, `unauthenticated`
    ///   after ``Chat/logOut(discardingUnsent:signingOutDevice:)``; `CancellationError`.
    public func markAllRead(isolation: isolated (any Actor)? = #isolation) async throws { try await driver.markAllRead() }
}
