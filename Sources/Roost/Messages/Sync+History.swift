import Logging
import RoostAPI

/// The messages that a list lacks.
enum MessageLoad: Hashable, Sendable {
    /// The newest ones: of a channel that is followed, the stream has brought them.
    case newest
    /// Those before the cached part that a seq is in.
    case older(than: Seq)
    /// Those after it.
    case newer(than: Seq)
    /// Those on both sides of a seq.
    case around(Seq)
    /// Those on both sides of a message.
    case aroundMessage(MessageID)
    /// Those on both sides of a time.
    case aroundTime(Timestamp)
}

/// What a page on its way is: its channel, and where it was asked for.
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
    /// Rows about messages that aren't cached which came meanwhile: the page may be older than they are.
    var overtaken = Rows()
    /// Whether the channel began afresh meanwhile: nobody knows which changes the page lacks.
    var isOutdated = false
}

/// Pages of messages. One extends the part of the cached messages that it touches, and one that touches none is a stretch of its own: no
/// part ever has a hole (``Position/stretches``).
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
                throw RoostError(.unavailable, "The end of the page comes with the channel's events.")
            }
            for token in load.waiting { emit(.reply(token, .success([]))) }
        } catch {
            let refusal = error as? RoostError ?? RoostError(.internalError, "The page couldn't be read: \(error)")
            for token in load.waiting { emit(.reply(token, .failure(refusal))) }
        }
    }

    /// The page shows that the user may read again. What is behind the hole in the window has to come first: a page from there would touch
    /// the window only by its seqs.
    private mutating func refresh(_ channel: ChannelID) -> RoostError {
        if isVisited(channel) {
            renewVisit(of: channel)
        } else {
            refreshing.insert(channel)
            if phase == .online { catchUp() }
        }
        return RoostError(.unavailable, "The channel is being fetched afresh.")
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

    /// Gives up the oldest messages of channels: what is cached of each begins later, without stretches.
    mutating func trim(_ starts: [ChannelID: Seq]) {
        var writes: [StoreWrite] = []
        for (channel, start) in starts.sorted(by: { $0.key < $1.key }) {
            guard var position = saved.channels[channel] else { continue }
            position.windowStart = max(position.windowStart, start)
            position.stretches = []
            saved.channels[channel] = position
            outdateLoads(in: channel)
            writes.append(.position(channel, position))
            guard position.windowStart > 0 else { continue }
            writes.append(.forgetMessages(channel, 0...(position.windowStart - 1)))
        }
        if !writes.isEmpty { emit(.store(writes)) }
    }

    // MARK: Pages on their way

    /// What is cached of a channel begins afresh, or later.
    mutating func outdateLoads(in channel: ChannelID) {
        for place in loads.keys where place.channel == channel {
            loads[place]?.isOutdated = true
            loads[place]?.overtaken = Rows()
        }
    }

    /// Rows came that aren't stored, since their messages aren't cached.
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
    /// Where to ask; nil if there is nothing to ask for.
    fileprivate func side(in position: Position) -> HistoryPlace.Side? {
        switch self {
        // A part that isn't known here was fetched by another chat of the same files: the page touches it.
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

/// A page of messages and of what is about them, read leniently.
private struct HistoryPage: Decodable {
    var rows: LenientRows
    var hasOlder: Bool
    var hasNewer: Bool
    var seq: Seq
    var users: LenientUsers?
    /// The places of all its messages, those included that can't be read: what is beyond them can be asked for.
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

    /// Whether what was asked for may be among the messages that are the stream's to bring, so that the page doesn't have it.
    func isAhead(of cursor: Seq, at side: HistoryPlace.Side) -> Bool {
        switch side {
        case .aroundMessage, .aroundTime: seqs.contains { $0 > cursor }
        case .before, .after, .around: false
        }
    }

    /// The range of which the page has all messages. What comes after the cursor is the stream's to bring.
    func range(at side: HistoryPlace.Side, upTo cursor: Seq) -> ClosedRange<Seq>? {
        var (first, last) = (seqs.min(), seqs.max())
        switch side {
        case .before(let seq): (first, last) = (first ?? seq, seq.subtractingWithSaturation(1))
        case .after(let seq): (first, last) = (seq.addingWithSaturation(1), last ?? seq)
        case .around(let seq): last = max(last ?? seq, seq)
        case .aroundMessage, .aroundTime: break
        }
        // Before the first message there are none.
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
