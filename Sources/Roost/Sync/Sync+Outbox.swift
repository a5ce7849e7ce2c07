import Logging
import RoostAPI

/// Sending the outbox: in each channel one operation at a time, in order, under the same key however often, until the server has accepted or refused
/// it. Operations without a channel have their own queue.
///
/// - An operation is in the file before it is shown, sent, or reported as kept.
/// - An operation that the server can't have yet is changed in place (`Sync+Enqueuing`). One that it may have isn't touched: a later operation follows.
/// - A queue waits for the end of a refusal that has one. Other refused operations stay in the file, are no longer shown, and block nothing.
extension Sync {
    mutating func restoreQueues(_ outbox: SavedOutbox) {
        let keyless = heldAnswers.filter { queues[$0.channel]?.withoutKey == $0.id }
        heldAnswers = []
        server = outbox.server
        lastNumber = max(lastNumber, outbox.items.map(\.number).max() ?? 0, outbox.lastNumber)
        let own = withoutMessagesOfOtherChats(outbox)
        unknownRows = []
        queues = [:]
        for item in own { queues[item.channel, default: OutboxQueue()].put(item, for: server) }
        overlays = [:]
        for channel in queues.keys {
            let overlay = overlay(of: channel)
            if !overlay.isEmpty { overlays[channel] = overlay }
        }
        // They are done: sent again, they would be carried out twice.
        for answer in keyless {
            guard let item = queues[answer.channel]?.items[answer.id] else { continue }
            complete(item)
            showOverlay(of: answer.channel)
        }
    }

    // MARK: Rows

    /// Sends a refused operation again. An operation meant for another server waits for ``resolveOthers(discard:)``.
    mutating func retry(_ row: OutboxRow) {
        guard let item = itemOfAnyChat(row), item.failure != nil, isForThisServer(item) else { return }
        takeOver(item)
        resend(item)
    }

    /// Sends an operation to this server as if it had never been sent.
    private mutating func resend(_ item: OutboxItem) {
        put(resetToUnsent(item))
        // This server doesn't have the message, and the id in the change belongs to another history.
        if let refused = refusedMessage(of: item), let key = refused.message { mergeChanges(of: refused, key) }
        showOverlay(of: item.channel)
        sendNext(in: item.channel)
    }

    /// Returns the message that an operation changes, if that was refused.
    private func refusedMessage(of change: OutboxItem) -> OutboxItem? {
        guard let channel = change.channel, case .sent(let client)? = change.operation.changed.first,
            let message = item(.message(MessageKey(channel: channel, clientId: client))), message.isRefused
        else { return nil }
        return message
    }

    /// Returns an operation as if it had never been sent, and ends the wait for it. The server hasn't carried out a refused one: this is a new attempt.
    mutating func resetToUnsent(_ item: OutboxItem) -> OutboxItem {
        if item.isWaiting { endWaiting(in: item.channel) }
        var item = item
        (item.firstSentAt, item.failure, item.isWaiting, item.server) = (nil, nil, false, server)
        return item
    }

    /// Discards an operation. One that is in flight may arrive all the same; its effect then arrives with the stream.
    mutating func discard(_ row: OutboxRow) {
        guard let item = itemOfAnyChat(row) else { return }
        takeOver(item)
        giveUp(item)
        showOverlay(of: item.channel)
        sendNext(in: item.channel)
    }

    /// Sends the operations that were meant for another server to this one, or discards them.
    mutating func resolveOthers(discard discards: Bool) {
        let server = server
        takeOverRows { $0.server != nil && $0.server != server }
        for channel in queuedChannels {
            let others = (queues[channel]?.items.values.filter { !isForThisServer($0) } ?? []).sorted { $0.place < $1.place }
            for var item in others {
                guard !discards else {
                    giveUp(item)
                    continue
                }
                (item.server, item.firstSentAt) = (server, nil)
                put(item)
                // The seqs that it names belong to that server's history.
                if let epoch = saved.epoch { _ = discardIfFromFormerHistory(item, for: epoch) }
            }
            if !others.isEmpty { showOverlay(of: channel) }
        }
        sendAll()
    }

    /// Takes back the pending leave of a user who joins.
    ///
    /// - Parameter name: The channel's id, or `type:id`. A channel whose own id has that form is found first.
    mutating func giveUpLeaving(_ name: ChannelID) {
        let isLeft = queues[name]?.others.contains { if case .leave = $0.operation { true } else { false } } ?? false
        let channel = isLeft || saved.channels[name] != nil ? name : withoutType(name)
        for item in queues[channel]?.others ?? [] {
            if case .leave = item.operation, queues[channel]?.inFlight != item.id { remove(item) }
        }
        showOverlay(of: channel)
        sendNext(in: channel)
    }

    /// Discards what was requested in another history of this server, as far as it names a seq there: the messages up to it are others now, which the
    /// user may not have seen.
    ///
    /// Each operation records its history. The cache may belong to this history already: another chat of the same files has started it over, or the
    /// process ended before the outbox was written too.
    mutating func discardFormerHistory(for epoch: String) {
        for channel in queuedChannels {
            var isChanged = false
            for item in queues[channel]?.others ?? [] where discardIfFromFormerHistory(item, for: epoch) { isChanged = true }
            // What they showed is removed with them.
            if isChanged { showOverlay(of: channel) }
        }
    }

    /// The same for one operation.
    ///
    /// - Returns: Whether it was changed or removed.
    private mutating func discardIfFromFormerHistory(_ item: OutboxItem, for epoch: String) -> Bool {
        // For operations of a former version, only the history of the cache is known.
        guard isForThisServer(item), let former = item.epoch ?? saved.epoch, former != epoch else { return false }
        guard let operation = item.operation.inOtherHistory else {
            remove(item)
            return true
        }
        guard operation != item.operation else { return false }
        var item = item
        // It is another request, with its own key.
        (item.operation, item.concealedSeq, item.firstSentAt, item.epoch) = (operation, nil, nil, epoch)
        put(item, content: true)
        return true
    }

    // MARK: Sending

    /// The connection is to this server. Operations meant for another one wait until the app decides.
    mutating func noteServer(_ name: String?) {
        guard let name, name != server else { return }
        let former = server
        if former != nil { dropHeldAnswers(ofOtherServer: true) }
        server = name
        // The same is applied to the file's rows. Another chat has ended those that no longer exist.
        emit(.outbox(.server(name)))
        for channel in queuedChannels {
            for var item in (queues[channel]?.items.values.map(\.self) ?? []).sorted(by: { $0.place < $1.place }) {
                // Operations requested before any server was known are for the first one that is met.
                item.server = item.server ?? former ?? name
                queues[channel]?.put(item, for: name)
            }
            showOverlay(of: channel)
        }
    }

    mutating func sendAll() {
        for channel in queuedChannels { sendNext(in: channel) }
        for channel in readingRetries.keys.sorted() { reportDelayedStart(of: channel) }
    }

    mutating func sendNext(in channel: ChannelID?) {
        if let channel { reportDelayedStart(of: channel) }
        guard phase == .online, var item = queues[channel]?.next else { return }
        // Another chat of the same files may have kept it before it learned that the server has begun another history.
        if let epoch = saved.epoch, discardIfFromFormerHistory(item, for: epoch) {
            showOverlay(of: channel)
            return sendNext(in: channel)
        }
        let isSent = item.firstSentAt != nil && !item.isWaiting
        // Another chat, of this process or of one that has ended, may have begun to send what only one chat may send.
        guard isSent, queues[channel]?.begun == item.id || !isSentByOneChat(item) else {
            if !isSent {
                // After a refusal, the server doesn't have it.
                guard let merged = mergeChanges(ofUnsent: item) else { return sendNext(in: channel) }
                item = merged
                // It is sent once the file says that the server may have it: otherwise it would be sent under another key after a restart.
                noteSending(&item)
            }
            item.server = server
            (item.failure, item.isWaiting) = (nil, false)
            queues[channel]?.put(item, for: server)
            queues[channel]?.noting = item.id
            queues[channel]?.notesAgain = isSent
            emit(.outbox(.sending(item.id, of: channel, at: serverTime, to: server)))
            return emit(.awaitNoted(item.id, of: channel))
        }
        queues[channel]?.inFlight = item.id
        let key = queues[channel]?.withoutKey == item.id ? nil : item.key
        send(item.operation.operation, for: .send(item.id, of: channel, isMessage: item.operation.sent != nil), key: key)
    }

    /// Notes that the server may have an operation from now on; it then has a key if it takes one. Of many frequent ones, some are sent without a key
    /// at first, and repeated with it.
    mutating func noteSending(_ item: inout OutboxItem) {
        item.firstSentAt = serverTime
        guard item.operation.isFrequent, !keyAllowance.take(at: serverTime) else { return }
        queues[item.channel, default: OutboxQueue()].withoutKey = item.id
    }

    /// Stands for no caller. The numbers below it stand for operations that are discarded without one.
    static let nobody: CallToken = 0

    /// The next operation to send is noted in the file. It is sent as it is there: with the time under which another chat of the same files may have
    /// sent it, and as that chat may have changed it.
    mutating func noted(_ id: Int64, of channel: ChannelID?, as row: OutboxItem?, isTaken: Bool) {
        guard queues[channel]?.noting == id, let known = queues[channel]?.items[id] else { return }
        queues[channel]?.noting = nil
        if var row, !(isTaken && isSentByOneChat(row)) {
            // It keeps its place among those that this chat knows.
            row.number = known.number
            queues[channel]?.put(row, for: server)
            queues[channel]?.begun = id
            if row.operation != known.operation { showOverlay(of: channel) }
        } else {
            forgetTakenByAnotherChat(known)
        }
        sendNext(in: channel)
    }

    mutating func sendAgain(in channel: ChannelID?) {
        queues[channel]?.isWaiting = false
        sendNext(in: channel)
    }

    mutating func sendFinished(_ id: Int64, of channel: ChannelID?, _ result: Result<[UInt8], RoostError>) {
        // Its event arrived before the reply, and did everything.
        guard queues[channel]?.inFlight == id, let item = queues[channel]?.items[id] else { return }
        // Its effect may be among the events that are held until missed ones have arrived. It is shown as pending until then.
        if phase == .catchingUp, item.message == nil, case .success(let bytes) = result {
            return heldAnswers.append(HeldAnswer(id: id, channel: channel, bytes: bytes))
        }
        queues[channel]?.inFlight = nil
        switch result {
        case .success(let bytes):
            if let message = item.message {
                acknowledge(item, message, bytes)
            } else {
                settleChange(item, bytes)
                complete(item)
            }
        case .failure(let error): sendFailed(item, error)
        }
        showOverlay(of: channel)
        sendNext(in: channel)
    }

    /// An answer that waits for missed events.
    struct HeldAnswer: Hashable, Sendable {
        /// The operation that the server has carried out.
        var id: Int64
        var channel: ChannelID?
        var bytes: [UInt8]
    }

    /// Ends the operations whose answers waited for missed events: the rows that they changed have arrived.
    mutating func finishHeldAnswers() {
        let answers = heldAnswers
        heldAnswers = []
        for answer in answers { sendFinished(answer.id, of: answer.channel, .success(answer.bytes)) }
    }

    /// Missed events won't bring the effects of the answers: the server has begun another history, or is another one. The operations are sent again, and the
    /// server recognises their keys. One that was sent without a key would be carried out twice, so it ends here, as all do if the server is another one.
    mutating func dropHeldAnswers(ofOtherServer isOther: Bool = false) {
        let answers = heldAnswers
        heldAnswers = []
        for answer in answers where queues[answer.channel]?.inFlight == answer.id {
            let isKeyless = queues[answer.channel]?.withoutKey == answer.id
            queues[answer.channel]?.inFlight = nil
            queues[answer.channel]?.withoutKey = nil
            guard isKeyless || isOther, let item = queues[answer.channel]?.items[answer.id] else { continue }
            complete(item)
            showOverlay(of: answer.channel)
        }
    }

    mutating func sendFailed(_ item: OutboxItem, _ error: RoostError) {
        let channel = item.channel
        let isFull = error.code == .limitExceeded && error.field == IdempotencyKey.member
        // The app isn't asked what to do with a mark or a draft of a week ago.
        let isForgotten = error.code == .keyExpired && item.operation.isFrequent
        if isFull || isForgotten, item.key != nil, queues[channel]?.withoutKey != item.id {
            // The server keeps no more keys for this user, or no longer keeps this one, and has done nothing now. Carrying out the user's request
            // matters more than the risk that a lost answer has it done twice.
            queues[channel]?.withoutKey = item.id
            return
        }
        if error.code == .internalError { queues[channel]?.internalErrors += 1 }
        let internalErrors = queues[channel]?.internalErrors ?? 0
        if error.isRetryable, internalErrors < settings.internalErrorsMax {
            return waitToRetry(in: channel, error.retryAfterMilliseconds.map(Self.pause))
        }
        if item.operation.endsWithMembership, [.notMember, .banned, .notFound, .notPermitted].contains(error.code) {
            // The app needn't decide about it.
            log(.info, "\(type(of: item.operation.operation).name) isn't tried again: \(error.message)")
            return remove(item)
        }
        var item = item
        item.failure = error
        if settings.waitsForEndOfRefusal, let until = error.until, until < .forever {
            // The server may accept the purge now, which would wait behind it.
            if isPurgedLater(item) { return remove(item) }
            item.isWaiting = true
            put(item)
            guard mergeChanges(ofUnsent: item) != nil else { return }
            queues[channel]?.allowsOvertaking = true
            // The end may come earlier: a moderator may change their mind. The time that the server says is left needs no clock here.
            let rest = Self.pause(
                milliseconds: error.retryAfterMilliseconds
                    ?? until.milliseconds.subtractingWithSaturation(serverTime.milliseconds))
            // If the server's clock has been set back since the welcome, the end seems past while the server still refuses.
            let pause = retryPause(in: channel)
            if rest < pause { queues[channel]?.retries += 1 }
            return waitToSend(in: channel, max(rest, pause))
        }
        item.isWaiting = false
        put(item)
        queues[channel]?.internalErrors = 0
        queues[channel]?.retries = 0
        if let key = item.message {
            emit(.settled(key, .failure(error)))
            mergeChanges(of: item, key)
        }
    }

    /// Whether an operation restores a message that a later pending one deletes permanently.
    private func isPurgedLater(_ item: OutboxItem) -> Bool {
        guard case .undelete(let undelete) = item.operation else { return false }
        return changes(of: .stored(undelete.message), in: undelete.channel).contains { later in
            guard case .purge = later.operation else { return false }
            return later.place > item.place && !later.isRefused && isForThisServer(later)
        }
    }

    /// Waits as long as the server asks, and longer with each retry.
    mutating func waitToRetry(in channel: ChannelID?, _ delay: Duration? = nil) {
        let pause = retryPause(in: channel)
        queues[channel]?.retries += 1
        queues[channel]?.allowsOvertaking = false
        waitToSend(in: channel, max(pause, delay ?? .zero))
    }

    /// The shortest pause before the next retry.
    private func retryPause(in channel: ChannelID?) -> Duration {
        min(settings.backoff.upperBound, settings.backoff.lowerBound * (1 << min(queues[channel]?.retries ?? 0, 16)))
    }

    /// A queue that is already waiting doesn't wait longer: the earlier refusal was of something else, and what waits for that is due when it ends.
    private mutating func waitToSend(in channel: ChannelID?, _ delay: Duration) {
        let end = serverTime.adding(delay)
        if let queue = queues[channel], queue.isWaiting, let earlier = queue.waitsUntil, earlier <= end { return }
        queues[channel]?.isWaiting = true
        queues[channel]?.waitsUntil = end
        emit(.startTimer(.outbox(channel), delay))
    }

    mutating func endWaiting(in channel: ChannelID?) {
        queues[channel]?.isWaiting = false
        emit(.cancelTimer(.outbox(channel)))
    }

    /// Ends sending without a connection. Operations in flight are sent again on the next one, except answered ones: they are done, and end when
    /// missed events have arrived.
    mutating func stopSending() {
        let answered = Set(heldAnswers.map(\.id))
        for channel in queuedChannels {
            if queues[channel]?.inFlight.map(answered.contains) != true {
                queues[channel]?.inFlight = nil
                // A repetition always has its key.
                queues[channel]?.withoutKey = nil
            }
            if queues[channel]?.isWaiting == true { endWaiting(in: channel) }
        }
    }

    // MARK: The queues and the file

    /// The channels that have a queue, in a deterministic order.
    var queuedChannels: [ChannelID?] { queues.keys.sorted { $0?.rawValue ?? "" < $1?.rawValue ?? "" } }

    func isForThisServer(_ item: OutboxItem) -> Bool { item.server == nil || item.server == server }

    func item(_ row: OutboxRow) -> OutboxItem? {
        switch row {
        case .operation(let id, let channel): queues[channel]?.items[id]
        case .message(let key): queues[key.channel].flatMap { queue in queue.messages[key.clientId].flatMap { queue.items[$0] } }
        }
    }

    /// The operations that change a message, in order.
    func changes(of message: ChangedMessage, in channel: ChannelID) -> [OutboxItem] {
        queues[channel]?.changes(of: message) ?? []
    }

    /// Stores a new state of an operation in its queue and the file. The file may no longer have it: another chat of the same files may have ended it.
    ///
    /// - Parameter content: Whether its content has changed too. Otherwise the file's content stays, which another chat may have changed.
    mutating func put(_ item: OutboxItem, content: Bool = false) {
        queues[item.channel, default: OutboxQueue()].put(item, for: server)
        emit(.outbox(.update(item, content: content)))
    }

    /// Removes an operation that is no longer to be carried out.
    mutating func remove(_ item: OutboxItem) { remove(item, .remove(item.id, of: item.channel)) }

    /// Removes an operation that the server has carried out.
    mutating func complete(_ item: OutboxItem) { remove(item, .done(item.id, of: item.channel)) }

    mutating func remove(_ item: OutboxItem, _ write: OutboxWrite) {
        // Its queue waits for this refusal to end.
        if queues[item.channel]?.items[item.id]?.isWaiting == true { endWaiting(in: item.channel) }
        emit(.outbox(write))
        forget(item)
    }

    /// Removes an operation from its queue but not from the file.
    mutating func forget(_ item: OutboxItem) {
        _ = queues[item.channel]?.remove(item.id)
        guard queues[item.channel]?.isEmpty == true else { return }
        emit(.cancelTimer(.outbox(item.channel)))
        queues[item.channel] = nil
    }

    // MARK: What is shown

    /// - Parameter others: The operations of other chats of the same files in the channel's outbox.
    func overlay(of channel: ChannelID?, beside others: [OutboxItem] = []) -> Overlay {
        var queue = queues[channel] ?? OutboxQueue()
        for item in others { queue.put(item, for: server) }
        var overlay = Overlay((queue.others + queue.newestChanges).filter { queue.isShown($0, by: server) })
        if let channel, let seq = readHere(channel) { overlay.readSeq = max(overlay.readSeq ?? 0, seq) }
        return overlay
    }

    mutating func showOverlay(of channel: ChannelID?) {
        let writes = overlayWrite(of: channel)
        if !writes.isEmpty { emit(.store(writes)) }
    }

    /// The write that makes a store show a channel's overlay; empty if it already does.
    mutating func overlayWrite(of channel: ChannelID?) -> [StoreWrite] {
        let overlay = overlay(of: channel)
        guard overlay != overlays[channel] ?? Overlay() else { return [] }
        overlays[channel] = overlay.isEmpty ? nil : overlay
        return [.overlay(channel, overlays[channel])]
    }

    /// Makes a store that has failed show all overlays, whatever it shows.
    mutating func showOverlays() {
        mustShowOverlays = false
        for channel in reading.keys { _ = overlayWrite(of: channel) }
        emit(.store(overlayWrites))
    }

    /// The writes that make a store show all overlays and no others.
    var overlayWrites: [StoreWrite] {
        let channels = overlays.keys.sorted { $0?.rawValue ?? "" < $1?.rawValue ?? "" }
        return [.keepOverlays(Set(channels))] + channels.map { .overlay($0, overlays[$0]) }
    }
}
