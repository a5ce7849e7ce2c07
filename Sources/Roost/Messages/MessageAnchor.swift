import GRDB
public import RoostAPI

/// Where a list of messages starts.
public enum MessageAnchor: Hashable, Sendable {
    /// At the newest message.
    case newest
    /// At the first message that the user hasn't read; at the newest if there is none.
    case firstUnread
    /// At a message. A deleted message keeps its place.
    case message(MessageID)
    /// At the first message sent at or after a time (SB-55); at the newest if there is none. Messages that this version can't read are skipped.
    case time(Timestamp)
}

/// A list's way to its starting place: the place on this device, or what has to be fetched first.
enum MessageOpening: Hashable, Sendable {
    case newest
    case firstUnread
    case message(MessageID)
    case time(Timestamp)
    /// The place of a list before its messages were forgotten.
    case seq(Seq)

    init(_ anchor: MessageAnchor) {
        self =
            switch anchor {
            case .newest: .newest
            case .firstUnread: .firstUnread
            case .message(let id): .message(id)
            case .time(let time): .time(time)
            }
    }

    /// The next step towards the place.
    enum Step: Hashable, Sendable {
        case read(MessageWindow.Move)
        case fetch(MessageLoad)
        /// Nothing is known of the channel until there is a connection.
        case wait

        /// The step towards messages of a channel that isn't followed. With a connection, requesting them returns the reason why there are none.
        fileprivate static func unfollowed(isOnline: Bool) -> Step { isOnline ? .fetch(.newest) : .wait }
    }

    /// - Parameter start: The seq from which the channel keeps its messages, while the earlier ones are being deleted.
    func step(
        in channel: ChannelID, _ mark: UnreadMark, isOnline: Bool, trimmedTo start: Seq? = nil, _ database: Database
    ) throws -> Step {
        let state = try database.messageState(of: channel, trimmedTo: start)
        let position = state?.position
        switch self {
        case .newest: return position == nil ? .unfollowed(isOnline: isOnline) : .read(.newest)
        case .firstUnread:
            guard let position else { return .unfollowed(isOnline: isOnline) }
            guard let readSeq = mark.readSeq else { return .read(.newest) }
            let next = readSeq.addingWithSaturation(1)
            guard let part = position.part(holding: next) else { return .fetch(.around(readSeq)) }
            return .read(.open(part.contains(readSeq) ? readSeq : next))
        case .message(let id):
            if let message = try database.message(id, in: channel) { return .read(.open(message.seq)) }
            return position == nil && !isOnline ? .wait : .fetch(.aroundMessage(id))
        case .time(let time):
            guard let state else { return .unfollowed(isOnline: isOnline) }
            return try state.move(to: time, in: channel, database).map(Step.read) ?? .fetch(.aroundTime(time))
        case .seq(let seq):
            guard let position else { return .unfollowed(isOnline: isOnline) }
            return position.holds(seq) ? .read(.open(seq)) : .fetch(.around(seq))
        }
    }

    /// Where a list goes if its page has arrived but doesn't lead to its place, because this version can't read the message there. Nil for a message.
    func moveWithoutPage(in channel: ChannelID, _ database: Database) throws -> MessageWindow.Move? {
        switch self {
        case .message: nil
        case .time(let time):
            try database.messageState(of: channel)?.nearestSeq(from: time, in: channel, database).map(MessageWindow.Move.open)
                ?? .newest
        case .newest, .firstUnread, .seq: .newest
        }
    }

    /// The row at the place of a message or of a time, if it is cached; nil for other places.
    func item(in channel: ChannelID, _ database: Database) throws -> MessageItem.ID? {
        guard let state = try database.messageState(of: channel) else { return nil }
        switch self {
        case .newest, .firstUnread, .seq: return nil
        case .message(let id):
            guard let message = try database.message(id, in: channel), message.seq > state.floor else { return nil }
            return MessageItem.ID(sender: message.sender, clientId: message.clientId)
        case .time(let time):
            guard let seq = try state.nearestSeq(from: time, in: channel, database) else { return nil }
            return try database.first("SELECT sender, client_id FROM messages WHERE channel_id = ? AND seq = ?", [channel, seq]) {
                MessageItem.ID(sender: try $0.value(), clientId: try $0.value())
            }
        }
    }
}

extension MessageState {
    /// The first message that the user may see. Concealed messages can't be requested: a part starts where the channel does for this user.
    private var first: Seq { floor.addingWithSaturation(1) }
    private var visibleParts: [ClosedRange<Seq>] {
        ([position.windowStart...Seq.max] + position.stretches).filter { floor < $0.upperBound }
    }

    private func cached(_ part: ClosedRange<Seq>, of channel: ChannelID, _ database: Database) -> CachedPart {
        CachedPart(channel: channel, range: max(part.lowerBound, first)...part.upperBound, database: database)
    }

    /// The first cached message since a time, whether it is the first of all or not; nil if there is none.
    fileprivate func nearestSeq(from time: Timestamp, in channel: ChannelID, _ database: Database) throws -> Seq? {
        try visibleParts.compactMap { try cached($0, of: channel, database).firstSeq(from: time) }.min()
    }

    /// The move to the first message since a time; nil unless the cache shows that it is the first.
    fileprivate func move(to time: Timestamp, in channel: ChannelID, _ database: Database) throws -> MessageWindow.Move? {
        for part in visibleParts {
            let cached = cached(part, of: channel, database)
            let isFromTheBeginning = part.lowerBound <= first
            guard let seq = try cached.firstSeq(from: time) else {
                let isBeforeAll = try isFromTheBeginning || cached.hasMessage(after: 0)
                if part.isNewest, isBeforeAll { return .newest }
                continue
            }
            if try isFromTheBeginning || cached.hasMessage(before: seq) {
                let before = seq.subtractingWithSaturation(1)
                return .open(part.contains(before) ? before : seq)
            }
        }
        return nil
    }
}

/// The first message that the user hadn't read when a list was opened. Reading further doesn't move it.
struct UnreadMark: Sendable {
    /// The seq up to which the user had read, if there was something unread.
    private(set) var readSeq: Seq?
    /// The first unread message, if the cache shows that it is the first.
    private(set) var first: MessageItem.ID?
    /// Whether it is known up to where the user had read. Until then, an arriving message may be one that they hadn't read.
    private(set) var isSet = false

    /// Reads where the user had read to, once the channel is followed; then the first message after it.
    ///
    /// - Parameter isOnline: Whether this device has all messages. Until then, an unread message may still be missing here.
    mutating func read(in channel: ChannelID, isOnline: Bool, _ database: Database) throws {
        guard let state = try database.messageState(of: channel) else { return }
        if !isSet, let membership = try database.shownMembership(of: channel), let counters = try database.counters(of: channel) {
            if Unread.count(in: counters, for: membership) > 0 { readSeq = max(membership.readSeq, membership.historyFloor) }
            isSet = isOnline || readSeq != nil
        }
        guard let next = readSeq?.addingWithSaturation(1), let part = state.position.part(holding: next) else { return }
        let sql = """
            SELECT sender, client_id FROM messages
            WHERE channel_id = ? AND seq BETWEEN ? AND ? AND is_own = 0 AND counts = 1 ORDER BY seq LIMIT 1
            """
        // Without one, it was permanently deleted, as were all after it.
        first = try database.first(sql, [channel, next, part.upperBound]) {
            MessageItem.ID(sender: try $0.value(), clientId: try $0.value())
        }
    }
}
