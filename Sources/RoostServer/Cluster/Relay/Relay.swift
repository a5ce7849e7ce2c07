import RoostAPI
import RoostCore

/// Merges what this node commits and what the bus delivers into one order for each stream.
///
/// The bus may lose, repeat and reorder events; lanes and nodes commit concurrently. So for each stream that a socket of this node needs, the
/// relay keeps the seq up to which it has delivered:
/// 1. Older events are dropped.
/// 2. The next event is delivered.
/// 3. Events further ahead wait a moment for those in between; then the missing ones are read from the database, and delivered first.
///
/// Events that were never announced, because a node died between commit and publishing or because the bus lost them, are found by comparing
/// positions with the database: all positions when a node is lost or the bus returns, and otherwise a share of them each second.
///
/// A receiver is attached to a channel at a seq. If the feed is at that seq, this happens immediately. If the feed is behind, the receiver
/// waits. If it is ahead, the receiver first gets the events in between from the database. So no receiver misses an event, or gets one from
/// before joining or after leaving.
///
/// It is a state machine without threads, clock or sockets: ``handle(_:at:)`` takes an input, and leaves the deliveries in ``steps`` and
/// the requests in ``requests``. `ClusterNode` drives it.
struct Relay {
    /// Milliseconds of a monotonic clock.
    typealias Time = Int64
    typealias ConnectToken = Int64
    typealias CatchUpToken = Int64

    struct Settings {
        /// How long a gap is left to fill itself before it is fetched.
        var gapPatience: Time = 10
        /// The pause before a failed request is retried.
        var retryAfter: Time = 500
        /// The pause before events that the database couldn't read are read again.
        var unreadableRetryAfter: Time = 5000
        /// How many fetches may find nothing of what was announced before that is dropped.
        var emptyFetchesMax = 3
        /// The most items that wait in one feed, and that are recorded for one receiver. Any more are fetched when their turn comes.
        var waitingItemsMax = 1000
        var recordedItemsMax = 2000
        /// The most bytes of the items that wait in all feeds, and of those that are recorded for one receiver. While the database is away, feeds
        /// can't be opened, and a user on another node decides how much is sent to them.
        var waitingSizeBytesMax = 32 << 20
        var recordedSizeBytesMax = 4 << 20
        /// How long a feed without sockets is kept, and how often such feeds are searched for.
        var idleTime: Time = 5000
        var retireInterval: Time = 1000
        /// Streams whose positions are compared with the database in one second, and in one query.
        var sweepPerSecond = 5000
        var sweepAtOnce = 1000
        /// How long departures are remembered.
        var departedTime: Time = 60_000
    }

    enum Input {
        /// A lane of this node committed: each operation's items, its connection's requests and its answer.
        case committed([LocalOperation])
        /// Items from the bus.
        case received([StreamItem])
        /// Subscriptions are in place, and these are the heads, read afterwards.
        case opened([StreamID: Seq])
        case openFailed([StreamID])
        /// The events after a position. Nil when the database couldn't be read.
        case fetched(Fetch, Fetched?)
        /// The database answers, and can't read these events: a page that they need is damaged, or holds what no rule writes.
        case unreadable(Fetch)
        /// The streams of a user, read again for a connection. Nil when the database couldn't be read.
        case streamsRead(ConnectToken, UserStreams?)
        case heads([StreamID: Seq])
        /// Streams that couldn't be compared with the database.
        case headsFailed([StreamID])
        /// Streams whose last socket may be gone, and those whose last socket is.
        case emptied([StreamID])
        case unused([StreamID], asOf: Time)
        /// A node or the bus was lost, or is back: every position has to be checked.
        case recheckAll
        case tick
    }

    struct LocalOperation: Sendable {
        let items: [StreamItem]
        let attachments: [Notice]
        var answer: Committed.Answer
        /// The caller, and the channel called in.
        var user: UserID?
        var channel: ChannelID?
        /// The position of the caller's own stream that the operation relied on.
        var callerSeq: Seq = 0
    }

    /// Events to be read from the database.
    struct Fetch: Hashable, Sendable {
        enum Purpose: Hashable, Sendable {
            /// For the feed itself.
            case gap
            /// For a receiver that is behind the feed.
            case catchUp(CatchUpToken)
        }
        let stream: StreamID
        let after: Seq
        let purpose: Purpose
        /// Which users the items report as gone.
        var leavers = MissedEvents.Leavers.all
    }

    struct Fetched: Sendable {
        let items: [StreamItem]
        /// The position that they reach.
        let seq: Seq
        let hasMore: Bool
        /// The stream's newest position when they were read.
        let head: Seq
    }

    /// Something to deliver, in order.
    enum Step {
        case event(StreamItem)
        /// An event of the past, for one receiver.
        case past(StreamItem, Attachment.Receiver)
        case change(Notice)
        /// A connection has asked to watch, at a seq: the channel's events that it gets from here on are marked so. It may not be attached yet.
        case watches(ConnectionID, UserID, ChannelID, at: Seq, online: Int? = nil)
        /// From here on a connection gets the events of a channel that its user is a member of.
        case attach(ConnectionID, ChannelID)
        /// From here on a connection gets the events of a channel that it has asked to watch, unless the watch has ended.
        case attachWatcher(ConnectionID, ChannelID)
        case answer(Committed.Answer)
    }

    enum Request: Equatable {
        /// Subscribe, and then read the heads.
        case open([StreamID])
        case close([StreamID])
        case fetch(Fetch)
        case readStreams(UserID, ConnectToken)
        case readHeads([StreamID])
        /// Find the streams that no socket needs.
        case findUnused([StreamID], asOf: Time)
    }

    let settings: Settings
    private(set) var steps: [Step] = []
    private(set) var requests: [Request] = []
    var feeds: [StreamID: Feed] = [:]
    /// The size of the items that wait in all feeds.
    private(set) var waitingSizeBytes = 0
    /// Feeds with missing events.
    var gaps: Set<StreamID> = []
    /// Feeds that may have no socket.
    var possiblyUnused: Set<StreamID> = []
    var connects: [ConnectToken: Connect] = [:]
    /// Queued answers, in order, and which of the queues wait for a stream.
    var answers: [AnswerQueue.Key: AnswerQueue] = [:]
    var waitingAnswers: [StreamID: [AnswerQueue.Key]] = [:]
    /// Reads for receivers whose events couldn't be read, and when each is due, in this order.
    var retries: [(time: Time, fetch: Fetch)] = []
    var lastToken: Int64 = 0
    private var lastRetiredAt: Time = 0
    var now: Time = 0
    var sweep = Sweep()
    /// How many comparisons with the database wait for an answer.
    private var headReadsInFlight = 0
    /// While this many wait, no more are requested: they would pile up if the database doesn't answer.
    private static let headReadsInFlightMax = 2
    private(set) var counts = Counts()

    /// Counts since the start, for the metrics.
    struct Counts: Hashable, Sendable {
        var delivered: Int64 = 0
        var dropped: Int64 = 0
        var gapsFetched: Int64 = 0
        var catchUps: Int64 = 0
    }

    init(settings: Settings = Settings()) { self.settings = settings }

    /// Whether a tick is needed soon.
    var isWaiting: Bool { !gaps.isEmpty }

    mutating func handle(_ input: Input, at time: Time) {
        now = max(now, time)
        switch input {
        case .committed(let operations): for operation in operations { accept(operation) }
        case .received(let items): for item in items { accept(item) }
        case .opened(let heads): for (stream, head) in heads { opened(stream, at: head) }
        case .openFailed(let streams): openAgain(streams)
        case .fetched(let fetch, let fetched): receive(fetched, for: fetch)
        case .unreadable(let fetch): noteUnreadable(fetch)
        case .streamsRead(let token, let streams): receive(streams, for: token)
        case .heads(let heads):
            headReadsInFlight -= 1
            for (stream, head) in heads { learn(head, of: stream) }
        case .headsFailed(let streams):
            headReadsInFlight -= 1
            sweep.again(streams)
        case .emptied(let streams): possiblyUnused.formUnion(streams)
        case .unused(let streams, let time): close(streams, asOf: time)
        case .recheckAll: sweep.begin(feeds.keys)
        case .tick: tick()
        }
    }

    /// Takes the pending steps and requests.
    mutating func takeOutput() -> (steps: [Step], requests: [Request]) {
        defer {
            steps.removeAll(keepingCapacity: true)
            requests.removeAll(keepingCapacity: true)
        }
        return (steps, requests)
    }

    mutating func emit(_ step: Step) { steps.append(step) }
    mutating func request(_ request: Request) { requests.append(request) }
    mutating func count(_ change: (inout Counts) -> Void) { change(&counts) }
    mutating func nextToken() -> Int64 {
        lastToken += 1
        return lastToken
    }

    // MARK: One stream's order

    mutating func accept(_ item: StreamItem) {
        // A stream without a feed concerns no socket of this node.
        // No copy of the feed, which would make its next change copy what is recorded in it.
        guard let (isLive, position) = feeds[item.stream].map({ ($0.isLive, $0.position) }) else { return }
        if isLive, item.seq <= position {
            counts.dropped += 1
            return
        }
        if isLive, item.after <= position {
            deliver(item)
            return drain(item.stream)
        }
        let hasRoom = waitingSizeBytes + item.sizeBytes <= settings.waitingSizeBytesMax
        if hasRoom, feeds[item.stream]?.waiting.count ?? 0 < settings.waitingItemsMax {
            keepWaiting(item)
        } else if !isLive {
            // It is read from the database once the feed is open.
            let head = feeds[item.stream]?.head ?? 0
            feeds[item.stream]?.head = max(head, item.seq)
        }
        if isLive { noteGap(item.stream, head: item.seq) }
    }

    private mutating func keepWaiting(_ item: StreamItem) {
        let former = feeds[item.stream]?.waiting.updateValue(item, forKey: item.seq)
        waitingSizeBytes += item.sizeBytes - (former?.sizeBytes ?? 0)
    }

    private mutating func takeWaiting(_ seq: Seq, of stream: StreamID) -> StreamItem? {
        guard let item = feeds[stream]?.waiting.removeValue(forKey: seq) else { return nil }
        waitingSizeBytes -= item.sizeBytes
        return item
    }

    /// Drops all items that wait in a feed.
    mutating func dropWaiting(of stream: StreamID) {
        guard let waiting = feeds[stream]?.waiting, !waiting.isEmpty else { return }
        for item in waiting.values { waitingSizeBytes -= item.sizeBytes }
        feeds[stream]?.waiting = [:]
    }

    /// Delivers the next item of a live feed.
    mutating func deliver(_ item: StreamItem) {
        var item = item
        let stream = item.stream
        if let end = feeds[stream]?.reportedUpTo, item.seq < end { item.isPartial = true }
        counts.delivered += 1
        switch stream {
        case .channel(let channel):
            for leaving in item.left { depart(leaving, from: channel, with: item) }
            for change in item.roles { emit(.change(.role(change.user, channel, change.role, at: change.seq))) }
            if !item.roles.isEmpty { feeds[stream]?.lastRoleChange = item.seq }
        // Before any event of a channel that the user joins: none may carry messages that are hidden from them.
        case .user(let user): for floor in item.floors { emit(.change(.floor(user, floor.channel, floor.seq))) }
        }
        emit(.event(item))
        record(item)
        feeds[stream]?.position = item.seq
        if case .user(let user) = stream {
            for joined in item.joined {
                attach(Attachment(receiver: .member(user), channel: joined.channel, seq: joined.seq, role: joined.role))
            }
        }
        if item.isDeletion, case .channel(let channel) = stream { delete(channel, with: item) }
        releaseParked(stream)
        giveAnswers(waitingFor: stream)
    }

    /// Delivers the waiting items whose turn has come, and drops older ones.
    mutating func drain(_ stream: StreamID) {
        while feeds[stream]?.isLive == true, let position = feeds[stream]?.position,
            let next = takeWaiting(position + 1, of: stream)
        {
            deliver(next)
        }
        guard let feed = feeds[stream], feed.gapSince != nil || !feed.waiting.isEmpty else { return }
        for seq in feed.waiting.keys where seq <= feed.position {
            _ = takeWaiting(seq, of: stream)
            counts.dropped += 1
        }
        if feed.waiting.allSatisfy({ $0.key <= feed.position }), feed.head <= feed.position {
            feeds[stream]?.gapSince = nil
            feeds[stream]?.reportedUpTo = nil
            feeds[stream]?.isUnreadable = false
            gaps.remove(stream)
        }
    }

    // MARK: Gaps

    mutating func noteGap(_ stream: StreamID, head: Seq) {
        guard var feed = feeds[stream], feed.isLive else { return }
        feed.head = max(feed.head, head)
        if feed.gapSince == nil { feed.gapSince = now }
        feeds[stream] = feed
        gaps.insert(stream)
    }

    /// Notes a gap if the database is ahead of the feed.
    private mutating func learn(_ head: Seq, of stream: StreamID) {
        guard let feed = feeds[stream], feed.isLive, head > feed.position else { return }
        noteGap(stream, head: head)
    }

    private mutating func receive(_ fetched: Fetched?, for fetch: Fetch) {
        guard case .gap = fetch.purpose else { return receiveCatchUp(fetched, for: fetch) }
        guard feeds[fetch.stream]?.isLive == true else { return }
        feeds[fetch.stream]?.isFetching = false
        guard let fetched else {
            feeds[fetch.stream]?.gapSince = now + settings.retryAfter
            return
        }
        feeds[fetch.stream]?.isUnreadable = false
        counts.gapsFetched += 1
        // Otherwise the missing items arrived meanwhile: the joinings and leavings were read for a position that has passed.
        let isCurrent = feeds[fetch.stream]?.position == fetch.after
        if isCurrent {
            feeds[fetch.stream]?.isPartlyRead = true
            feeds[fetch.stream]?.reportedUpTo = fetched.hasMore ? fetched.head : nil
            for item in fetched.items { deliver(item) }
            feeds[fetch.stream]?.isPartlyRead = false
            releaseParked(fetch.stream)
            giveAnswers(waitingFor: fetch.stream)
        }
        drain(fetch.stream)
        guard let feed = feeds[fetch.stream], feed.gapSince != nil else { return }
        let isEmpty = isCurrent && !fetched.hasMore && fetched.items.isEmpty
        feeds[fetch.stream]?.emptyFetches = isEmpty ? feed.emptyFetches + 1 : 0
        if feed.emptyFetches >= settings.emptyFetchesMax { return forgetWaiting(fetch.stream) }
        feeds[fetch.stream]?.gapSince = isCurrent && fetched.hasMore ? now - settings.gapPatience : now
    }

    /// Drops the waiting items: the database has nothing newer after repeated fetches, so they were never committed. If they were,
    /// comparing positions finds them.
    private mutating func forgetWaiting(_ stream: StreamID) {
        dropWaiting(of: stream)
        guard var feed = feeds[stream] else { return }
        feed.head = feed.position
        feed.gapSince = nil
        feed.reportedUpTo = nil
        feed.emptyFetches = 0
        feeds[stream] = feed
        gaps.remove(stream)
        giveUpWaiting(for: stream)
    }

    // MARK: Time

    private mutating func tick() {
        retryUnreadable()
        for stream in gaps {
            guard let feed = feeds[stream], let since = feed.gapSince else {
                gaps.remove(stream)
                continue
            }
            guard !feed.isFetching, now - since >= settings.gapPatience else { continue }
            feeds[stream]?.isFetching = true
            let leavers = feed.reportedUpTo.map { MissedEvents.Leavers.joinedAfter($0) } ?? .all
            request(.fetch(Fetch(stream: stream, after: feed.position, purpose: .gap, leavers: leavers)))
        }
        if headReadsInFlight < Self.headReadsInFlightMax, let part = sweep.next(of: feeds, at: now, settings) {
            headReadsInFlight += 1
            request(.readHeads(part))
        }
        if now - lastRetiredAt >= settings.retireInterval {
            lastRetiredAt = now
            retireIdle()
        }
    }
}
