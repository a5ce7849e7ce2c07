import RoostAPI

/// The pending operations of one channel, or those without a channel.
struct OutboxQueue: Hashable, Sendable {
    private(set) var items: [Int64: OutboxItem] = [:]
    /// Those to send, in order: without refused ones and those for another server.
    private var order: ArraySlice<OutboxPlace> = []
    /// The messages.
    private(set) var messages: [ClientID: Int64] = [:]
    /// Those that change a message.
    private var changes: [ChangedMessage: Set<Int64>] = [:]
    /// The changed messages whose ids are known, in the order of the ids.
    private var changedMessages: [MessageID] = []
    /// All other operations: few, because for most only the last one counts.
    private var remaining: Set<Int64> = []
    /// Operations whose current state isn't in the file yet, with the number of awaited writes.
    private var unwritten: [Int64: Int] = [:]
    /// Those that aren't in the file at all.
    private var new: Set<Int64> = []

    /// The operation that is sent a little later, after the next ones: the draft that the user is typing.
    private(set) var held: Int64?

    /// The operation in flight.
    var inFlight: Int64?
    /// The operation that is sent once its row says that the server may have it.
    var noting: Int64?
    /// Whether the server may already have that one.
    var notesAgain = false
    /// The last operation that this chat has begun to send, according to the file: one that only a single chat may send is sent by this one.
    var begun: Int64?
    /// The operation that is sent without a key on this connection: the server keeps no more keys for this user, or it is one of very many (``KeyAllowance``).
    var withoutKey: Int64?
    /// Whether the queue waits for a temporary refusal to end.
    var isWaiting = false
    /// When that wait ends, as far as is known.
    var waitsUntil: Timestamp?
    /// Whether the refusal concerns the first operation alone, and has an end.
    var allowsOvertaking = false
    /// How often the server answered the first one with `internal_error`.
    var internalErrors = 0
    /// Consecutive retries.
    var retries = 0

    var isEmpty: Bool { items.isEmpty }
    /// Whether a new operation would be sent at once.
    var isIdle: Bool { order.isEmpty && !isWaiting && inFlight == nil }

    /// Everything except messages and their changes, in order.
    var others: [OutboxItem] { inOrder(remaining) }

    /// The operations that are neither being written nor sent, in order.
    var resting: [OutboxItem] {
        items.values.filter { unwritten[$0.id] == nil && $0.id != inFlight && $0.id != noting }.sorted { $0.place < $1.place }
    }

    /// The operations that change a message, in order.
    func changes(of message: ChangedMessage) -> [OutboxItem] { inOrder(changes[message] ?? []) }

    /// The operations that change the newest of the changed messages: the newest message of the channel, if it is one of them.
    var newestChanges: [OutboxItem] { changedMessages.suffix(Self.newestMax).flatMap { changes(of: .stored($0)) } }
    /// More than one, because the server may no longer have the newest ones.
    private static let newestMax = 8

    private func inOrder(_ ids: Set<Int64>) -> [OutboxItem] {
        ids.isEmpty ? [] : ids.compactMap { items[$0] }.sorted { $0.place < $1.place }
    }

    /// The operation to send next, unless one is in flight.
    var next: OutboxItem? {
        guard inFlight == nil, noting == nil, let first = order.first else { return nil }
        if isWaiting { return allowsOvertaking ? overtaking : nil }
        return unwritten[first.id] == nil ? items[first.id] : nil
    }

    /// The operation that overtakes a message waiting for its refusal to end: a silence of hours must not delay reading or leaving.
    private var overtaking: OutboxItem? {
        // An operation that itself waits for a refusal to end overtakes nothing.
        others.first {
            $0.operation.overtakesRefused && !$0.isWaiting && unwritten[$0.id] == nil && isInOrder($0.place)
                && (!$0.operation.overtakesMessagesOnly || isBehindMessagesOnly($0.place))
        }
    }

    private func isBehindMessagesOnly(_ place: OutboxPlace) -> Bool {
        order[..<index(of: place)].allSatisfy { items[$0.id]?.operation.sent != nil }
    }

    /// Inserts an operation in its place, or replaces its state.
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

    /// Holds back an operation that is about to be put here.
    mutating func hold(_ id: Int64) { held = id }

    /// Releases the operation that is held back.
    mutating func release(for server: String?) {
        guard let item = held.flatMap({ items[$0] }) else { return }
        held = nil
        put(item, for: server)
    }

    mutating func beginWriting(_ id: Int64, isNew: Bool) {
        unwritten[id, default: 0] += 1
        if isNew { new.insert(id) }
    }

    /// Whether an operation's current state isn't in the file yet.
    func isBeingWritten(_ id: Int64) -> Bool { unwritten[id] != nil }

    mutating func endWriting(_ id: Int64) {
        new.remove(id)
        guard let count = unwritten[id] else { return }
        unwritten[id] = count > 1 ? count - 1 : nil
    }

    /// Stops awaiting writes.
    ///
    /// - Returns: The operations that aren't in the file.
    mutating func cancelWriting() -> [OutboxItem] {
        defer { (unwritten, new) = ([:], []) }
        return inOrder(new)
    }

    /// The row of the operation to send couldn't be written: the server doesn't have it, unless it had it before.
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
        // A new one is the last.
        guard let last = order.last, last >= place else { return order.endIndex }
        return order.partitioningIndex { $0 >= place }
    }
}

extension [MessageID] {
    /// The index of a message in an ascending list, or where it belongs.
    fileprivate func firstIndex(from message: MessageID) -> Int {
        // A new one is mostly the last.
        guard let last, last >= message else { return endIndex }
        return partitioningIndex { $0 >= message }
    }
}
