import Logging
import RoostAPI

/// The messages that a list needs.
enum MessageLoad: Hashable, Sendable {
    /// The newest messages: for a followed channel, the stream has delivered them.
    case newest
    /// The messages before the cached part that contains a seq.
    case older(than: Seq)
    /// The messages after that part.
    case newer(than: Seq)
    /// The messages on both sides of a seq.
    case around(Seq)
    /// The messages on both sides of a message.
    case aroundMessage(MessageID)
    /// The messages on both sides of a time.
    case aroundTime(Timestamp)
}

/// Identifies a page on its way: its channel, and where it was requested.
struct HistoryPlace: Hashable, Sendable {
    enum Side: Hashable, Sendable {
        case before(Seq)
        case after(Seq)
        case around(Seq)
        case aroundMessage(MessageID)
        case aroundTime(Timestamp)
    }

    var channel: ChannelID
    var side: Side

    func operation(limit: Int) -> ListMessages {
        switch side {
        case .before(let seq): ListMessages(channel: channel, before: seq, limit: limit)
        case .after(let seq): ListMessages(channel: channel, after: seq, limit: limit)
        case .around(let seq): ListMessages(channel: channel, around: seq, limit: limit)
        case .aroundMessage(let id): ListMessages(channel: channel, aroundMessage: id, limit: limit)
        case .aroundTime(let time): ListMessages(channel: channel, aroundTime: time, limit: limit)
        }
    }
}

/// A page of messages on its way.
struct HistoryLoad: Hashable, Sendable {
    var limit: Int
    var waiting: [CallToken]
    /// Rows about uncached messages that arrived meanwhile: the page may be older than they are.
    var overtaken = Rows()
    /// Whether the channel started over meanwhile: it isn't known which changes the page lacks.
    var isOutdated = false
}

/// Pages of messages. A page extends the part of the cached messages that it touches, and a page that touches none becomes a separate stretch: no
/// part ever has a gap (``Position/stretches``).
extension Sync {
    mutating func load(_ load: MessageLoad, in channel: ChannelID, limit: Int, for token: CallToken) {
        guard let position = saved.channels[channel] else {
            return emit(.reply(token, .failure(RoostError(.notMember, "The channel isn't one of yours."))))
        }
        guard let side = load.side(in: position) else { return emit(.reply(token, .success([]))) }
        let place = HistoryPlace(channel: channel, side: side)
        guard loads[place] == nil else {
            loads[place]?.waiting.append(token)
            return
        }
        guard isAuthenticated else {
            return emit(.reply(token, .failure(RoostError(.notConnected, "There is no connection to the server."))))
        }
        loads[place] = HistoryLoad(limit: limit, waiting: [token])
        send(place.operation(limit: limit), for: .history(place))
    }

    mutating func pageArrived(at place: HistoryPlace, _ result: Result<[UInt8], RoostError>) {
        guard let load = loads.removeValue(forKey: place) else { return }
        do {
            let page = try ReplyResult<HistoryPage>.decode(try result.get(), settings.rowKinds)
            guard let position = saved.channels[place.channel] else {
                throw RoostError(.notMember, "The channel isn't one of yours.")
            }
            guard !load.isOutdated else {
                loads[place] = HistoryLoad(limit: load.limit, waiting: load.waiting)
                return send(place.operation(limit: load.limit), for: .history(place))
            }
            if position.hasHole, place.side != .before(position.windowStart) { throw refresh(place.channel) }
            store(page, of: load, at: place, position)
            guard !page.isAhead(of: position.cursor, at: place.side) else {
                throw RoostError(.unavailable, "The end of the page arrives with the channel's events.")
            }
            for token in load.waiting { emit(.reply(token, .success([]))) }
        } catch {
            let refusal = error as? RoostError ?? RoostError(.internalError, "The page couldn't be read: \(error)")
            for token in load.waiting { emit(.reply(token, .failure(refusal))) }
        }
    }

    /// Handles a page that shows that the user may read again. The messages after the hole in the window have to be fetched first: a page from there
    /// would only appear to touch the window, by its seqs.
    private mutating func refresh(_ channel: ChannelID) -> RoostError {
        if isVisited(channel) {
            renewVisit(of: channel)
        } else {
            resuming.toRefresh.insert(channel)
            if phase == .online { catchUp() }
        }
        return RoostError(.unavailable, "The channel is being fetched again.")
    }

    private mutating func store(_ page: HistoryPage, of load: HistoryLoad, at place: HistoryPlace, _ position: Position) {
        let channel = place.channel
        for problem in page.rows.problems { log(.error, "A message of \(channel) couldn't be read and was skipped: \(problem)") }
        guard let range = page.range(at: place.side, upTo: position.cursor) else { return }
        let forgotten = saved.channels[channel]?.insert(range, keeping: shownPlaces[channel] ?? []) ?? []
        let users = userWrites(page.users?.users ?? [])
        let rows = [page.rows.rows.ofFeatures, load.overtaken].map { $0.withoutRows(aboutMessagesExcept: range.contains) }
        emit(
            .store(
                users + rows.filter { !$0.isEmptyOfFeatures }.map { .rows($0, of: .channel(channel)) } + [.page(channel, range)]
                    + advanceWrite(of: channel) + forgotten.map { .forgetMessages(channel, $0) }))
    }

    /// Drops the oldest messages of channels: each channel's cached part starts later, without stretches.
    mutating func trim(_ starts: [ChannelID: Seq]) {
        var writes: [StoreWrite] = []
        for (channel, start) in starts.sorted(by: { $0.key < $1.key }) {
            guard var position = saved.channels[channel] else { continue }
            position.trim(to: start)
            saved.channels[channel] = position
            invalidateLoads(in: channel)
            writes.append(.position(channel, position))
            guard position.windowStart > 0 else { continue }
            writes.append(.forgetMessages(channel, 0...(position.windowStart - 1)))
        }
        if !writes.isEmpty { emit(.store(writes)) }
    }

    // MARK: Pages on their way

    /// Records that the cached part of a channel starts over, or later.
    mutating func invalidateLoads(in channel: ChannelID) {
        for place in loads.keys where place.channel == channel {
            loads[place]?.isOutdated = true
            loads[place]?.overtaken = Rows()
        }
    }

    /// Records rows that arrived but aren't stored, since their messages aren't cached.
    mutating func overtakeLoads(in channel: ChannelID, _ rows: Rows) {
        guard !rows.isEmptyOfFeatures else { return }
        for place in loads.keys where place.channel == channel { loads[place]?.overtaken.append(rows) }
    }

    mutating func failLoads(_ error: RoostError) {
        for token in loads.values.flatMap(\.waiting).sorted() { emit(.reply(token, .failure(error))) }
        loads = [:]
    }
}

extension MessageLoad {
    /// The place for the request; nil if there is nothing to request.
    fileprivate func side(in position: Position) -> HistoryPlace.Side? {
        switch self {
        // A part that isn't known here was fetched by another chat with the same files: the page touches it.
        case .older(let seq):
            if let part = position.part(holding: seq) { part.lowerBound > 0 ? .before(part.lowerBound) : nil } else { .before(seq) }
        case .newer(let seq):
            if let part = position.part(holding: seq) {
                part.upperBound < .max ? .after(part.upperBound) : nil
            } else {
                .after(seq)
            }
        case .around(let seq): .around(seq)
        case .aroundMessage(let id): .aroundMessage(id)
        case .aroundTime(let time): .aroundTime(time)
        case .newest: nil
        }
    }
}

/// A page of messages and the rows about them, read leniently.
private struct HistoryPage: Decodable {
    var rows: LenientRows
    var hasOlder: Bool
    var hasNewer: Bool
    var seq: Seq
    var users: LenientUsers?
    /// The seqs of all its messages, including unreadable ones: messages beyond them can be requested.
    private var seqs: [Seq]

    private enum CodingKeys: String, CodingKey, CaseIterable { case hasOlder, hasNewer, seq, users }
    private enum MessageKeys: String, CodingKey { case messages }

    private struct Place: Decodable { var seq: Seq }

    init(from decoder: any Decoder) throws {
        rows = try LenientRows(from: decoder, beside: CodingKeys.self)
        let container = try decoder.container(keyedBy: CodingKeys.self)
        hasOlder = try container.decode(Bool.self, forKey: .hasOlder)
        hasNewer = try container.decode(Bool.self, forKey: .hasNewer)
        seq = try container.decode(Seq.self, forKey: .seq)
        users = try? container.decodeIfPresent(LenientUsers.self, forKey: .users)
        seqs = (rows.rows.messages ?? []).map(\.seq)
        guard !rows.problems.isEmpty else { return }
        let places = try? decoder.container(keyedBy: MessageKeys.self).decode([Attempt<Place>].self, forKey: .messages)
        seqs = places?.compactMap { $0.row?.seq } ?? seqs
    }

    /// Whether the requested messages may be among those that the stream will deliver, so the page doesn't have them.
    func isAhead(of cursor: Seq, at side: HistoryPlace.Side) -> Bool {
        switch side {
        case .aroundMessage, .aroundTime: seqs.contains { $0 > cursor }
        case .before, .after, .around: false
        }
    }

    /// The range in which the page has all messages. Messages after the cursor are delivered by the stream.
    func range(at side: HistoryPlace.Side, upTo cursor: Seq) -> ClosedRange<Seq>? {
        var (first, last) = (seqs.min(), seqs.max())
        switch side {
        case .before(let seq): (first, last) = (first ?? seq, seq.subtractingWithSaturation(1))
        case .after(let seq): (first, last) = (seq.addingWithSaturation(1), last ?? seq)
        case .around(let seq): last = max(last ?? seq, seq)
        case .aroundMessage, .aroundTime: break
        }
        // There is nothing before the first message.
        if !hasOlder, !side.isAfter { first = 0 }
        if !hasNewer, !side.isBefore { last = seq }
        guard let first, let last, first <= min(last, cursor) else { return nil }
        return first...min(last, cursor)
    }
}

extension HistoryPlace.Side {
    fileprivate var isBefore: Bool { if case .before = self { true } else { false } }
    fileprivate var isAfter: Bool { if case .after = self { true } else { false } }
}
