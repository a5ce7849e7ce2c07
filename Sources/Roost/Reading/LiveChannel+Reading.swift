public import RoostAPI

extension LiveChannel {
    /// Marks the channel as read, on all of the user's devices (AM-45). The position only moves forward.
    ///
    /// It is on this device's disk and shown when this returns, and is sent as soon as possible; of several, only the highest.
    /// - Parameter seq: The seq of the newest message that the user has seen. If nil, everything that this device has of the channel is marked: nothing as long as
    ///   it isn't online, or still catches up, if it has never followed the channel or has lost what it had, as after some updates of the app.
    /// - Throws: `RoostError` with `invalid_argument` for a seq that can't be one, `unavailable` when this device can't store it.
    public func markRead(upTo seq: Seq? = nil) async throws {
        let operation = MarkRead(channel: id, seq: seq)
        try operation.validate()
        try await enqueue(.read(operation))
    }

    /// Begins reading the channel on this device (AM-45): nothing in it is unread any more, at any moment on this device and within seconds on the user's others,
    /// however much arrives. It may be called again, and for several channels at once.
    ///
    /// Reading continues across reconnects, and while offline. It ends with ``stopReading()``, with ``markUnread(from:)`` on any of the user's devices, with the membership, and
    /// with the right to read: call this again when that is back. When the app ends or its connection is lost, the server ends it (AM-46): what hasn't arrived by
    /// then stays unread.
    ///
    /// This returns when the server has accepted it, or at once without a connection. If the server can't accept it at the moment, it is asked again, which may take
    /// long. Cancelling ends the wait, not the reading.
    /// - Throws: `RoostError` with `not_member` or another refusal of the server: then reading has ended. `CancellationError`.
    public func startReading() async throws { try await chat.driver.startReading(id) }

    /// Ends reading the channel on this device. What has arrived so far is read, even while offline. Does nothing if the channel isn't being read.
    ///
    /// - Throws: `RoostError` with `unavailable` when this device can't store it.
    public func stopReading() async throws { try await chat.driver.stopReading(id) }

    /// Marks the messages from a seq on as unread again, on all of the user's devices, for example to answer them later. Nothing else moves the position back.
    /// Other users aren't told.
    ///
    /// It is on this device's disk and shown when this returns, and is sent as soon as possible. Reading the channel ends with it, and so does a token from
    /// ``markReadWhileVisible(_:every:)``: later messages stay unread too, until the app begins again.
    /// - Parameter seq: The seq of the first message that is to be unread.
    /// - Throws: `RoostError` with `invalid_argument` for a seq that can't be one, `unavailable` when this device can't store it.
    public func markUnread(from seq: Seq) async throws {
        let operation = MarkUnread(channel: id, seq: seq)
        try operation.validate()
        try await enqueue(.unread(operation))
    }
}

extension Chat {
    /// Marks as read all of the user's channels that have unread messages or mention the user, as far as this device knows. See
    /// ``LiveChannel/markRead(upTo:)``.
    ///
    /// - Throws: `RoostError` with `unavailable` when this device can't read or store it, `unauthenticated` after ``Chat/logOut(discardingUnsent:)``;
    ///   `CancellationError`.
    public func markAllRead() async throws {
        let unread: Set<ChannelID>
        do {
            unread = try await driver.prepare().store.read { database in
                let places = try ChannelQuery(hidden: .all).places(in: database)
                // A message that was read may mention the user since it was edited. Deleted channels aren't among the places.
                let mentioning = try Set(places.map(\.id)).intersection(database.mentioningChannels())
                return Set(places.filter { $0.unreadCount > 0 }.map(\.id)).union(mentioning)
            }
        } catch {
            throw driver.thrown(error)
        }
        for channel in unread.sorted() { try await driver.enqueue(.read(MarkRead(channel: channel))) }
    }
}
