import RoostAPI

/// The user's permissions in a channel: whether its messages reach this client, and requests for permissions that events report only for others.
extension Sync {
    // MARK: Holes

    /// Whether a channel's rows can't be applied after a hole: they bring the messages that follow it, or the right to read them.
    func mustRefresh(_ channel: ChannelID, _ rows: Rows, born: Int) -> Bool {
        saved.channels[channel]?.hasHole == true && (born > 0 || regainsReading(rows, in: channel))
    }

    /// Returns whether the user may again read a channel that has a hole. A change of the type or of a role causes no event here: it shows with the
    /// next message.
    func regainsReading(_ rows: Rows, in channel: ChannelID) -> Bool {
        ownPosition(in: channel)?.hasHole == true && mayRead(channel, by: rows) == true
    }

    /// Notes a hole if rows say that the user may not read: new messages would show in the message count, but no count reveals edits, deletions and mentions.
    ///
    /// - Returns: Whether the position has changed.
    @discardableResult
    mutating func noteReading(_ rows: Rows, in channel: ChannelID) -> Bool {
        guard mayRead(channel, by: rows) == false else { return false }
        return noteHole(in: channel)
    }

    /// The same for each channel for which rows of the user's stream have the user's own permissions.
    mutating func holeWrites(_ rows: Rows) -> [StoreWrite] {
        var writes: [StoreWrite] = []
        for id in (rows.ownCapabilities ?? [:]).keys.sorted() {
            let channel = ChannelID(id)
            if noteReading(rows, in: channel) { writes += advanceWrite(of: channel) }
        }
        return writes
    }

    private mutating func noteHole(in channel: ChannelID) -> Bool {
        // The messages of an ephemeral channel couldn't be fetched again, and those that are cached would be lost.
        guard let position = saved.channels[channel], !position.hasHole, !position.hasEnded, position.messageCount != nil else {
            return false
        }
        saved.channels[channel]?.hasHole = true
        return true
    }

    /// Whether the user may read a channel, as far as rows say.
    private func mayRead(_ channel: ChannelID, by rows: Rows) -> Bool? {
        if let own = rows.ownCapabilities?[channel.rawValue] { return own.contains(.historyRead) }
        // The lists apply to members.
        guard let lists = rows.capabilities, role == .user, !isVisited(channel) else { return nil }
        // A deleted role grants what every member has.
        let list = channelRoles[channel].flatMap { lists[$0.rawValue] } ?? lists[ChannelRole.member.rawValue]
        return list?.contains(.historyRead)
    }

    // MARK: Asking

    /// Notes the channels for which an event has permissions that may not be this user's: events have those of ordinary users.
    mutating func noteForeignPermissions(of event: IncomingEvent) {
        let rows = event.rows.rows
        switch event.stream {
        case .user: if role != .user { permissionsToRequest.formUnion((rows.ownCapabilities ?? [:]).keys.map { ChannelID($0) }) }
        case .channel(let channel):
            guard let lists = rows.capabilities else { return }
            // After a restart the user's role in the channel is unknown until the first row with it. That is worth a request only if it decides
            // whether missed messages are fetched: otherwise all members would ask at the same moment.
            let isUnclear = channelRoles[channel] == nil && saved.channels[channel]?.hasHole == true
            let mayRegain = isUnclear && lists.values.contains { $0.contains(.historyRead) }
            if role != .user || mayRegain || isVisited(channel) { permissionsToRequest.insert(channel) }
        }
    }

    /// At most one request per channel is in flight: an event that arrives meanwhile causes another one.
    mutating func askForPermissions() {
        guard phase == .online, !permissionsToRequest.isEmpty else { return }
        for channel in permissionsToRequest.sorted() where !calls.values.contains(.permissions(channel)) {
            permissionsToRequest.remove(channel)
            guard saved.channels[channel]?.hasEnded == false else { continue }
            askedPermissions[channel] = saved.channels[channel]?.cursor
            send(GetChannel(channel: channel), for: .permissions(channel))
        }
    }

    mutating func permissionsArrived(of channel: ChannelID, _ result: Result<[UInt8], RoostError>) {
        switch result {
        // Asked again with the next event, or on the next connection.
        case .failure(let error): if error.isRetryable { permissionsToRequest.insert(channel) }
        case .success(let bytes):
            let answer = CachedAnswer(.channel, bytes)
            if case .channel(let view, _) = answer, view.channel.channelId == channel, saved.channels[channel] != nil {
                arrived(.channel, answer)
                applyReading(of: view)
            }
            askForPermissions()
        }
    }

    private mutating func applyReading(of view: ChannelView) {
        let channel = view.channel.channelId
        // An answer from before the event that caused the request says nothing of the current permissions.
        guard let membership = view.membership, membership.state == .member, let position = saved.channels[channel],
            view.channel.counters.seq >= askedPermissions[channel] ?? 0
        else {
            return
        }
        channelRoles[channel] = membership.role
        guard view.ownCapabilities.contains(.historyRead) else {
            if noteHole(in: channel) { emit(.store(advanceWrite(of: channel))) }
            return
        }
        guard position.hasHole else { return }
        resuming.toRefresh.insert(channel)
        if phase == .online { catchUp() }
    }
}
