import RoostAPI

/// The operations of one channel that are on their way, or those of no channel.
struct OutboxQueue: Hashable, Sendable {
    private(set) var items: [Int64: OutboxItem] = [:]
    /// Those to be sent, in their order: without refused ones, and those for another server.
    private var order: ArraySlice<OutboxPlace> = []
    /// The messages.
    private(set) var messages: [ClientID: Int64] = [:]
    /// Those that change a message.
    private var changes: [ChangedMessage: Set<Int64>] = [:]
    /// The messages among these whose ids are known, in the order of the ids.
    private var changedMessages: [MessageID] = []
    /// Everything else: few, since of most only the last one counts.
    private var remaining: Set<Int64> = []
    /// Operations that aren't in the file yet as they are, with the number of writes that are awaited.
    private var unwritten: [Int64: Int] = [:]
    /// Those among them that the file doesn't have at all.
    private var new: Set<Int64> = []

    /// One that is sent a little later, with the next ones going before it: the draft that the user types at this moment.
    private(set) var held: Int64?

    /// The one that the server is asked for right now.
    var inFlight: Int64?
    /// The one that is sent once its row says that the server may have it.
    var noting: Int64?
    /// Whether the server may have that one already.
    var notesAgain = false
    /// The last one that this chat has begun to send, by the file: one that only one of several chats may send, it sends.
    var begun: Int64?
    /// The one that is sent without a key on this connection: the server keeps no more keys of this user, or it is one of very many (``KeyAllowance``).
    var withoutKey: Int64?
    /// Whether a refusal that may pass is being waited out.
    var isWaiting = false
    /// When that is over, as far as is known.
    var waitsUntil: Timestamp?
    /// Whether it is one of the first operation alone, which has an end.
    var letsOthersPass = false
    /// Times that the server answered the first one with `internal_error`.
    var internalErrors = 0
    /// Retries in a row.
    var retries = 0

    var isEmpty: Bool { items.isEmpty }
    /// Whether one would be sent at once.
    var isIdle: Bool { order.isEmpty && !isWaiting && inFlight == nil }

    /// Everything but messages and their changes, in order.
    var others: [OutboxItem] { inOrder(remaining) }

    /// What is neither being written nor sent, in order.
    var resting: [OutboxItem] {
        items.values.filter { unwritten[$0.id] == nil && $0.id != inFlight && $0.id != noting }.sorted { $0.place < $1.place }
    }

    /// The operations that change a message, in order.
    func changes(of message: ChangedMessage) -> [OutboxItem] { inOrder(changes[message] ?? []) }

    /// The operations that change the newest of the changed messages: the newest message of the channel, if it is one of them.
    var newestChanges: [OutboxItem] { changedMessages.suffix(Self.newestMax).flatMap { changes(of: .stored($0)) } }
    /// Some more than one, since the server may not have the newest ones any more.
    private static let newestMax = 8

    private func inOrder(_ ids: Set<Int64>) -> [OutboxItem] {
        ids.isEmpty ? [] : ids.compactMap { items[$0] }.sorted { $0.place < $1.place }
    }

    /// The operation to send next, unless one is under way.
    var next: OutboxItem? {
        guard inFlight == nil, noting == nil, let first = order.first else { return nil }
        if isWaiting { return letsOthersPass ? overtaking : nil }
        return unwritten[first.id] == nil ? items[first.id] : nil
    }

    /// What goes before a message that waits for the end of its refusal: a silence of hours isn't one for whoever reads, or leaves.
    private var overtaking: OutboxItem? {
        // What waits for the end of a refusal itself overtakes nothing.
        others.first {
            $0.operation.overtakesRefused && !$0.isWaiting && unwritten[$0.id] == nil && isInOrder($0.place)
                && (!$0.operation.overtakesMessagesOnly || isBehindMessagesOnly($0.place))
        }
    }

    private func isBehindMessagesOnly(_ place: OutboxPlace) -> Bool {
        order[..<index(of: place)].allSatisfy { items[$0.id]?.operation.sent != nil }
    }

    /// Puts an operation in its place, or another state of it.
    ///
    /// - Parameter server: The server that operations are sent to.
    mutating func put(_ item: OutboxItem, for server: String?) {
        let before = items.updateValue(item, forKey: item.id)
        if let before, before.place != item.place { removePlace(of: before) }
        if let before, before.operation.changed != item.operation.changed { removeChanges(before) }
        if let sent = item.operation.sent {
            messages[sent.clientId] = item.id
        } else if item.operation.changed.isEmpty {
            remaining.insert(item.id)
        } else {
            for message in item.operation.changed { insertChange(item.id, of: message) }
        }
        let isSendable = !item.isRefused && item.id != held && (item.server == nil || item.server == server)
        guard isSendable else { return removePlace(of: item) }
        let index = index(of: item.place)
        if before != nil, index < order.endIndex, order[index] == item.place { return }
        order.insert(item.place, at: index)
    }

    mutating func remove(_ id: Int64) -> OutboxItem? {
        guard let item = items.removeValue(forKey: id) else { return nil }
        if order.first?.id == id {
            // The next one hasn't been refused yet.
            retries = 0
            internalErrors = 0
        }
        removePlace(of: item)
        if let sent = item.operation.sent { messages[sent.clientId] = nil }
        removeChanges(item)
        remaining.remove(id)
        if held == id { held = nil }
        unwritten[id] = nil
        new.remove(id)
        if inFlight == id { inFlight = nil }
        if noting == id { noting = nil }
        if begun == id { begun = nil }
        if withoutKey == id { withoutKey = nil }
        return item
    }

    /// Holds an operation back that is about to be put here.
    mutating func hold(_ id: Int64) { held = id }

    /// Lets the one that is held back go.
    mutating func release(for server: String?) {
        guard let item = held.flatMap({ items[$0] }) else { return }
        held = nil
        put(item, for: server)
    }

    mutating func beginWriting(_ id: Int64, isNew: Bool) {
        unwritten[id, default: 0] += 1
        if isNew { new.insert(id) }
    }

    /// Whether an operation isn't in the file yet as it is.
    func isBeingWritten(_ id: Int64) -> Bool { unwritten[id] != nil }

    mutating func endWriting(_ id: Int64) {
        new.remove(id)
        guard let count = unwritten[id] else { return }
        unwritten[id] = count > 1 ? count - 1 : nil
    }

    /// No write is awaited any more.
    ///
    /// - Returns: The operations that the file doesn't have.
    mutating func cancelWriting() -> [OutboxItem] {
        defer { (unwritten, new) = ([:], []) }
        return inOrder(new)
    }

    /// The row of the one that was to be sent couldn't be written: the server doesn't have it, unless it had it before.
    mutating func cancelNoting() {
        if let noting, !notesAgain { items[noting]?.firstSentAt = nil }
        noting = nil
    }

    /// Whether an operation is in the file and will be sent to this server: it is shown then.
    func isShown(_ item: OutboxItem, by server: String?) -> Bool {
        !item.isRefused && unwritten[item.id] == nil && (item.server == nil || item.server == server)
    }

    private mutating func insertChange(_ id: Int64, of message: ChangedMessage) {
        if changes[message] == nil, case .stored(let stored) = message {
            changedMessages.insert(stored, at: changedMessages.firstIndex(from: stored))
        }
        changes[message, default: []].insert(id)
    }

    private mutating func removeChanges(_ item: OutboxItem) {
        for message in item.operation.changed {
            guard changes[message]?.remove(item.id) != nil, changes[message]?.isEmpty == true else { continue }
            changes[message] = nil
            if case .stored(let stored) = message { changedMessages.remove(at: changedMessages.firstIndex(from: stored)) }
        }
    }

    private mutating func removePlace(of item: OutboxItem) {
        guard isInOrder(item.place) else { return }
        let index = index(of: item.place)
        if index == order.startIndex { order = order.dropFirst() } else { order.remove(at: index) }
    }

    private func isInOrder(_ place: OutboxPlace) -> Bool {
        let index = index(of: place)
        return index < order.endIndex && order[index] == place
    }

    private func index(of place: OutboxPlace) -> Int {
        var (low, high) = (order.startIndex, order.endIndex)
        // A new one is the last.
        guard let last = order.last, last >= place else { return high }
        while low < high {
            let middle = (low + high) / 2
            if order[middle] < place { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

extension [MessageID] {
    /// Where a message is in an ascending list, or belongs.
    fileprivate func firstIndex(from message: MessageID) -> Int {
        // A new one is the last, mostly.
        guard let last, last >= message else { return endIndex }
        var (low, high) = (startIndex, endIndex)
        while low < high {
            let middle = (low + high) / 2
            if self[middle] < message { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
