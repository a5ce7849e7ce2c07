import Logging
import RoostAPI

/// Sending what the outbox holds: one operation at a time in each channel, in order, under the same name however often, until the server has
/// taken or refused it. Operations of no channel have a queue of their own.
///
/// - An operation is in the file before it is shown, sent, or said to be kept.
/// - What the server can't have yet is changed where it is (`Sync+Enqueuing`). What it may have isn't touched: a later operation follows.
/// - A queue waits for the end of a refusal that has one. Other refused operations stay in the file, are shown no longer, and hold nobody up.
extension Sync {
    mutating func restoreQueues(_ outbox: SavedOutbox) {
        let keyless = heldAnswers.filter { queues[$0.channel]?.withoutKey == $0.id }
        heldAnswers = []
        server = outbox.server
        lastNumber = max(lastNumber, outbox.items.map(\.number).max() ?? 0, outbox.lastNumber)
        let own = withoutThoseOfOthers(outbox)
        queues = [:]
        for item in own { queues[item.channel, default: OutboxQueue()].put(item, for: server) }
        overlays = [:]
        for channel in queues.keys {
            let overlay = overlay(of: channel)
            if !overlay.isEmpty { overlays[channel] = overlay }
        }
        // They are done, and would be carried out twice.
        for answer in keyless {
            guard let item = queues[answer.channel]?.items[answer.id] else { continue }
            complete(item)
            showOverlay(of: answer.channel)
        }
    }

    // MARK: Rows

    /// Sends a refused operation again. What is meant for another server waits for ``resolveOthers(discard:)``.
    mutating func retry(_ row: OutboxRow) {
        guard let item = item(row), item.failure != nil, isForThisServer(item) else { return }
        sendAnew(item)
    }

    /// Sends an operation to this server as if it had never been sent.
    private mutating func sendAnew(_ item: OutboxItem) {
        put(begunAnew(item))
        // This server doesn't have the message, and the id in the change is of another history.
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

    /// Returns an operation as if it had never been sent, and ends the wait for it. Refused, the server hasn't carried it out: it is another attempt.
    mutating func begunAnew(_ item: OutboxItem) -> OutboxItem {
        if item.isWaiting { endWaiting(in: item.channel) }
        var item = item
        (item.firstSentAt, item.failure, item.isWaiting, item.server) = (nil, nil, false, server)
        return item
    }

    /// Gives up an operation. One that is under way may have arrived all the same; the stream then brings what it did.
    mutating func discard(_ row: OutboxRow) {
        guard let item = item(row) else { return }
        giveUp(item)
        showOverlay(of: item.channel)
        sendNext(in: item.channel)
    }

    /// Sends the operations that were meant for another server to this one, or gives them up.
    mutating func resolveOthers(discard discards: Bool) {
        for channel in queuedChannels {
            let others = (queues[channel]?.items.values.filter { !isForThisServer($0) } ?? []).sorted { $0.place < $1.place }
            for var item in others {
                guard !discards else {
                    giveUp(item)
                    continue
                }
                (item.server, item.firstSentAt) = (server, nil)
                put(item)
                // The places that it names are in that server's history.
                if let epoch = saved.epoch { _ = leavesFormerHistory(item, for: epoch) }
            }
            if !others.isEmpty { showOverlay(of: channel) }
        }
        sendAll()
    }

    /// A user who joins takes back that they leave, which is still on its way.
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

    /// Gives up what was asked for in another history of this server, as far as it names a place there: the messages up to it are others now, which the user
    /// may not have seen.
    ///
    /// Each operation says of which history it is. The cache may be one of this history already: another chat of the same files has begun it afresh, or the
    /// process ended before the outbox was written too.
    mutating func leaveFormerHistory(for epoch: String) {
        for channel in queuedChannels {
            var isChanged = false
            for item in queues[channel]?.others ?? [] where leavesFormerHistory(item, for: epoch) { isChanged = true }
            // What they showed goes with them.
            if isChanged { showOverlay(of: channel) }
        }
    }

    /// The same for one operation.
    ///
    /// - Returns: Whether it isn't what it was any more.
    private mutating func leavesFormerHistory(_ item: OutboxItem, for epoch: String) -> Bool {
        // Of what a former version kept, nobody knows more than of which history the cache is.
        guard isForThisServer(item), let former = item.epoch ?? saved.epoch, former != epoch else { return false }
        guard let operation = item.operation.inOtherHistory else {
            remove(item)
            return true
        }
        guard operation != item.operation else { return false }
        var item = item
        // It is another request, with a key of its own.
        (item.operation, item.concealedSeq, item.firstSentAt, item.epoch) = (operation, nil, nil, epoch)
        put(item, content: true)
        return true
    }

    // MARK: Sending

    /// The connection is one to this server. What is meant for another one waits until the app decides.
    mutating func met(_ name: String?) {
        guard let name, name != server else { return }
        let former = server
        if former != nil { dropHeldAnswers(ofOtherServer: true) }
        server = name
        // It says the same of the file's rows. Those that aren't there any more, another chat has ended.
        emit(.outbox(.server(name)))
        for channel in queuedChannels {
            for var item in (queues[channel]?.items.values.map(\.self) ?? []).sorted(by: { $0.place < $1.place }) {
                // What was asked for before any server was known is for the first one that is met.
                item.server = item.server ?? former ?? name
                queues[channel]?.put(item, for: name)
            }
            showOverlay(of: channel)
        }
    }

    mutating func sendAll() {
        for channel in queuedChannels { sendNext(in: channel) }
        for channel in readingRetries.keys.sorted() { tellStartBehindOutbox(of: channel) }
    }

    mutating func sendNext(in channel: ChannelID?) {
        if let channel { tellStartBehindOutbox(of: channel) }
        guard phase == .online, var item = queues[channel]?.next else { return }
        // Another chat of the same files may have kept it, which hadn't learned yet that the server has begun another history.
        if let epoch = saved.epoch, leavesFormerHistory(item, for: epoch) {
            showOverlay(of: channel)
            return sendNext(in: channel)
        }
        let isSent = item.firstSentAt != nil && !item.isWaiting
        // What one chat sends alone, another one may have begun to send, of this process or of one that has ended.
        guard isSent, queues[channel]?.begun == item.id || !isSentByOne(item) else {
            if !isSent {
                // After a refusal, the server doesn't have it.
                guard let merged = mergeChanges(ofUnsent: item) else { return sendNext(in: channel) }
                item = merged
                // It goes out once the file says that the server may: one that isn't noted would be sent under another name after a restart.
                noteSending(&item)
            }
            item.server = server
            (item.failure, item.isWaiting) = (nil, false)
            queues[channel]?.put(item, for: server)
            queues[channel]?.noting = item.id
            queues[channel]?.notesAgain = isSent
            emit(.outbox(.sending(item.id, of: channel, at: serverTime, to: server)))
            return emit(.noted(item.id, of: channel))
        }
        queues[channel]?.inFlight = item.id
        let key = queues[channel]?.withoutKey == item.id ? nil : item.key
        send(item.operation.operation, for: .send(item.id, of: channel, isMessage: item.operation.sent != nil), key: key)
    }

    /// From now on the server may have an operation, and it has a key if it takes one. Of many that come often, some are sent without at first; they are
    /// repeated with it.
    mutating func noteSending(_ item: inout OutboxItem) {
        item.firstSentAt = serverTime
        guard item.operation.comesOften, !keyAllowance.take(at: serverTime) else { return }
        queues[item.channel, default: OutboxQueue()].withoutKey = item.id
    }

    /// In place of a caller. The numbers below it stand for operations that are given up without one.
    static let nobody: CallToken = 0

    /// What is to be sent next is in the file as that. It is sent as it is there: since a time by which the server knows it from another chat of the same files,
    /// and as that one may have changed it.
    mutating func noted(_ id: Int64, of channel: ChannelID?, as row: OutboxItem?, isTaken: Bool) {
        guard queues[channel]?.noting == id, let known = queues[channel]?.items[id] else { return }
        queues[channel]?.noting = nil
        if var row, !(isTaken && isSentByOne(row)) {
            // Among those that this chat knows it stays where it is.
            row.number = known.number
            queues[channel]?.put(row, for: server)
            queues[channel]?.begun = id
            if row.operation != known.operation { showOverlay(of: channel) }
        } else {
            lost(known)
        }
        sendNext(in: channel)
    }

    mutating func sendAgain(in channel: ChannelID?) {
        queues[channel]?.isWaiting = false
        sendNext(in: channel)
    }

    mutating func sendFinished(_ id: Int64, of channel: ChannelID?, _ result: Result<[UInt8], RoostError>) {
        // Its event came before the reply, and did all that there is to do.
        guard queues[channel]?.inFlight == id, let item = queues[channel]?.items[id] else { return }
        // What it did may be among the events that are held until what was missed is there. It is shown as on its way until then.
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

    /// An answer that waits for what was missed.
    struct HeldAnswer: Hashable, Sendable {
        /// The operation that the server has carried out.
        var id: Int64
        var channel: ChannelID?
        var bytes: [UInt8]
    }

    /// Ends the operations whose answers waited for what was missed: the rows that they changed are there.
    mutating func finishHeldAnswers() {
        let answers = heldAnswers
        heldAnswers = []
        for answer in answers { sendFinished(answer.id, of: answer.channel, .success(answer.bytes)) }
    }

    /// What was missed will not bring what the answers are about: the server has begun another history, or is another one. The operations are sent again, and
    /// the server knows them by their keys. One that was sent without a key would be carried out twice, so it ends here, as do all where the server is another one.
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
        // Nobody is asked what is to become of a mark or a draft of a week ago.
        let isForgotten = error.code == .keyExpired && item.operation.comesOften
        if isFull || isForgotten, item.key != nil, queues[channel]?.withoutKey != item.id {
            // The server keeps no more keys of this user, or not this one any more, and has done nothing now. What the user asked for counts for more
            // than that a lost answer might have it done twice.
            queues[channel]?.withoutKey = item.id
            return
        }
        if error.code == .internalError { queues[channel]?.internalErrors += 1 }
        let internalErrors = queues[channel]?.internalErrors ?? 0
        if error.isRetryable, internalErrors < settings.internalErrorsMax {
            return waitToRetry(in: channel, error.retryAfterMilliseconds.map(Self.wait))
        }
        if item.operation.endsWithMembership, [.notMember, .banned, .notFound, .notPermitted].contains(error.code) {
            // Nobody has to decide what becomes of it.
            log(.info, "\(type(of: item.operation.operation).name) isn't tried again: \(error.message)")
            return remove(item)
        }
        var item = item
        item.failure = error
        if settings.waitsForEndOfRefusal, let until = error.until, until < .forever {
            item.isWaiting = true
            put(item)
            guard mergeChanges(ofUnsent: item) != nil else { return }
            queues[channel]?.letsOthersPass = true
            // The end may come earlier: a moderator changes their mind.
            return waitToSend(
                in: channel, Self.wait(milliseconds: until.milliseconds.subtractingWithSaturation(serverTime.milliseconds)))
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

    /// Waits for as long as the server asks, and longer from one retry to the next.
    mutating func waitToRetry(in channel: ChannelID?, _ delay: Duration? = nil) {
        let doubled = settings.backoff.lowerBound * (1 << min(queues[channel]?.retries ?? 0, 16))
        queues[channel]?.retries += 1
        queues[channel]?.letsOthersPass = false
        waitToSend(in: channel, max(min(settings.backoff.upperBound, doubled), delay ?? .zero))
    }

    /// A queue that waits already doesn't wait longer: it was a refusal of something else, and what waits for that is due when it ends.
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

    /// Nothing is under way without a connection. Operations that were are sent again on the next one, but for those that are answered: they are done, and end
    /// when what was missed is there.
    mutating func stopSending() {
        let answered = Set(heldAnswers.map(\.id))
        for channel in queuedChannels {
            if queues[channel]?.inFlight.map(answered.contains) != true {
                queues[channel]?.inFlight = nil
                // A repetition has its key in any case.
                queues[channel]?.withoutKey = nil
            }
            if queues[channel]?.isWaiting == true { endWaiting(in: channel) }
        }
    }

    // MARK: The queues and the file

    /// The channels that have a queue, in an order that the same history repeats.
    var queuedChannels: [ChannelID?] { queues.keys.sorted { $0?.rawValue ?? "" < $1?.rawValue ?? "" } }

    func isForThisServer(_ item: OutboxItem) -> Bool { item.server == nil || item.server == server }

    func item(_ row: OutboxRow) -> OutboxItem? {
        switch row {
        case .operation(let id, let channel): queues[channel]?.items[id]
        case .message(let key): queues[key.channel].flatMap { queue in queue.messages[key.clientId].flatMap { queue.items[$0] } }
        }
    }

    /// The operations that change a message, in their order.
    func changes(of message: ChangedMessage, in channel: ChannelID) -> [OutboxItem] {
        queues[channel]?.changes(of: message) ?? []
    }

    /// Puts another state of an operation into its queue and the file, which may not have it any more: another chat of the same files may have ended it.
    ///
    /// - Parameter content: Whether what it asks for is another too. Else the file's stays, which another chat may have changed.
    mutating func put(_ item: OutboxItem, content: Bool = false) {
        queues[item.channel, default: OutboxQueue()].put(item, for: server)
        emit(.outbox(.update(item, content: content)))
    }

    /// Removes an operation that isn't to be carried out any more.
    mutating func remove(_ item: OutboxItem) { remove(item, .remove(item.id, of: item.channel)) }

    /// Removes an operation that the server has carried out.
    mutating func complete(_ item: OutboxItem) { remove(item, .done(item.id, of: item.channel)) }

    mutating func remove(_ item: OutboxItem, _ write: OutboxWrite) {
        // Its queue waits for the end of this refusal.
        if queues[item.channel]?.items[item.id]?.isWaiting == true { endWaiting(in: item.channel) }
        emit(.outbox(write))
        forget(item)
    }

    /// Removes an operation from its queue, and not from the file.
    mutating func forget(_ item: OutboxItem) {
        _ = queues[item.channel]?.remove(item.id)
        guard queues[item.channel]?.isEmpty == true else { return }
        emit(.cancelTimer(.outbox(item.channel)))
        queues[item.channel] = nil
    }

    // MARK: What is shown

    /// - Parameter others: What other chats of the same files have in the outbox of the channel.
    func overlay(of channel: ChannelID?, beside others: [OutboxItem] = []) -> Overlay {
        var queue = queues[channel] ?? OutboxQueue()
        for item in others { queue.put(item, for: server) }
        var overlay = Overlay((queue.others + queue.newestChanges).filter { queue.isShown($0, by: server) })
        // What is read at this moment is read as far as this device has it.
        if let channel, reading[channel] != nil, let cursor = saved.channels[channel]?.cursor {
            overlay.readSeq = max(overlay.readSeq ?? 0, cursor)
        }
        return overlay
    }

    mutating func showOverlay(of channel: ChannelID?) {
        let writes = overlayWrite(of: channel)
        if !writes.isEmpty { emit(.store(writes)) }
    }

    /// The write that makes a store show a channel's overlay; none if it does.
    mutating func overlayWrite(of channel: ChannelID?) -> [StoreWrite] {
        let overlay = overlay(of: channel)
        guard overlay != overlays[channel] ?? Overlay() else { return [] }
        overlays[channel] = overlay.isEmpty ? nil : overlay
        return [.overlay(channel, overlays[channel])]
    }

    /// Has a store that has failed show all overlays, whatever it shows.
    mutating func showOverlays() {
        mustShowOverlays = false
        for channel in reading.keys { _ = overlayWrite(of: channel) }
        emit(.store(overlayWrites))
    }

    /// The writes that make a store show all overlays, and no others.
    var overlayWrites: [StoreWrite] {
        let channels = overlays.keys.sorted { $0?.rawValue ?? "" < $1?.rawValue ?? "" }
        return [.keepOverlays(Set(channels))] + channels.map { .overlay($0, overlays[$0]) }
    }
}
