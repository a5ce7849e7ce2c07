import RoostAPI

/// How other chats of the same files use the outbox, in this process or in another that had them. The file decides: what is in it is still to be
/// sent, as it says, and what no longer is, another chat has sent or discarded.
extension Sync {
    /// Continues from what the files hold, which other chats of this process or another may have had. Nothing is in flight.
    mutating func reopened(_ saved: SavedState, _ outbox: SavedOutbox) {
        guard phase == .idle else { return }
        let former = self.saved
        self.saved = saved
        userRequests.forget()
        restoreSettlingLost(from: outbox)
        emit(.store(overlayWrites))
        for channel in reading.keys.sorted() { showOverlay(of: channel) }
        // Channels that were followed while watched no longer are: the next connection starts them again.
        for (channel, visit) in watches.visits.sorted(by: { $0.key < $1.key }) {
            endVisit(of: channel)
            rememberVisit(of: channel, from: former.channels[channel]?.cursor ?? visit.start)
        }
        // A visit may have ended while the files were released.
        emit(.store([.keepVisits([])]))
    }

    /// Restores the queues from the file. Another chat of the same files may have ended operations there: callers that wait for such a message are notified.
    mutating func restoreSettlingLost(from outbox: SavedOutbox) {
        let before = queues.values.flatMap { $0.items.values.compactMap(\.message) }
        restoreAcknowledged(from: outbox)
        let gone = before.filter { item(.message($0)) == nil }
        for key in gone.sorted(by: { ($0.channel, $0.clientId) < ($1.channel, $1.clientId) }) { settleLost(key) }
    }

    /// Takes over the operations that another chat of the same files has left, including those it was sending.
    mutating func takeOver(_ outbox: SavedOutbox) {
        readOutbox(outbox)
        var channels: [ChannelID?] = []
        for item in unknownRows where !channels.contains(item.channel) { channels.append(item.channel) }
        takeOverRows { _ in true }
        for channel in channels {
            showOverlay(of: channel)
            sendNext(in: channel)
        }
    }

    /// Takes in what another chat has changed, sent or discarded, before anything is decided by what this one knows. Operations that this chat is
    /// writing or sending stay as it knows them. Those that it doesn't know stay with the other chat, which sends or leaves them (``takeOver(_:)``),
    /// unless a request that comes right after this concerns them (``takeOverRows(where:)``).
    mutating func readOutbox(_ outbox: SavedOutbox) {
        lastNumber = max(lastNumber, outbox.lastNumber)
        noteUnknownRows(of: outbox)
        let rows = Dictionary(outbox.items.map { ($0.id, $0) }) { first, _ in first }
        let channels = queuedChannels
        let known = channels.flatMap { queues[$0]?.resting ?? [] }
        var changed: Set<ChannelID?> = []
        // First, because a change of a message that is gone may name it by its id now.
        for item in known {
            guard let row = rows[item.id], row != item, queues[item.channel]?.items[item.id] != nil else { continue }
            changed.insert(item.channel)
            guard !(item.isUnsent && !row.isUnsent && isSentByOneChat(row) && outbox.others.contains(row.id)) else {
                forgetTakenByAnotherChat(item)
                continue
            }
            queues[item.channel]?.put(row, for: server)
            if let key = row.message, let error = row.failure, row.isRefused, !item.isRefused {
                emit(.settled(key, .failure(error)))
            }
        }
        for item in known where rows[item.id] == nil {
            // It may have been removed with its message.
            guard let gone = queues[item.channel]?.items[item.id] else { continue }
            forgetTakenByAnotherChat(gone)
            changed.insert(item.channel)
        }
        for channel in channels where changed.contains(channel) {
            showOverlay(of: channel)
            sendNext(in: channel)
        }
    }

    /// Notes which operations only other chats know. A message that was acknowledged here isn't one: its row stays until the stream brings it.
    private mutating func noteUnknownRows(of outbox: SavedOutbox) {
        unknownRows = withoutMessagesOfOtherChats(outbox).filter { row in
            queues[row.channel]?.items[row.id] == nil && row.message.map { acknowledged[$0] == nil } ?? true
        }
    }

    /// Puts operations that only other chats know into this chat's queues, which sends them from then on: the caller cancels them, changes them, or
    /// adds what has to follow them, before anything is sent.
    mutating func takeOverRows(where matches: (OutboxItem) -> Bool) {
        for row in unknownRows where matches(row) { queues[row.channel, default: OutboxQueue()].put(row, for: server) }
        unknownRows.removeAll(where: matches)
    }

    /// Returns the operation that a row names, also one that only another chat knows: the app is shown both alike.
    func itemOfAnyChat(_ row: OutboxRow) -> OutboxItem? { item(row) ?? unknownRows.first { $0.isNamed(by: row) } }

    /// Takes over an operation that only another chat knows, with the refused message that it changes: the change is sent as part of that.
    mutating func takeOver(_ item: OutboxItem) {
        takeOverRows { row in row.id == item.id || row.isRefused && row.message != nil && row.message == item.pendingMessage }
    }

    /// Whether the chat that has begun to send an operation sends it alone: an ephemeral channel doesn't recognise a message by its client id, and
    /// everyone would get it twice.
    func isSentByOneChat(_ item: OutboxItem) -> Bool { item.message.map { isEphemeral($0.channel) } ?? false }

    /// Returns the outbox without the messages that another chat has begun to send alone, and without their changes: they stay with that chat, and come back if
    /// it leaves them (``takeOver(_:)``). For those that no chat here has begun to send, the first one that is about to asks the file (``sendNext(in:)``).
    func withoutMessagesOfOtherChats(_ outbox: SavedOutbox) -> [OutboxItem] {
        let sent = outbox.items.filter { outbox.others.contains($0.id) && !$0.isUnsent && isSentByOneChat($0) }
        guard !sent.isEmpty else { return outbox.items }
        let others = Set(sent.compactMap(\.message))
        return outbox.items.filter { item in item.pendingMessage.map { !others.contains($0) } ?? true }
    }

    /// Forgets an operation that another chat of the same files has sent or discarded.
    mutating func forgetTakenByAnotherChat(_ item: OutboxItem) {
        if queues[item.channel]?.items[item.id]?.isWaiting == true { endWaiting(in: item.channel) }
        forget(item)
        if let key = item.message {
            for change in changes(of: .sent(key.clientId), in: key.channel) { forget(change) }
            settleLost(key)
        }
        showOverlay(of: item.channel)
    }

    mutating func settleLost(_ key: MessageKey) {
        let error = RoostError(.unavailable, "Another chat had this user's files, and has sent or discarded the message.")
        emit(.settled(key, .failure(error)))
    }

    // MARK: What is shown

    /// Returns writes of the cache, with what other chats of the same files have requested: the overlay of a channel is one row, which each of them writes.
    ///
    /// - Parameters:
    ///   - outbox: The content of the file.
    ///   - ended: The operations that this chat is about to remove from it.
    func showingOthers(_ writes: [StoreWrite], _ outbox: SavedOutbox, without ended: Set<Int64>) -> [StoreWrite] {
        let unknown = outbox.items.filter { queues[$0.channel]?.items[$0.id] == nil && !ended.contains($0.id) }
        guard !unknown.isEmpty else { return writes }
        let others = Dictionary(grouping: unknown, by: \.channel)
        func write(of channel: ChannelID?) -> StoreWrite {
            let overlay = overlay(of: channel, beside: others[channel] ?? [])
            return .overlay(channel, overlay.isEmpty ? nil : overlay)
        }
        return writes.flatMap { requested -> [StoreWrite] in
            switch requested {
            case .overlay(let channel, _) where others[channel] != nil: return [write(of: channel)]
            case .keepOverlays(let kept):
                let more = others.keys.filter { !kept.contains($0) }.sorted { $0?.rawValue ?? "" < $1?.rawValue ?? "" }
                return [.keepOverlays(kept.union(more))] + more.map(write)
            default: return [requested]
            }
        }
    }
}
