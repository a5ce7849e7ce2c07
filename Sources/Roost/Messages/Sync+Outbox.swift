import RoostAPI

/// The messages of one channel that are on their way.
struct SendQueue: Hashable, Sendable {
    /// In the order of sending, refused ones included until they are retried or discarded.
    var items: [OutboxItem] = []
    /// The one that the server is asked to store right now.
    var inFlight: ClientID?
    /// Whether a refusal that may pass is being waited out.
    var isWaiting = false
    /// Times that the server answered the first item with `internal_error`.
    var internalErrors = 0
    /// Retries in a row.
    var retries = 0

    mutating func insert(_ item: OutboxItem) {
        let index = items.firstIndex { $0.number > item.number } ?? items.endIndex
        items.insert(item, at: index)
    }

    /// The message to send next, unless one is under way.
    var next: OutboxItem? { inFlight == nil && !isWaiting ? items.first { $0.failure == nil } : nil }
}

/// Sending: one message at a time in each channel, in order, with the same client id however often, until the server has taken or
/// refused it.
extension Sync {
    mutating func enqueue(_ item: OutboxItem) {
        // Sending with a client id that is on its way already is no second message; with one that was refused, it is another
        // attempt.
        guard index(of: item.key) == nil else { return retry(item.key) }
        queues[item.key.channel, default: SendQueue()].insert(item)
        sendNext(in: item.key.channel)
    }

    mutating func retry(_ key: MessageKey) {
        guard let index = index(of: key), queues[key.channel]?.items[index].failure != nil else { return }
        queues[key.channel]?.items[index].failure = nil
        emit(.outbox(.retry(key)))
        sendNext(in: key.channel)
    }

    /// Gives up a message. One that is under way may have arrived all the same; the stream then brings it.
    mutating func discard(_ key: MessageKey) {
        emit(.outbox(.remove(key)))
        guard remove(key) else { return }
        emit(.settled(key, .failure(RoostError(.notFound, "The message was discarded."))))
        sendNext(in: key.channel)
    }

    mutating func sendAll() {
        for channel in queues.keys.sorted() { sendNext(in: channel) }
    }

    private mutating func sendNext(in channel: ChannelID) {
        guard phase == .online, let item = queues[channel]?.next else { return }
        queues[channel]?.inFlight = item.key.clientId
        send(item.operation, for: .send(item.key))
    }

    mutating func sendAgain(in channel: ChannelID) {
        queues[channel]?.isWaiting = false
        sendNext(in: channel)
    }

    mutating func sendFinished(_ key: MessageKey, _ result: Result<[UInt8], RoostError>) {
        // Its event came before the reply, and did all that there is to do.
        guard queues[key.channel]?.inFlight == key.clientId else { return }
        queues[key.channel]?.inFlight = nil
        switch result {
        case .success(let bytes): acknowledge(key, bytes)
        case .failure(let error): sendFailed(key, error)
        }
        sendNext(in: key.channel)
    }

    private mutating func acknowledge(_ key: MessageKey, _ bytes: [UInt8]) {
        let message: Message
        do {
            message = try ReplyResult<Message>.decode(bytes)
        } catch {
            return sendFailed(key, RoostError(.internalError, "The stored message couldn't be read: \(error)"))
        }
        remove(key)
        if let position = saved.channels[key.channel], message.seq > position.cursor {
            // The row stays until the stream has brought the message, so that the list is never without it.
            acknowledged[key] = message.seq
        } else {
            emit(.outbox(.remove(key)))
        }
        emit(.settled(key, .success(message)))
    }

    private mutating func sendFailed(_ key: MessageKey, _ error: RoostError) {
        if error.code == .internalError { queues[key.channel]?.internalErrors += 1 }
        let internalErrors = queues[key.channel]?.internalErrors ?? 0
        guard error.isRetryable, internalErrors < settings.internalErrorsMax else {
            if let index = index(of: key) { queues[key.channel]?.items[index].failure = error }
            queues[key.channel]?.internalErrors = 0
            queues[key.channel]?.retries = 0
            emit(.outbox(.fail(key, error)))
            emit(.settled(key, .failure(error)))
            return
        }
        let retries = queues[key.channel]?.retries ?? 0
        let doubled = settings.backoff.lowerBound * (1 << min(retries, 16))
        let delay = error.retryAfterMilliseconds.map(Self.wait) ?? min(settings.backoff.upperBound, doubled)
        queues[key.channel]?.retries += 1
        queues[key.channel]?.isWaiting = true
        emit(.startTimer(.outbox(key.channel), delay))
    }

    /// Rows of a channel came with its stream and are stored.
    mutating func arrived(_ rows: Rows) {
        for message in rows.sent(by: user) { arrived(message) }
    }

    /// Whether rows bring a message that this device has sent, and that wasn't known to have arrived.
    func isOnItsWay(anyOf rows: Rows) -> Bool {
        rows.sent(by: user).map { MessageKey(channel: $0.channelId, clientId: $0.clientId) }.contains { key in
            acknowledged[key] != nil || index(of: key) != nil
        }
    }

    /// An own message is stored: its row in the outbox has done its work.
    private mutating func arrived(_ message: Message) {
        let key = MessageKey(channel: message.channelId, clientId: message.clientId)
        guard remove(key) else { return }
        emit(.outbox(.remove(key)))
        emit(.settled(key, .success(message)))
        sendNext(in: key.channel)
    }

    mutating func settleAcknowledged() {
        for (key, seq) in acknowledged where saved.channels[key.channel].map({ $0.cursor >= seq }) ?? true {
            acknowledged[key] = nil
            emit(.outbox(.remove(key)))
        }
    }

    /// Nothing is under way without a connection. Messages that were are sent again on the next one.
    mutating func stopSending() {
        for channel in queues.keys {
            queues[channel]?.inFlight = nil
            guard queues[channel]?.isWaiting == true else { continue }
            queues[channel]?.isWaiting = false
            emit(.cancelTimer(.outbox(channel)))
        }
    }

    private func index(of key: MessageKey) -> Int? {
        queues[key.channel]?.items.firstIndex { $0.key == key }
    }

    /// Whether the message was among those on their way.
    @discardableResult
    private mutating func remove(_ key: MessageKey) -> Bool {
        guard let index = index(of: key) else { return false }
        queues[key.channel]?.items.remove(at: index)
        queues[key.channel]?.retries = 0
        queues[key.channel]?.internalErrors = 0
        if queues[key.channel]?.inFlight == key.clientId { queues[key.channel]?.inFlight = nil }
        if queues[key.channel]?.items.isEmpty == true {
            emit(.cancelTimer(.outbox(key.channel)))
            queues[key.channel] = nil
        }
        return true
    }
}
