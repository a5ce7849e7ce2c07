import Foundation
import RoostAPI
import RoostCore
import Synchronization

/// Tracks which users are connected and which watch, over all nodes.
///
/// Presence is sent only to nodes that ask: a node on which a connection watches a channel asks all nodes, including those that appear later,
/// and each answers with what it has and reports changes for a while. A node that is silent for the timeout is considered gone, with all its
/// users (I13).
final class ClusterPresence: Presence, Sendable {
    static let heartbeatMilliseconds: Int64 = 1000
    /// The timeouts that an operator may choose. The shortest allows for two late or lost heartbeats.
    static let timeouts: ClosedRange<Duration> = .seconds(2) ... .seconds(60)
    static let timeoutStandard: Duration = .seconds(3)
    /// How often a node asks again as long as it has watchers, and how long an answering node continues without being asked.
    private static let askAgainMilliseconds: Int64 = 5000
    static let interestMilliseconds: Int64 = 15_000
    /// How long a watcher's answer waits for the other nodes.
    static let gatherTimeoutStandard: Duration = .milliseconds(250)
    /// Changes within this time are sent together.
    private static let sendIntervalMilliseconds: Int64 = 100
    /// The most channels that are asked about without being watched here, because lists name them. Callers can name any ids: beyond this
    /// limit, answers have what is already known.
    static let askedMax = 20_000
    /// The most channels whose changes are reported to the nodes that asked.
    static let interestedMax = 200_000
    /// The most nodes that are remembered as given up.
    static let givenUpMax = 1000
    /// The most names in one answer. The others are sent as a number.
    private static let namesMax = 1000
    /// The most bytes of names in an answer to a query for more of them: the bus takes messages of at most a megabyte. With ids of the
    /// greatest length, these are fewer names than asked for.
    private static let nameBytesMax = 700_000

    /// A message between nodes. Labels are keys of its JSON, which is why a query's number is still labelled `question`: nodes of other versions read
    /// it too.
    enum Message: Codable, Sendable {
        /// I am here. The other nodes answer a new node with their own heartbeat at once.
        case heartbeat(NodeID, isNew: Bool)
        case goodbye(NodeID)
        /// Who is present in the channel? Answer, and send changes.
        case ask(ChannelID, from: NodeID)
        case present(ChannelID, Present)
        /// Which of these users are connected to you? The answer has the same number.
        case askConnected([UserID], question: Int64, from: NodeID)
        case connected([UserID], question: Int64, NodeID)
        /// Who watches a channel on your node, at most this many?
        case askWatchers(ChannelID, upTo: Int, question: Int64, from: NodeID)
        case watchers([UserID], question: Int64, NodeID)
        /// Types or roles have changed. This concerns channels watched on the other nodes, whoever is present.
        case rulesChanged
    }

    /// Who is present in a channel on one node.
    struct Present: Codable, Hashable, Sendable {
        var node: NodeID
        var online: [UserID]
        var onlineBeyond: Int
        var watchers: [UserID]
        var watchersBeyond: Int

        /// Whether a node can have sent this: messages on the bus aren't signed, and the numbers are added up.
        fileprivate var isPossible: Bool {
            0...Int(Int32.max) ~= onlineBeyond && 0...Int(Int32.max) ~= watchersBeyond && online.count <= ClusterPresence.namesMax
                && watchers.count <= ClusterPresence.namesMax
        }
    }

    private let node: NodeID
    private let board: PresenceBoard
    private let timeoutMilliseconds: Int64
    private let gatherMilliseconds: Int64
    private let send: @Sendable (BusTopic, Message) -> Void
    private let state = Mutex(State())
    private let watchListener = Mutex<WatchListener?>(nil)
    private let onlineListener = Mutex<OnlineListener?>(nil)
    private let queries = Mutex(NodeQueries())
    /// Held while the board is read and its state sent: otherwise an older state of the channel could overtake a newer one that another thread sends.
    private let sendLock = Mutex(())
    /// Held while a heartbeat is sent, so none follows the goodbye.
    private let hasSaidGoodbye = Mutex(false)
    /// Whether types or roles have changed through this node since it started.
    private let hasChangedRules = Mutex(false)

    init(
        node: NodeID, board: PresenceBoard, timeout: Duration = timeoutStandard, gatherTimeout: Duration = gatherTimeoutStandard,
        send: @escaping @Sendable (BusTopic, Message) -> Void
    ) {
        self.node = node
        self.board = board
        timeoutMilliseconds = Int64(timeout / .milliseconds(1))
        gatherMilliseconds = Int64(gatherTimeout / .milliseconds(1))
        self.send = send
    }

    // MARK: Asking

    func onlineMemberCount(of channel: ChannelID) -> Int {
        let present = state.withLock { Array(($0.remote[channel] ?? [:]).values) }
        guard !present.isEmpty else { return board.onlineMemberCount(of: channel) }
        let named = present.reduce(into: board.onlineMembers(of: channel)) { $0.formUnion($1.online) }
        return named.count + present.reduce(0) { $0 + $1.onlineBeyond }
    }

    func isCrowded(_ channel: ChannelID, above count: Int) -> Bool {
        watcherCount(of: channel) + board.hiddenWatcherCount(of: channel) > count
    }

    func watcherCount(of channel: ChannelID) -> Int {
        let present = state.withLock { Array(($0.remote[channel] ?? [:]).values) }
        let local = board.watcherCount(of: channel)
        guard present.contains(where: { !$0.watchers.isEmpty }) else { return local }
        let elsewhere = present.reduce(into: Set<UserID>()) { $0.formUnion($1.watchers) }
        return local + elsewhere.count { !board.isWatching($0, channel) } + present.reduce(0) { $0 + $1.watchersBeyond }
    }

    func watchers(of channel: ChannelID, offset: Int, limit: Int, elsewhere asked: [UserID]? = nil) -> [UserID] {
        let found = board.watchers(of: channel, offset: offset, limit: limit)
        guard found.count < limit else { return found }
        let named = asked ?? namedWatchers(of: channel).flatMap(\.users)
        guard !named.isEmpty else { return found }
        // Users who also watch here are in this node's list.
        var known: Set<UserID> = []
        let elsewhere = named.filter { !board.isWatching($0, channel) && known.insert($0).inserted }
        let passed = max(0, offset - board.watcherCount(of: channel))
        return found + elsewhere.dropFirst(passed).prefix(limit - found.count)
    }

    /// The watchers that other nodes have named, and whether they have more.
    private func namedWatchers(of channel: ChannelID) -> [(node: NodeID, users: [UserID], hasMore: Bool)] {
        let present = state.withLock { Array(($0.remote[channel] ?? [:]).values) }
        return present.sorted { $0.node.rawValue < $1.node.rawValue }.map { ($0.node, $0.watchers, $0.watchersBeyond > 0) }
    }

    func isWatching(_ user: UserID, _ channel: ChannelID) -> Bool {
        board.isWatching(user, channel) || isWatchingElsewhere(user, channel)
    }

    /// Whether a user watches a channel on another node, as far as this one knows.
    func isWatchingElsewhere(_ user: UserID, _ channel: ChannelID) -> Bool {
        state.withLock { $0.remote[channel]?.values.contains { $0.watchers.contains(user) } ?? false }
    }

    func isOnline(_ user: UserID, _ channel: ChannelID) -> Bool {
        board.isOnline(user, channel) || isOnlineElsewhere(user, channel)
    }

    /// Whether a member has a connection on another node, as far as this one knows.
    func isOnlineElsewhere(_ user: UserID, _ channel: ChannelID) -> Bool {
        state.withLock { $0.remote[channel]?.values.contains { $0.online.contains(user) } ?? false }
    }

    /// How many other nodes are alive.
    var nodeCount: Int { state.withLock { $0.nodes.count } }

    /// Runs the closure once all nodes have answered for the channel, or the time for answers is over.
    func prepare(_ channel: ChannelID, at now: Int64, then run: @escaping @Sendable () -> Void) {
        let (mustAsk, isReady): (Bool, Bool) = state.withLock { state in
            let answered = state.isKnown(channel, at: now) ? Set((state.remote[channel] ?? [:]).keys) : []
            var missing = Set(state.nodes.keys).subtracting(answered)
            let isWatched = board.isWatched(channel)
            if !isWatched, state.asked[channel] == nil, state.askedUnwatched.count >= Self.askedMax { missing = [] }
            if !missing.isEmpty {
                state.asked[channel] = now
                if !isWatched { state.askedUnwatched.insert(channel) }
            }
            if state.gathers[channel] != nil {
                state.gathers[channel]?.waiting.append(run)
                return (false, false)
            }
            guard !missing.isEmpty else { return (false, true) }
            state.gathers[channel] = Gather(missing: missing, deadline: now + gatherMilliseconds, waiting: [run])
            return (true, false)
        }
        if mustAsk { send(.nodes, .ask(channel, from: node)) }
        if isReady { run() }
    }

    /// Notes that a channel is now watched here, by whatever call. The other nodes are asked, unless they were recently; a signal says who is
    /// present on them. A node that appears later is asked then.
    func watched(_ channel: ChannelID, at now: Int64) {
        let mustAsk = state.withLock { state in
            state.askedUnwatched.remove(channel)
            guard !state.isKnown(channel, at: now) else { return false }
            state.asked[channel] = now
            return !state.nodes.isEmpty
        }
        if mustAsk { send(.nodes, .ask(channel, from: node)) }
    }

    func isConnected(_ user: UserID) -> Bool { board.isConnected(user) }

    /// Asks all nodes which of some users are connected there. Those that don't answer in time are left out.
    ///
    /// - Returns: False, without asking, while too many queries are open.
    func prepare(_ users: [UserID], at now: Int64, then run: @escaping @Sendable (Set<UserID>) -> Void) -> Bool {
        let nodes = state.withLock { Set($0.nodes.keys) }
        guard !nodes.isEmpty else {
            run([])
            return true
        }
        let isAsked = ask(nodes, expecting: .someOf(Set(users)), at: now) { answers in
            run(answers.values.reduce(into: []) { $0.formUnion($1) })
        }
        guard let query = isAsked else { return false }
        send(.nodes, .askConnected(users, question: query, from: node))
        return true
    }

    /// Asks the nodes that have more watchers of a channel than they have named. If a node doesn't answer in time, the watchers that it has
    /// already named are used.
    ///
    /// - Parameter run: Called with the watchers of all nodes, node by node; with nil if all are already named.
    /// - Returns: False, without asking, while too many queries are open.
    func prepareWatchers(
        of channel: ChannelID, upTo count: Int, at now: Int64, then run: @escaping @Sendable ([UserID]?) -> Void
    ) -> Bool {
        let named = namedWatchers(of: channel)
        let crowded = Set(named.lazy.filter { $0.hasMore && $0.users.count < count }.map(\.node))
        guard !crowded.isEmpty else {
            run(nil)
            return true
        }
        let query = ask(crowded, expecting: .any(atMost: count), at: now) { answers in
            run(named.flatMap { answers[$0.node] ?? $0.users })
        }
        guard let query else { return false }
        for other in crowded { send(.node(other), .askWatchers(channel, upTo: count, question: query, from: node)) }
        return true
    }

    /// - Returns: The query's number; nil while too many are open.
    private func ask(
        _ nodes: Set<NodeID>, expecting expected: NodeQueries.Expected, at now: Int64,
        run: @escaping @Sendable ([NodeID: [UserID]]) -> Void
    ) -> Int64? {
        queries.withLock { $0.ask(nodes, expecting: expected, deadline: now + gatherMilliseconds, run: run) }
    }

    // MARK: Sending

    func changed(_ channel: ChannelID) {
        state.withLock { state in if state.interested[channel] != nil { state.changed.insert(channel) } }
    }

    func sayHello() { sendHeartbeat(to: .nodes, isNew: true) }

    /// Catches up now that the bus is back. What the others reported meanwhile hasn't arrived, so they are asked again; they ask in turn once
    /// they are greeted. Nodes that were given up meanwhile are asked when they are heard. If types or roles have changed here, the others
    /// are notified again: they may have missed it, because messages published while a bus fails are lost without a trace.
    func returned() {
        sayHello()
        if hasChangedRules.withLock({ $0 }) { sayRulesChanged() }
        let channels: [ChannelID] = state.withLock { $0.nodes.isEmpty ? [] : Array($0.asked.keys) }
        for channel in channels { send(.nodes, .ask(channel, from: node)) }
    }

    /// Notifies the others that this node is leaving. No heartbeat follows: for them the node would then be back until it has been silent for the timeout.
    func sayGoodbye() {
        hasSaidGoodbye.withLock { $0 = true }
        send(.nodes, .goodbye(node))
    }

    func sayRulesChanged() {
        hasChangedRules.withLock { $0 = true }
        send(.nodes, .rulesChanged)
    }

    private func sendHeartbeat(to topic: BusTopic, isNew: Bool) {
        hasSaidGoodbye.withLock { if !$0 { send(topic, .heartbeat(node, isNew: isNew)) } }
    }

    private func sendPresent(in channel: ChannelID, to nodes: [NodeID]) {
        sendLock.withLock { _ in
            let present = present(in: channel)
            for other in nodes { send(.node(other), .present(channel, present)) }
        }
    }

    private func present(in channel: ChannelID) -> Present {
        let online = board.onlineMembers(of: channel)
        return Present(
            node: node, online: Array(online.prefix(Self.namesMax)), onlineBeyond: max(0, online.count - Self.namesMax),
            watchers: board.watchers(of: channel, offset: 0, limit: Self.namesMax),
            watchersBeyond: max(0, board.watcherCount(of: channel) - Self.namesMax))
    }

    // MARK: Receiving

    /// - Returns: Whether another node has appeared, or had no bus before. What it published until then reached nobody.
    @discardableResult
    func receive(_ message: Message, at now: Int64) -> Bool {
        switch message {
        case .heartbeat(let other, let isNew):
            let (isThereAnew, channels): (Bool, [ChannelID]) = state.withLock { state in
                let isUnknown = state.heard(from: other, isNew: isNew, at: now)
                return (isUnknown || isNew, isUnknown || isNew ? Array(state.asked.keys) : [])
            }
            if isNew { sendHeartbeat(to: .node(other), isNew: false) }
            // A new or returning node is immediately asked about the channels that the others were already asked about: what it reported
            // while the bus was gone hasn't reached this one.
            for channel in channels { send(.node(other), .ask(channel, from: node)) }
            return isThereAnew && other != node
        case .rulesChanged: break
        case .goodbye(let other):
            let (lost, ready) = state.withLock { ($0.lost(with: [other]), $0.forget(other)) }
            for answer in queries.withLock({ $0.forget(other) }) { answer.run(answer.users) }
            for (channel, changed) in lost { report(changed, in: channel) }
            for run in ready { run() }
        case .ask(let channel, let other):
            state.withLock { state in
                guard state.interested[channel] != nil || state.interested.count < Self.interestedMax else { return }
                state.interested[channel, default: [:]][other] = now + Self.interestMilliseconds
            }
            sendPresent(in: channel, to: [other])
        case .present(let channel, let present):
            guard present.isPossible else { return false }
            let (changed, ready) = state.withLock { state in
                // Only channels that this node asked about are kept, and only from known nodes: one that was given up wouldn't be given up a
                // second time. If it isn't gone, it is asked again at its next sign of life.
                let isMeant = state.asked[channel] != nil && state.nodes[present.node] != nil
                let changed = isMeant ? state.replace(present, in: channel) : Changed()
                return (changed, state.heard(of: channel, from: present.node))
            }
            report(changed, in: channel)
            for run in ready { run() }
        case .askConnected(let users, let query, let other):
            let connected = users.prefix(Limits.usersPerCall).filter(board.isConnected)
            send(.node(other), .connected(connected, question: query, node))
        case .askWatchers(let channel, let count, let query, let other):
            let most = min(max(0, count), Limits.watcherOffset + Limits.watcherPage.max)
            var bytes = 0
            let users = board.watchers(of: channel, offset: 0, limit: most).prefix { user in
                bytes += JSONBytes.sizeBytes(of: user.rawValue) + 3
                return bytes <= Self.nameBytesMax
            }
            send(.node(other), .watchers(Array(users), question: query, node))
        case .connected(let users, let query, let other), .watchers(let users, let query, let other):
            let answer = queries.withLock { $0.heard(users, to: query, from: other) }
            answer?.run(answer?.users ?? [:])
        }
        return false
    }

    /// Reports who has come and gone on other nodes, for channels that are watched here.
    private func report(_ changed: Changed, in channel: ChannelID) {
        guard !changed.isEmpty, board.isWatched(channel) else { return }
        if let listener = watchListener.withLock({ $0 }) {
            for user in changed.watchers { listener.report(user, channel) }
            if changed.hasUnnamedWatchers { listener.report(nil, channel) }
        }
        guard let listener = onlineListener.withLock({ $0 }) else { return }
        for user in changed.online { listener.report(user, channel) }
        if changed.hasUnnamed { listener.report(nil, channel) }
    }

    /// Reports that a user began or stopped watching a channel on another node; nil stands for users not known by name. Set once.
    func onWatching(_ report: @escaping @Sendable (UserID?, ChannelID) -> Void) {
        watchListener.withLock { $0 = WatchListener(report: report) }
    }

    /// Reports that a member of a channel came online on another node, or went offline; nil stands for members not known by name. Set once.
    func onOnline(_ report: @escaping @Sendable (UserID?, ChannelID) -> Void) {
        onlineListener.withLock { $0 = OnlineListener(report: report) }
    }

    private struct OnlineListener {
        var report: @Sendable (UserID?, ChannelID) -> Void
    }

    private struct WatchListener {
        var report: @Sendable (UserID?, ChannelID) -> Void
    }

    // MARK: Time

    /// Sends heartbeats and changes, and ends what has timed out. Called often.
    ///
    /// - Returns: Whether a node was lost.
    func tick(at now: Int64) -> Bool {
        var ready: [@Sendable () -> Void] = []
        var messages: [(BusTopic, Message)] = []
        var toSend: [(ChannelID, [NodeID])] = []
        var stopped: [ChannelID: Changed] = [:]
        var heardAgain: Set<NodeID> = []
        for answer in queries.withLock({ $0.takeOverdue(at: now) }) { ready.append { answer.run(answer.users) } }
        var isHeartbeatDue = false
        let hasLost = state.withLock { state in
            let lost = state.nodes.filter { now - $0.value > timeoutMilliseconds }.keys
            if !lost.isEmpty { stopped = state.lost(with: Set(lost)) }
            for other in lost { ready += state.giveUp(other) }
            (heardAgain, state.heardAgain) = (state.heardAgain, [])
            for (channel, gather) in state.gathers where gather.deadline <= now {
                ready += gather.waiting
                state.gathers[channel] = nil
            }
            if now - state.lastHeartbeat >= Self.heartbeatMilliseconds {
                state.lastHeartbeat = now
                isHeartbeatDue = true
                messages += renewals(&state, at: now)
            }
            if now - state.lastSentAt >= Self.sendIntervalMilliseconds, !state.changed.isEmpty {
                state.lastSentAt = now
                toSend = state.changed.compactMap { channel in
                    state.interested[channel].map { (channel, $0.filter { $0.value > now }.map(\.key)) }
                }
                state.changed.removeAll()
            }
            return !lost.isEmpty
        }
        if isHeartbeatDue { sendHeartbeat(to: .nodes, isNew: false) }
        // Greeted as if by a new node, they repeat their queries.
        for other in heardAgain { sendHeartbeat(to: .node(other), isNew: true) }
        for (topic, message) in messages { send(topic, message) }
        for (channel, nodes) in toSend where !nodes.isEmpty { sendPresent(in: channel, to: nodes) }
        for run in ready { run() }
        for (channel, changed) in stopped { report(changed, in: channel) }
        return hasLost
    }

    /// Asks again for the channels that are still watched here, and forgets those that aren't, and nodes that no longer ask.
    private func renewals(_ state: inout State, at now: Int64) -> [(BusTopic, Message)] {
        var messages: [(BusTopic, Message)] = []
        for (channel, askedAt) in state.asked where now - askedAt >= Self.askAgainMilliseconds {
            if board.isWatched(channel) {
                state.asked[channel] = now
                if !state.nodes.isEmpty { messages.append((.nodes, .ask(channel, from: node))) }
            } else {
                guard now - askedAt >= Self.interestMilliseconds else { continue }
                state.asked[channel] = nil
                state.askedUnwatched.remove(channel)
                state.remote[channel] = nil
            }
        }
        for (channel, nodes) in state.interested {
            let current = nodes.filter { $0.value > now }
            state.interested[channel] = current.isEmpty ? nil : current
        }
        return messages
    }
}
