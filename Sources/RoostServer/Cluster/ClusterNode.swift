import Foundation
import Logging
import RoostAPI
import RoostCore
import RoostDatabase
import Synchronization

/// One node of a cluster: drives the ``Relay``, publishes this node's commits, and receives those of other nodes.
///
/// Two threads: `roost-relay` runs the relay and hands its steps to the hub; `roost-repair` reads from the database what the relay
/// requests. Lanes publish on their own threads, after the commit; a crash between the two is repaired by the other nodes.
final class ClusterNode: Delivery {
    let node: NodeID
    private let hub: Hub
    private let bus: any Bus
    private let database: any Database
    private let readiness: Readiness
    private let metrics: ServerMetrics
    private let logger: Logger
    private let clusterPresence: ClusterPresence
    private let inbox = Inbox<Relay.Input>(
        room: .init(count: ClusterNode.inboxCountMax, sizeBytes: ClusterNode.inboxSizeBytesMax, overflow: .recheckAll))
    private let databaseRequests = Inbox<Relay.Request>()
    private let threads = Threads()
    private let unreadable = LogThrottle()
    /// Whether the bus has reported that it is back, and ``settleAfterReconnect()`` hasn't handled that yet.
    private let needsSettling = Mutex(false)
    private let clocks = Mutex(ClockComparison())
    private let noticeHandler = Mutex<NoticeHandler?>(nil)
    private let counts = Mutex((relay: Relay.Counts(), feeds: 0, published: Int64(0)))

    /// The most packets from the bus that may be queued, and their bytes. Further ones are dropped, and the streams are compared with the database.
    private static let inboxCountMax = 100_000
    private static let inboxSizeBytesMax = 64 << 20

    var presence: any Presence & Sendable { clusterPresence }

    /// Starts receiving, and starts the threads.
    init(
        node: NodeID, hub: Hub, bus: any Bus, database: any Database, readiness: Readiness,
        presenceTimeout: Duration = ClusterPresence.timeoutStandard,
        gatherTimeout: Duration = ClusterPresence.gatherTimeoutStandard, metrics: ServerMetrics = ServerMetrics(), logger: Logger
    ) throws {
        self.node = node
        self.hub = hub
        self.bus = bus
        self.database = database
        self.readiness = readiness
        self.metrics = metrics
        self.logger = logger
        clusterPresence = ClusterPresence(
            node: node, board: hub.board, timeout: presenceTimeout, gatherTimeout: gatherTimeout
        ) { topic, message in
            // A message of ours always encodes.
            if let payload = try? JSONEncoder().encode(message) { bus.publish(Array(payload), to: topic) }
        }
        let (inbox, clusterPresence) = (inbox, clusterPresence)
        hub.onEmptied { inbox.put(.emptied([$0])) }
        hub.board.onChange { clusterPresence.changed($0) }
        hub.board.onFirstWatch { clusterPresence.watched($0, at: MonotonicClock.milliseconds) }
        try bus.start { [weak self] in self?.receive($0) }
        bus.subscribe(to: .nodes)
        bus.subscribe(to: .node(node))
        // Messages published before the bus is connected are lost: in that case the other nodes are greeted once it is.
        if (try? bus.settle()) != nil { clusterPresence.sayHello() }
        threads.start("roost-relay") { [self] in runRelay() }
        threads.start("roost-repair") { [self] in runRepair() }
    }

    /// Ends the threads, after the engine has ended. Blocks.
    func stop() {
        clusterPresence.sayGoodbye()
        inbox.close()
        databaseRequests.close()
        threads.wait()
        bus.stop()
    }

    // MARK: Out

    func waitForLoops(atMost time: Duration) -> Bool { hub.waitForLoops(atMost: time) }

    func deliver(_ committed: [Committed]) {
        var operations = committed.map { operation in
            let (items, attachments) = StreamItem.items(of: operation.notices)
            return Relay.LocalOperation(
                items: items, attachments: attachments, answer: operation.answer, user: operation.user, channel: operation.channel,
                callerSeq: operation.callerSeq)
        }
        for answered in deliverPastRelay(committed) { operations[answered].answer = .waiting {} }
        for operation in committed { publish(newsIn: operation.notices) }
        // Commits are never dropped: the engine's queues bound them.
        inbox.put(.committed(operations))
        let packets = Packet.encode(operations.lazy.flatMap(\.items))
        for packet in packets { bus.publish(packet.bytes, to: .stream(packet.stream)) }
        counts.withLock { $0.published += Int64(packets.count) }
    }

    func send(_ notices: [Notice]) {
        hub.send(notices)
        publish(newsIn: notices)
    }

    func publish(_ notices: [Notice]) { publish(newsIn: notices) }

    /// Sends the other nodes the news that isn't stored.
    private func publish(newsIn notices: some Sequence<Notice>) {
        for notice in notices {
            if case .rulesChanged = notice { clusterPresence.sayRulesChanged() }
            guard let news = NodeSignal(notice), let payload = news.payload else { continue }
            bus.publish(payload, to: .stream(news.stream))
        }
    }

    func onRemoteNotices(_ take: @escaping @Sendable ([Notice]) -> Void) {
        noticeHandler.withLock { $0 = NoticeHandler(take: take) }
    }

    /// A user who watches a channel on two nodes starts with the first and stops with the last.
    func onWatching(_ report: @escaping @Sendable (UserID?, ChannelID) -> Void) {
        let (presence, board) = (clusterPresence, hub.board)
        board.onWatching { if !presence.isWatchingElsewhere($0, $1) { report($0, $1) } }
        presence.onWatching { user, channel in
            if user.map({ board.isWatching($0, channel) }) != true { report(user, channel) }
        }
    }

    /// A member is online from their first connection, on any node, until the last one ends.
    func onOnline(_ report: @escaping @Sendable (UserID?, ChannelID) -> Void) {
        let (presence, board) = (clusterPresence, hub.board)
        board.onOnline { if !presence.isOnlineElsewhere($0, $1) { report($0, $1) } }
        board.onAnswer { [weak presence] count, channel in
            if presence?.onlineMemberCount(of: channel) != count { report(nil, channel) }
        }
        presence.onOnline { user, channel in
            if user.map({ board.isOnline($0, channel) }) != true { report(user, channel) }
        }
    }

    /// In a structure, since a closure stored directly in a mutex is wrapped again with each use.
    private struct NoticeHandler {
        var take: @Sendable ([Notice]) -> Void
    }

    /// Delivers notices that belong to no stream.
    ///
    /// - Returns: The indices of the operations whose replies it has delivered: those that shut users or tokens out. One of these may be the
    ///   caller's own, and the relay's replies reach no connection that has ended. Such an operation has no events that its reply has to follow.
    private func deliverPastRelay(_ committed: [Committed]) -> [Int] {
        var frames = EventFrames()
        var answered: [Int] = []
        for (index, operation) in committed.enumerated() {
            for notice in operation.notices {
                switch notice {
                case .accessChanged:
                    if case .socket(let socket, let payload) = operation.answer, answered.last != index {
                        frames.reply(payload, to: socket)
                        answered.append(index)
                    }
                    frames.change(notice)
                case .mayRead, .reading, .stoppedReading, .markedUnread, .readers: frames.change(notice)
                case .signal(let signal, let audience): frames.add(signal, to: audience)
                default: break
                }
            }
        }
        hub.deliver(frames.steps)
        return answered
    }

    func preparePresence(of channel: ChannelID, then run: @escaping @Sendable () -> Void) {
        clusterPresence.prepare(channel, at: MonotonicClock.milliseconds) { [hub] in hub.preparePresence(of: channel, then: run) }
    }

    func onConnection(_ report: @escaping @Sendable (_ user: UserID, _ isConnected: Bool) -> Void) { hub.onConnection(report) }

    func prepareConnected(_ users: [UserID], then run: @escaping @Sendable (_ elsewhere: Set<UserID>) -> Void) -> Bool {
        clusterPresence.prepare(users, at: MonotonicClock.milliseconds) { [hub] elsewhere in
            // A hub without other nodes always has room for the query.
            _ = hub.prepareConnected(users) { _ in run(elsewhere) }
        }
    }

    func prepareWatchers(of channel: ChannelID, upTo count: Int, then run: @escaping @Sendable ([UserID]?) -> Void) -> Bool {
        clusterPresence.prepareWatchers(of: channel, upTo: count, at: MonotonicClock.milliseconds, then: run)
    }

    // MARK: In

    private func receive(_ event: BusEvent) {
        switch event {
        case .received(.stream(let stream), let payload) where NodeSignal.isIn(payload):
            guard let news = NodeSignal(payload, of: stream) else { return }
            switch news {
            case .markedUnread: hub.deliver([.change(news.notice)])
            case .typing, .stoppedTyping, .read, .signal, .profileShown: break
            }
            noticeHandler.withLock { $0 }?.take([news.notice])
        case .received(.stream(let stream), let payload):
            guard let items = Packet.decode(payload, of: stream) else {
                if unreadable.shouldLog() {
                    logger.warning(
                        "A packet of \(stream) can't be read: other nodes run another version, or the bus has other users.")
                }
                return
            }
            inbox.offer(.received(items), sizeBytes: payload.count)
        case .received(_, let payload):
            guard let message = try? JSONDecoder().decode(ClusterPresence.Message.self, from: Data(payload)) else { return }
            if case .rulesChanged = message { noticeHandler.withLock { $0 }?.take([.rulesChanged]) }
            if clusterPresence.receive(message, at: MonotonicClock.milliseconds) {
                inbox.offer(.recheckAll, sizeBytes: payload.count)
            }
        case .disconnected:
            logger.error("The bus can't be reached. Events of other nodes are read from the database until it is back.")
        case .reconnected:
            logger.notice("The bus is connected.")
            clusterPresence.returned()
            inbox.put(.recheckAll)
            needsSettling.withLock { $0 = true }
            // No stream reports rules that changed meanwhile.
            noticeHandler.withLock { $0 }?.take([.rulesChanged])
        }
    }

    // MARK: The relay

    private func runRelay() {
        var relay = Relay()
        var lastTick: Int64 = 0
        while let inputs = inbox.take(within: relay.isWaiting ? .milliseconds(5) : .milliseconds(50)) {
            let now = MonotonicClock.milliseconds
            for input in inputs { relay.handle(input, at: now) }
            if now - lastTick >= 5 {
                lastTick = now
                if clusterPresence.tick(at: now) { relay.handle(.recheckAll, at: now) }
                relay.handle(.tick, at: now)
            }
            let output = relay.takeOutput()
            deliver(output.steps)
            for request in output.requests { carryOut(request) }
            counts.withLock {
                $0.relay = relay.counts
                $0.feeds = relay.feeds.count
            }
            letLoopsCatchUp(&relay)
        }
    }

    /// Waits while event loops have a large backlog: otherwise the events of other nodes would pile up without bound at a slow loop.
    /// Meanwhile these wait in the inbox, which is bounded: once it is full, the streams are compared with the database instead.
    ///
    /// No loop and no lane waits for this thread. ``stop()`` does, and ends the wait.
    private func letLoopsCatchUp(_ relay: inout Relay) {
        while !hub.waitForLoops(atMost: .milliseconds(50)), !inbox.isClosed {
            // This node's heartbeats continue, and those of the others are checked.
            let now = MonotonicClock.milliseconds
            if clusterPresence.tick(at: now) { relay.handle(.recheckAll, at: now) }
        }
    }

    private func deliver(_ steps: [Relay.Step]) {
        guard !steps.isEmpty else { return }
        let (steps, waiting) = EventFrames.steps(for: steps)
        hub.deliver(steps)
        for resume in waiting { resume() }
    }

    private func carryOut(_ request: Relay.Request) {
        switch request {
        case .close(let streams): for stream in streams { bus.unsubscribe(from: .stream(stream)) }
        case .findUnused(let streams, let time):
            let inbox = inbox
            hub.findUnused(among: streams) { inbox.put(.unused($0, asOf: time)) }
        case .open(let streams):
            for stream in streams { bus.subscribe(to: .stream(stream)) }
            databaseRequests.put(request)
        case .fetch, .readStreams, .readHeads: databaseRequests.put(request)
        }
    }

    // MARK: Repair

    private func runRepair() {
        var lastPoll: Int64 = 0
        while let requests = databaseRequests.take(within: .seconds(1)) {
            func pollDatabaseIfDue() {
                guard MonotonicClock.milliseconds - lastPoll >= 1000 else { return }
                lastPoll = MonotonicClock.milliseconds
                pollDatabase()
            }
            pollDatabaseIfDue()
            settleAfterReconnect()
            var opening: [StreamID] = []
            for request in requests { if case .open(let streams) = request { opening += streams } }
            if !opening.isEmpty { open(opening) }
            for request in requests {
                answer(request)
                // Each failing request takes a while, and there may be many.
                pollDatabaseIfDue()
            }
        }
    }

    /// Streams opened before the bus reported that it is back haven't waited for their subscriptions: after a settlement all are compared again.
    private func settleAfterReconnect() {
        let isBack = needsSettling.withLock { needsSettling in
            defer { needsSettling = false }
            return needsSettling
        }
        guard isBack else { return }
        do { try bus.settle() } catch { return }
        inbox.put(.recheckAll)
    }

    /// While the database doesn't answer, the server isn't ready: writes are refused, and sockets stay open.
    private func pollDatabase() {
        var isReachable = true
        do {
            try database.readClock()
        } catch {
            isReachable = false
        }
        if isReachable { clocks.withLock { $0.compare(machine: .now, database: database.now(), logger) } }
        guard readiness.setDatabase(isReachable: isReachable) else { return }
        if isReachable {
            logger.notice("Reconnected to the database.")
            inbox.put(.recheckAll)
            // Another server may be answering.
            StartChecks.warnOfNewTimeline(of: database, logger)
        } else {
            logger.error("The database can't be reached. Operations are refused until it is back; connections stay open.")
        }
    }

    /// Subscriptions first, then the heads: commits made after the heads are read are published to a subscription that is in place.
    private func open(_ streams: [StreamID]) {
        do {
            // Without a bus the heads still count: later events are found by comparing positions.
            if bus.isConnected { try? bus.settle() }
            inbox.put(.opened(try database.read { try $0.heads(of: streams) }))
        } catch {
            waitAfter(error)
            inbox.put(.openFailed(streams))
        }
    }

    private func answer(_ request: Relay.Request) {
        do {
            switch request {
            case .fetch(let fetch):
                let missed = try database.read {
                    try $0.missedEvents(of: fetch.stream, after: fetch.after, now: database.now(), reporting: fetch.leavers)
                }
                let items = StreamItem.items(of: missed.notices).items
                inbox.put(.fetched(fetch, .init(items: items, seq: missed.seq, hasMore: missed.hasMore, head: missed.head)))
            case .readStreams(let user, let token):
                inbox.put(.streamsRead(token, try database.read { try $0.streams(of: user) }))
            case .readHeads(let streams):
                inbox.put(.heads(try database.read { try $0.heads(of: streams) }))
            case .open, .close, .findUnused: break
            }
        } catch {
            if case .fetch(let fetch) = request, isUnreadable(fetch.stream, error) { return inbox.put(.unreadable(fetch)) }
            waitAfter(error)
            switch request {
            case .fetch(let fetch): inbox.put(.fetched(fetch, nil))
            case .readStreams(_, let token): inbox.put(.streamsRead(token, nil))
            case .readHeads(let streams): inbox.put(.headsFailed(streams))
            case .open, .close, .findUnused: break
            }
        }
    }

    /// Returns whether a database that answers can't read missed events, and logs that. A read that found no connection, or took too long, is
    /// tried again like those of a database that is away.
    private func isUnreadable(_ stream: StreamID, _ error: any Error) -> Bool {
        if let failure = error as? DatabaseFailure {
            guard failure.kind == .damage || failure.kind == .statement else { return false }
            if failure.kind == .damage { metrics.damaged() }
        }
        if let turn = unreadable.turn("events") {
            logger.error(
                "Missed events of \(stream) can't be read. Connections of this node that need them get nothing newer of it\(turn.suffix).",
                metadata: ["error": "\(error)"])
        }
        return true
    }

    /// A database that doesn't answer isn't queried again immediately.
    private func waitAfter(_ error: any Error) {
        logger.debug("The database isn't answering a node's query.", metadata: ["error": "\(error)"])
        databaseRequests.pause(for: .milliseconds(300))
    }

    /// The cluster's samples for `/metrics`.
    var samples: [MetricSample] {
        let (relay, feeds, published) = counts.withLock { $0 }
        return [
            MetricSample("roost_cluster_nodes", clusterPresence.nodeCount + 1),
            MetricSample("roost_cluster_bus_connected", bus.isConnected ? 1 : 0),
            MetricSample("roost_cluster_streams", feeds),
            MetricSample("roost_cluster_packets_published_total", published),
            MetricSample("roost_cluster_events_delivered_total", relay.delivered),
            MetricSample("roost_cluster_events_dropped_total", relay.dropped),
            MetricSample("roost_cluster_gaps_fetched_total", relay.gapsFetched),
            MetricSample("roost_cluster_catch_ups_total", relay.catchUps),
        ]
    }
}
