import GRDB
public import RoostAPI

/// Where a list of messages begins.
public enum MessageAnchor: Hashable, Sendable {
    /// At the newest message.
    case newest
    /// At the first message that the user hasn't read; at the newest if there is none.
    case firstUnread
    /// At a message. If it is deleted, its place is still there.
    case message(MessageID)
    /// At the first message that was sent at a time or after it (SB-55); at the newest if there is none. Messages that this version can't read are passed over.
    case time(Timestamp)
}

/// A list's way to the place where it begins: where that is on this device, or what has to be fetched for it.
enum MessageOpening: Hashable, Sendable {
    case newest
    case firstUnread
    case message(MessageID)
    case time(Timestamp)
    /// The place that a list was at before its messages were forgotten.
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

    /// What a list does to get there.
    enum Step: Hashable, Sendable {
        case read(MessageWindow.Move)
        case fetch(MessageLoad)
        /// Nothing is known of the channel before there is a connection.
        case wait

        /// The way to messages of a channel that isn't followed. With a connection, asking for them says why there are none.
        fileprivate static func unfollowed(isOnline: Bool) -> Step { isOnline ? .fetch(.newest) : .wait }
    }

    func step(in channel: ChannelID, _ mark: UnreadMark, isOnline: Bool, _ database: Database) throws -> Step {
        let state = try database.messageState(of: channel)
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

    /// Where a list goes whose page has come and doesn't lead to its place, since this version can't read what is there. Nil for a message.
    func moveWithoutPage(in channel: ChannelID, _ database: Database) throws -> MessageWindow.Move? {
        switch self {
        case .message: nil
        case .time(let time): try database.messageState(of: channel)?.nearestMove(to: time, in: channel, database) ?? .newest
        case .newest, .firstUnread, .seq: .newest
        }
    }
}

extension MessageState {
    /// The first message that the user may see. What is concealed can't be requested: a part begins where the channel does for this user.
    private var first: Seq { floor.addingWithSaturation(1) }
    private var visibleParts: [ClosedRange<Seq>] {
        ([position.windowStart...Seq.max] + position.stretches).filter { floor < $0.upperBound }
    }

    private func cached(_ part: ClosedRange<Seq>, of channel: ChannelID, _ database: Database) -> CachedPart {
        CachedPart(channel: channel, range: max(part.lowerBound, first)...part.upperBound, database: database)
    }

    /// How a list gets to the first cached message since a time, whether it is the first or not; nil if there is none.
    fileprivate func nearestMove(to time: Timestamp, in channel: ChannelID, _ database: Database) throws -> MessageWindow.Move? {
        try visibleParts.compactMap { try cached($0, of: channel, database).firstSeq(from: time) }.min().map { .open($0) }
    }

    /// How a list gets to the first message since a time; nil if it isn't cached that it is the first.
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

/// The first message that the user hadn't read when a list was opened. Reading on doesn't move it.
struct UnreadMark: Sendable {
    /// The seq up to which the user had read, if there was something unread.
    private(set) var readSeq: Seq?
    /// The first unread message, as far as it is cached that it is the first.
    private(set) var first: MessageItem.ID?
    /// Whether it is known up to where the user had read. Until then, a message that comes may be one that they hadn't.
    private(set) var isSet = false

    /// Reads where the user had read to, once the channel is followed; then, the first message after it.
    ///
    /// - Parameter isOnline: Whether this device has all messages. Before, one may be unread that isn't here yet.
    mutating func read(in channel: ChannelID, as user: UserID, isOnline: Bool, _ database: Database) throws {
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
        // Without one, it was deleted for good, and so were all after it.
        first = try database.first(sql, [channel, next, part.upperBound]) {
            MessageItem.ID(sender: try $0.value(), clientId: try $0.value())
        }
    }
}
