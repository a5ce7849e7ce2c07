import Logging
import RoostAPI

/// Adding operations to the outbox: those that the server can't have yet are changed, and where only the last one counts, only the last one is kept.
extension Sync {
    mutating func enqueue(
        _ operation: OutboxOperation, id: Int64, at time: Timestamp, serverReadSeq: Seq = 0, mayBeDeleted: Bool = false,
        for token: CallToken
    ) {
        lastNumber = lastNumber.addingWithSaturation(1)
        let item = OutboxItem(id: id, number: lastNumber, operation: operation, createdAt: time, server: server, epoch: saved.epoch)
        if operation.isConcealing, let channel = operation.channel, ownPosition(in: channel) == nil {
            return concealUnfollowed(operation, for: token)
        }
        switch operation {
        case .send(let message): enqueue(item, sending: message, for: token)
        case .edit(let edit, let client): enqueue(item, edit, client, for: token)
        case .delete(let delete, let client): enqueue(item, delete, client, mayBeDeleted: mayBeDeleted, for: token)
        case .undelete(let undelete): enqueue(item, undelete, mayBeDeleted: mayBeDeleted, for: token)
        case .deleteMany, .deleteForMe, .purge: enqueue(item, deleting: operation.changed, mayBeDeleted: mayBeDeleted, for: token)
        case .metaArrays: keep(item, for: token)
        case .read(let read): enqueue(item, read, serverReadSeq: serverReadSeq, for: token)
        case .unread(let unread):
            // A user who wants to see it unread has stopped reading.
            endReading(unread.channel)
            keep(item, for: token)
        case .reset(let reset):
            var item = item
            item.concealedSeq = ownPosition(in: reset.channel)?.cursor
            item.operation = .reset(ResetHistory(channel: reset.channel, upTo: seenSeq(in: reset.channel)))
            let superseded = pending(in: item.channel) { earlier in
                if case .reset = earlier.operation { earlier.isUnsent && !isInFlight(earlier) } else { false }
            }
            keep(item, removing: superseded, for: token)
        case .hide, .unhide:
            var item = item
            if case .hide(var hide) = operation {
                hide.upTo = seenSeq(in: hide.channel)
                item.operation = .hide(hide)
            }
            let isConcealing = operation.isConcealing
            if isConcealing { item.concealedSeq = item.channel.flatMap { ownPosition(in: $0)?.cursor } }
            // Hiding with the messages so far does more than the next one reverts, unless that conceals more of them.
            let superseded = pending(in: item.channel) { earlier in
                guard earlier.operation.isVisibility, earlier.isUnsent, !isInFlight(earlier) else { return false }
                return isConcealing || earlier.isRefused || !earlier.operation.isConcealing
            }
            keep(item, removing: superseded, for: token)
        case .mute, .unmute:
            let superseded = pending(in: item.channel) { $0.operation.isMuting && $0.isUnsent && !isInFlight($0) }
            keep(item, removing: superseded, for: token)
        case .leave:
            let same = pending(in: item.channel) { if case .leave = $0.operation { true } else { false } }
            if let known = same.first(where: { !$0.isRefused }) { return join(known, for: token) }
            // After this one the server would refuse a draft that is held back.
            if let channel = item.channel { releaseDraft(in: channel) }
            keep(item, removing: same, for: token)
        case .draft(let draft): enqueue(item, draft, for: token)
        case .preferences(let update): enqueue(item, update, for: token)
        }
    }

    /// How far the user has seen a channel, so that hiding and concealing leave out what arrives before the server learns of them. Nil while the user's own
    /// messages are pending, which are meant too: their seqs aren't known yet. Messages that can't be sent now don't count: much else may precede them.
    private func seenSeq(in channel: ChannelID) -> Seq? {
        if let queue = queues[channel], !(queue.isWaiting && queue.allowsOvertaking),
            queue.messages.values.contains(where: { queue.items[$0].map { $0.failure == nil && isForThisServer($0) } ?? false })
        {
            return nil
        }
        return acknowledged.keys.contains { $0.channel == channel } ? nil : ownPosition(in: channel)?.cursor
    }

    /// Conceals everything in a channel of which this device has nothing. The operation isn't kept: carried out later, it would conceal messages that
    /// have arrived by then, unseen. If the server can be reached now, it is asked once, because it may know the channel by this name, and the caller
    /// gets its answer.
    private mutating func concealUnfollowed(_ operation: OutboxOperation, for token: CallToken) {
        guard phase == .online else {
            let error = RoostError(
                .notConnected, "This device has nothing of the channel to conceal.", field: "channel")
            return emit(.reply(token, .failure(error)))
        }
        call(operation.operation, for: token)
    }

    private mutating func enqueue(_ item: OutboxItem, sending message: SendMessage, for token: CallToken) {
        let key = MessageKey(channel: message.channel, clientId: message.clientId)
        if let known = acknowledged[key] {
            emit(.settled(key, .success(known.message)))
            return reply(token)
        }
        // Sending with a client id that is already pending isn't a second message. If that message was refused, or was meant for another server, this
        // is a new attempt, with the current content.
        if var known = self.item(.message(key)) {
            guard known.failure != nil || !isForThisServer(known) else { return join(known, for: token) }
            known.operation = item.operation
            // The changes meant for it on another server don't apply to this attempt.
            let former = changes(of: .sent(message.clientId), in: message.channel).filter { !isForThisServer($0) }
            return keep(resetToUnsent(known), removing: former, for: token)
        }
        keep(item, for: token)
    }

    private mutating func enqueue(_ item: OutboxItem, _ edit: EditMessage, _ client: ClientID?, for token: CallToken) {
        guard let target = target(edit.message, client, in: edit.channel, for: token) else { return }
        if case .sent(let client) = target, var sent = self.item(.message(MessageKey(channel: edit.channel, clientId: client))),
            sent.isUnsent
        {
            // Edits made while the server might have it precede this one. Refused ones aren't applied unless they are retried.
            var superseded: [OutboxItem] = []
            let counted = changes(of: target, beside: sent).filter { !$0.isRefused }
            for case (let earlier, .edit(let before, _)) in counted.map({ ($0, $0.operation) }) {
                sent.operation = sent.operation.edited(before)
                superseded.append(earlier)
            }
            sent.operation = sent.operation.edited(edit)
            return keepChanged(sent, removing: superseded, for: token)
        }
        let item = aimed(item, at: target, in: edit.channel)
        if var earlier = changes(of: target, beside: item).last(where: { !$0.isRefused }), earlier.isUnsent,
            case .edit(let before, let client) = earlier.operation
        {
            earlier.operation = .edit(before.followed(by: edit), of: client)
            return keepChanged(earlier, for: token)
        }
        keep(item, for: token)
    }

    /// Deletes a message.
    ///
    /// - Parameter mayBeDeleted: Whether the server may have deleted the message before all pending operations.
    private mutating func enqueue(
        _ item: OutboxItem, _ delete: DeleteMessage, _ client: ClientID?, mayBeDeleted: Bool, for token: CallToken
    ) {
        guard let target = target(delete.message, client, in: delete.channel, for: token) else { return }
        if case .sent(let client) = target,
            let sent = self.item(.message(MessageKey(channel: delete.channel, clientId: client))), sent.isUnsent
        {
            return takeBack(sent, for: token)
        }
        let item = aimed(item, at: target, in: delete.channel)
        let earlier = changes(of: target, beside: item)
        // A message that is restored before is deleted again. The deletion of several isn't enough: the server may refuse it for another one.
        let last = earlier.last { ($0.operation.isDeletionOfOne || $0.operation.isUndeletion) && !$0.isRefused }
        if let last, last.operation.isDeletionOfOne { return join(last, for: token) }
        // The others stay: if this one is taken back, they count again.
        let isPointless = endsWithPointlessUndeletion(earlier, mayBeDeleted: mayBeDeleted)
        let superseded = earlier.filter { isTakenBack($0) && ($0.isRefused || isPointless && $0.operation.isUndeletion) }
        keep(item, removing: superseded, for: token)
    }

    /// Restores a message: one whose deletions the server can't have yet was never deleted. Other messages that they name are still deleted. A deletion
    /// that only another chat of the same files knows counts too.
    ///
    /// - Parameter mayBeDeleted: Whether the server may have deleted the message before all pending operations.
    private mutating func enqueue(_ item: OutboxItem, _ undelete: UndeleteMessage, mayBeDeleted: Bool, for token: CallToken) {
        let earlier = deletionsAndUndeletions(of: undelete.message, beside: item)
        if let last = earlier.last, last.operation.isUndeletion { return join(last, for: token) }
        // What precedes an earlier undeletion is reverted by that one.
        let start = earlier.lastIndex(where: { $0.operation.isUndeletion }).map { $0 + 1 } ?? earlier.startIndex
        let deletions = earlier.suffix(from: start)
        // Each of them is cancelled, changed or followed in this step: an unsent one doesn't stay in this queue, which would send it.
        takeOverRows { row in deletions.contains { $0.id == row.id } }
        let unsent = deletions.filter { $0.isUnsent && !isInFlight($0) }
        guard let oldest = unsent.first else { return keep(item, for: token) }
        // Then the undeletion is sent: cancelling the unsent deletions isn't enough. A pending undeletion before them is, so it isn't requested twice.
        let isDeleted = unsent.count < deletions.count || mayBeDeleted && start == earlier.startIndex
        let ofOthers = unsent.compactMap { $0.sparing(undelete.message) }
        let kept = Set(ofOthers.map(\.id))
        let superseded = unsent.filter { !kept.contains($0.id) }
        // The caller waits for the oldest one: another chat of the same files that has sent any of them has sent that one.
        for deletion in ofOthers where isDeleted || deletion.id != oldest.id {
            queues[deletion.channel]?.put(deletion, for: server)
            emit(.outbox(.change(deletion.id, of: deletion.channel, to: deletion)))
        }
        if isDeleted { return keep(item, removing: superseded, for: token) }
        if let changed = ofOthers.first, changed.id == oldest.id { return keepChanged(changed, removing: superseded, for: token) }
        takeBack(oldest, with: Array(superseded.dropFirst()), for: token)
    }

    /// Returns the deletions and undeletions of a message that count, in order, with those that only another chat of the same files knows.
    private func deletionsAndUndeletions(of message: MessageID, beside item: OutboxItem) -> [OutboxItem] {
        let others = unknownRows.filter {
            $0.channel == item.channel && $0.operation.changed.contains(.stored(message)) && !$0.isForAnother(than: item.server)
        }
        return (changes(of: .stored(message), beside: item) + others)
            .filter { !$0.isRefused && ($0.operation.isDeletion || $0.operation.isUndeletion) }
            .sorted { $0.place < $1.place }
    }

    /// Deletes a message permanently, several at once, or some for the user alone.
    ///
    /// - Parameter mayBeDeleted: Whether the server may have deleted the one message before all pending operations.
    private mutating func enqueue(
        _ item: OutboxItem, deleting messages: [ChangedMessage], mayBeDeleted: Bool, for token: CallToken
    ) {
        let earlier = messages.flatMap { changes(of: $0, beside: item) }
        if let known = repeated(by: item, among: earlier) { return join(known, for: token) }
        // If the server refuses one of several messages, it deletes none.
        guard case .purge = item.operation else { return keep(item, for: token) }
        // A pending undeletion stays: if this one is taken back, it counts again. One that waits for a mute to end would hold this one up.
        let isPointless = endsWithPointlessUndeletion(earlier, mayBeDeleted: mayBeDeleted)
        let superseded = earlier.filter {
            isTakenBack($0) && ($0.isRefused || $0.isWaiting || isPointless || !$0.operation.isUndeletion)
        }
        keep(item, removing: superseded, for: token)
    }

    /// Whether the last change of a message that counts restores it, though the message may be deleted. If it is deleted again, that is pointless: sent,
    /// it would publish the message for a moment, and restoring the message later requests another undeletion. An edit after it needs it.
    private func endsWithPointlessUndeletion(_ changes: [OutboxItem], mayBeDeleted: Bool) -> Bool {
        guard changes.last(where: { !$0.isRefused })?.operation.isUndeletion == true else { return false }
        return mayBeDeleted || changes.contains { $0.operation.isDeletion && !$0.isUnsent }
    }

    /// Returns the changes of a message that are for the same server as another operation: those for another server don't concern this one's message.
    private func changes(of message: ChangedMessage, beside item: OutboxItem) -> [OutboxItem] {
        guard let channel = item.channel else { return [] }
        return changes(of: message, in: channel).filter { !$0.isForAnother(than: item.server) }
    }

    /// Returns the same deletion if it is already pending, and nothing after it restores one of its messages.
    private func repeated(by item: OutboxItem, among earlier: [OutboxItem]) -> OutboxItem? {
        let counted = earlier.filter { !$0.isRefused }
        guard let known = counted.filter({ $0.operation == item.operation }).max(by: { $0.place < $1.place }) else { return nil }
        // The others can't be undone.
        guard case .deleteMany = item.operation else { return known }
        return counted.contains { $0.operation.isUndeletion && $0.place > known.place } ? nil : known
    }

    /// Whether a change of one message can be dropped when the message is deleted. An edit can't: the deletion may be refused or taken back.
    private func isTakenBack(_ item: OutboxItem) -> Bool {
        guard item.isUnsent, !isInFlight(item) else { return false }
        return switch item.operation {
        case .delete, .undelete: true
        default: false
        }
    }

    private mutating func enqueue(_ item: OutboxItem, _ read: MarkRead, serverReadSeq: Seq, for token: CallToken) {
        var (item, read) = (item, read)
        // Without a seq, it means everything that this device has: a message that arrives later wasn't seen.
        guard let seq = read.seq ?? ownPosition(in: read.channel)?.cursor else { return markUnfollowed(read, for: token) }
        read.seq = seq
        item.operation = .read(read)
        var superseded: [OutboxItem] = []
        // Messages marked as unread since an earlier mark are read by this one alone.
        let unmarked =
            pending(in: read.channel) { if case .unread = $0.operation { true } else { false } }.map(\.number).max() ?? -1
        // What the server has reported as read isn't marked again: another device may have marked it as unread since, which this one may not have learned yet.
        guard unmarked >= 0 || seq > serverReadSeq else {
            showOverlay(of: read.channel)
            return reply(token)
        }
        for earlier in pending(in: read.channel, where: { $0.number > unmarked }) {
            guard case .read(let before) = earlier.operation else { continue }
            if !earlier.isRefused, before.seq ?? -1 >= seq { return join(earlier, for: token) }
            if earlier.isUnsent, !isInFlight(earlier) { superseded.append(earlier) }
        }
        keep(item, removing: superseded, for: token)
    }

    /// Marks a channel as read of which this device has nothing. The mark isn't kept: carried out later, it would mark messages that have
    /// arrived by then, unseen. If the server can be reached now, it is asked once, because it may know the channel by this name.
    private mutating func markUnfollowed(_ read: MarkRead, for token: CallToken) {
        reply(token)
        if phase == .online { call(read, for: Self.nobody) }
    }

    /// Merges all updates that can't have been sent into one. A refused one stays beside it, unless this one overrides all of it.
    private mutating func enqueue(_ item: OutboxItem, _ update: UpdatePreferences, for token: CallToken) {
        var item = item
        var merged: UpdatePreferences?
        var superseded: [OutboxItem] = []
        let earlier = pending(in: nil) { $0.isUnsent && !isInFlight($0) }
        for case (let other, .preferences(let before)) in earlier.map({ ($0, $0.operation) }) where !other.isRefused {
            merged = merged?.followed(by: before) ?? before
            superseded.append(other)
        }
        let whole = merged?.followed(by: update) ?? update
        for case (let other, .preferences(let before)) in earlier.map({ ($0, $0.operation) }) where other.isRefused {
            if before.followed(by: whole) == whole { superseded.append(other) }
        }
        item.operation = .preferences(whole)
        keep(item, removing: superseded, for: token)
    }

    /// Only the final text counts: a draft that is being typed is sent once in a while, and its removal at once.
    private mutating func enqueue(_ item: OutboxItem, _ draft: SetDraft, for token: CallToken) {
        let earlier = pending(in: draft.channel) { $0.operation.draft != nil }
        if let last = earlier.last(where: { !$0.isRefused }), last.operation.draft == draft { return join(last, for: token) }
        let superseded = earlier.filter { $0.isUnsent && !isInFlight($0) }
        if !draft.text.isEmpty {
            if queues[draft.channel]?.held == nil { emit(.startTimer(.draft(draft.channel), settings.draftPause)) }
            queues[draft.channel, default: OutboxQueue()].hold(item.id)
        }
        keep(item, removing: superseded, for: token)
    }

    /// Sends the draft that was held back.
    mutating func releaseDraft(in channel: ChannelID) {
        queues[channel]?.release(for: server)
        sendNext(in: channel)
    }

    /// The user's draft in a channel, if it is pending.
    func queuedDraft(in channel: ChannelID) -> SetDraft? {
        pending(in: channel) { $0.operation.draft != nil && !$0.isRefused }.last?.operation.draft
    }

    /// The message that a change is about. Nil if there is none; the caller then gets an error.
    private mutating func target(
        _ message: MessageID, _ client: ClientID?, in channel: ChannelID, for token: CallToken
    ) -> ChangedMessage? {
        guard let client else { return .stored(message) }
        let key = MessageKey(channel: channel, clientId: client)
        if let known = acknowledged[key] { return .stored(known.message.messageId) }
        if item(.message(key)) != nil { return .sent(client) }
        emit(.reply(token, .failure(RoostError.notFound("pending message", field: "clientId"))))
        return nil
    }

    private func aimed(_ item: OutboxItem, at target: ChangedMessage, in channel: ChannelID) -> OutboxItem {
        var item = item
        switch target {
        case .stored(let message): item.operation = item.operation.resolved(message)
        case .sent(let client):
            // Any server other than that of its message doesn't know it.
            if let sent = self.item(.message(MessageKey(channel: channel, clientId: client))) { item.server = sent.server }
        }
        return item
    }

    func pending(in channel: ChannelID?, where matches: (OutboxItem) -> Bool) -> [OutboxItem] {
        queues[channel]?.others.filter { isForThisServer($0) && matches($0) } ?? []
    }

    private func isInFlight(_ item: OutboxItem) -> Bool { queues[item.channel]?.inFlight == item.id }

    // MARK: Into the file

    private mutating func reply(_ token: CallToken) { if token > Self.nobody { emit(.reply(token, .success([]))) } }

    /// Answers a caller whose operation exists already, once that is in the file: if it can't be written, nothing is kept for this caller either.
    private mutating func join(_ known: OutboxItem, for token: CallToken) {
        guard queues[known.channel]?.isBeingWritten(known.id) == true else { return reply(token) }
        queues[known.channel]?.beginWriting(known.id, isNew: false)
        // This caller has no write of its own.
        keeping[token] = 0
        emit(.awaitKept(token, known.id, of: known.channel))
    }

    /// Writes an operation, or a new state of it, in place of others. It is sent and shown once it is in the file.
    private mutating func keep(_ item: OutboxItem, removing superseded: [OutboxItem] = [], for token: CallToken) {
        keep(item, removing: superseded, for: token) { .put($0) }
    }

    /// The same for a new state of an operation that the server can't have. If another chat of the same files has sent or discarded it, the caller
    /// gets an error.
    private mutating func keepChanged(_ item: OutboxItem, removing superseded: [OutboxItem] = [], for token: CallToken) {
        keep(item, removing: superseded, for: token) { .change($0.id, of: $0.channel, to: $0) }
    }

    private mutating func keep(
        _ item: OutboxItem, removing superseded: [OutboxItem], for token: CallToken, by write: (OutboxItem) -> OutboxWrite
    ) {
        var item = item
        let isHeld = queues[item.channel]?.held == item.id
        let isNext = phase == .online && queues[item.channel]?.isIdle ?? true && isForThisServer(item) && !isHeld
        if isNext, !item.isRefused { noteSending(&item) }
        let isNew = queues[item.channel]?.items[item.id] == nil
        queues[item.channel, default: OutboxQueue()].put(item, for: server)
        if isNext, !item.isRefused { queues[item.channel]?.begun = item.id }
        emit(.outbox(write(item)))
        queues[item.channel]?.beginWriting(item.id, isNew: isNew)
        for earlier in superseded {
            // An operation that another chat of the same files is sending stays.
            if earlier.isUnsent { remove(earlier, .change(earlier.id, of: earlier.channel, to: nil)) } else { remove(earlier) }
        }
        keeping[token] = 1 + superseded.count
        emit(.awaitKept(token, item.id, of: item.channel))
    }

    /// Discards an operation, with those that change the message that it sends. The caller, and those who wait for the message, are notified once it is no
    /// longer in the file: until then a restart would send it. The caller gets an error if another chat of the same files has sent or discarded it.
    ///
    /// - Parameter others: Unsent operations that are discarded with it.
    mutating func takeBack(_ item: OutboxItem, with others: [OutboxItem] = [], for token: CallToken) {
        var changes: [OutboxItem] = []
        if let message = item.message {
            changes = self.changes(of: .sent(message.clientId), in: message.channel)
            givenUp[token] = message
        }
        for change in changes { remove(change) }
        for other in others { remove(other, .change(other.id, of: other.channel, to: nil)) }
        if token > Self.nobody { remove(item, .change(item.id, of: item.channel, to: nil)) } else { remove(item) }
        keeping[token] = changes.count + others.count + 1
        emit(.awaitKept(token, item.id, of: item.channel))
    }

    /// The same without a waiting caller. An operation that is still in the file continues, as its row says.
    mutating func giveUp(_ item: OutboxItem) { takeBack(item, for: Self.nobody.subtractingWithSaturation(item.id)) }

    mutating func kept(_ id: Int64, of channel: ChannelID?, isGone: Bool, _ inFlight: [OutboxItem], for token: CallToken) {
        guard keeping.removeValue(forKey: token) != nil else { return }
        // If forgotten, it would be sent by the other chat alone, and perhaps after later requests.
        let inFlight = inFlight.filter { !isSentByOneChat($0) }
        for item in inFlight { queues[item.channel, default: OutboxQueue()].put(item, for: server) }
        guard !isGone else {
            return changedNothing(of: id, in: channel, isInFlight: inFlight.contains { $0.id == id }, for: token)
        }
        settleGivenUp(token)
        queues[channel]?.endWriting(id)
        showOverlay(of: channel)
        reply(token)
        sendNext(in: channel)
    }

    /// The operation to change or take back belongs to another chat by now.
    private mutating func changedNothing(of id: Int64, in channel: ChannelID?, isInFlight: Bool, for token: CallToken) {
        if let message = givenUp.removeValue(forKey: token), !isInFlight { settleLost(message) }
        queues[channel]?.endWriting(id)
        if !isInFlight, let item = queues[channel]?.items[id] { forgetTakenByAnotherChat(item) }
        showOverlay(of: channel)
        if token > Self.nobody {
            let error = RoostError(.notFound, "Another chat has sent or discarded the operation to change.")
            emit(.reply(token, .failure(error)))
        }
        sendNext(in: channel)
    }

    private mutating func settleGivenUp(_ token: CallToken) {
        guard let message = givenUp.removeValue(forKey: token) else { return }
        emit(.settled(message, .failure(RoostError(.notFound, "The message was discarded."))))
    }

    /// The file's content applies if a caller waits for something to be kept. Operations that couldn't be removed from it are sent again after a restart.
    mutating func outboxFailed(_ outbox: SavedOutbox?, _ reason: String, _ code: RoostError.Code, isAwaited: Bool) {
        log(.error, "The outbox couldn't be written: \(reason)")
        let unsent = queuedChannels.filter { queues[$0]?.noting != nil }
        for channel in unsent { queues[channel]?.cancelNoting() }
        // What has been awaited since isn't part of the failure.
        if isAwaited, !keeping.isEmpty {
            continueSending(from: outbox, RoostError(code, "This device's outbox couldn't be written: \(reason)"))
        }
        for channel in unsent where queues[channel] != nil { waitToRetry(in: channel) }
        // An operation may have been blocked by a write that is no longer awaited.
        sendAll()
    }

    private mutating func continueSending(from outbox: SavedOutbox?, _ error: RoostError) {
        if var outbox {
            // Operations that were to be discarded are still in the file, and continue.
            givenUp = [:]
            // The server has these messages. Their rows stay until the stream brings them.
            outbox.items.removeAll { $0.message.map { acknowledged[$0] != nil } ?? false }
            let (before, known, answers) = (queues, server, heldAnswers)
            heldAnswers = []
            restoreQueues(outbox)
            // The file may not have the server of this connection yet. What is meant for another server must not be sent to it.
            noteServer(known)
            for (channel, queue) in before {
                if let id = queue.inFlight, queues[channel]?.items[id] != nil {
                    queues[channel]?.inFlight = id
                    if queue.withoutKey == id { queues[channel]?.withoutKey = id }
                }
                queues[channel]?.isWaiting = queue.isWaiting
                queues[channel]?.waitsUntil = queue.waitsUntil
                queues[channel]?.allowsOvertaking = queue.allowsOvertaking
                queues[channel]?.retries = queue.retries
            }
            // Missed events are still to come, and end the operations of these answers.
            heldAnswers = answers.filter { queues[$0.channel]?.inFlight == $0.id }
            // A channel being read is shown as read without an operation.
            let shown = Set(before.keys).union(queues.keys).union(reading.keys.map(Optional.some))
            for channel in shown.sorted(by: { $0?.rawValue ?? "" < $1?.rawValue ?? "" }) {
                _ = overlayWrite(of: channel)
                emit(.store([.overlay(channel, overlays[channel])]))
            }
        }
        if outbox == nil { dropUnwritten() }
        for token in keeping.keys.sorted() {
            settleGivenUp(token)
            if token > Self.nobody { emit(.reply(token, .failure(error))) }
        }
        keeping = [:]
    }

    /// The content of the file is unknown. Operations that were to be added and never were are dropped, and their callers get an error. Others
    /// continue as they are here: no write is awaited any longer.
    private mutating func dropUnwritten() {
        for channel in queuedChannels {
            let dropped = queues[channel]?.cancelWriting() ?? []
            for item in dropped { forget(item) }
            showOverlay(of: channel)
        }
    }
}
