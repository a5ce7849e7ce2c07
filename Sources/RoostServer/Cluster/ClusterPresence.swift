import Foundation
import RoostAPI
import RoostCore
import Synchronization

/// Who is connected and who watches, over all nodes.
///
/// Nobody is told of presence who doesn't want to know: a node that has a watcher in a channel asks all nodes, and each answers with what it has and
/// goes on telling changes for a while. Who hasn't been heard of for the timeout is gone, with all its users (I13).
final class ClusterPresence: Presence, Sendable {
    static let heartbeatMilliseconds: Int64 = 1000
    /// What an operator may choose as the time after which a silent node is gone. Two heartbeats may be late or lost in the shortest.
    static let timeouts: ClosedRange<Duration> = .seconds(2) ... .seconds(60)
    static let timeoutStandard: Duration = .seconds(3)
    /// How often a node asks again as long as it has watchers, and how long an answering node goes on without being asked.
    private static let askAgainMilliseconds: Int64 = 5000
    private static let interestMilliseconds: Int64 = 15_000
    /// How long a watcher's answer waits for the other nodes.
    private static let gatherMilliseconds: Int64 = 250
    /// Changes of this time are told together.
    private static let tellMilliseconds: Int64 = 100
    /// Names that one answer carries; how many there are beyond is told as a number.
    private static let namesMax = 1000

    /// What nodes say to one another.
    enum Message: Codable, Sendable {
        /// I am here. A new node wants to hear it from the others at once.
        case heartbeat(NodeID, isNew: Bool)
        case goodbye(NodeID)
        /// Who is present in the channel? Tell me, and tell me of changes.
        case ask(ChannelID, from: NodeID)
        case present(ChannelID, Present)
    }

    /// Who is present in a channel on one node.
    struct Present: Codable, Hashable, Sendable {
        var node: NodeID
        var online: [UserID]
        var onlineBeyond: Int
        var watchers: [UserID]
    }

    fileprivate struct State {
        var nodes: [NodeID: Int64] = [:]
        /// Which nodes want to hear of a channel, and until when.
        var interested: [ChannelID: [NodeID: Int64]] = [:]
        /// What other nodes told of a channel.
        var remote: [ChannelID: [NodeID: Present]] = [:]
        /// The channels that were asked for, and when last.
        var asked: [ChannelID: Int64] = [:]
        var gathers: [ChannelID: Gather] = [:]
        var changed: Set<ChannelID> = []
        var lastHeartbeat: Int64 = 0
        var lastTold: Int64 = 0
    }

    /// Answers that wait until the other nodes have told.
    fileprivate struct Gather {
        var missing: Set<NodeID>
        let deadline: Int64
        var waiting: [@Sendable () -> Void]
    }

    private let node: NodeID
    private let board: PresenceBoard
    private let timeoutMilliseconds: Int64
    private let send: @Sendable (BusTopic, Message) -> Void
    private let state = Mutex(State())

    init(
        node: NodeID, board: PresenceBoard, timeout: Duration = timeoutStandard,
        send: @escaping @Sendable (BusTopic, Message) -> Void
    ) {
        self.node = node
        self.board = board
        timeoutMilliseconds = Int64(timeout / .milliseconds(1))
        self.send = send
    }

    // MARK: Asking

    func onlineMemberCount(of channel: ChannelID) -> Int {
        let present = state.withLock { Array(($0.remote[channel] ?? [:]).values) }
        guard !present.isEmpty else { return board.onlineMemberCount(of: channel) }
        let named = present.reduce(into: board.onlineMembers(of: channel)) { $0.formUnion($1.online) }
        return named.count + present.reduce(0) { $0 + $1.onlineBeyond }
    }

    func onlineMembers(of channel: ChannelID) -> Set<UserID> {
        let remote = state.withLock { state in (state.remote[channel] ?? [:]).values.map(\.online) }
        return remote.reduce(into: board.onlineMembers(of: channel)) { $0.formUnion($1) }
    }

    func watchers(of channel: ChannelID) -> Set<UserID> {
        let remote = state.withLock { state in (state.remote[channel] ?? [:]).values.map(\.watchers) }
        return remote.reduce(into: board.watchers(of: channel)) { $0.formUnion($1) }
    }

    /// The other nodes that are heard of.
    var nodeCount: Int { state.withLock { $0.nodes.count } }

    /// Runs the closure when all nodes have told of the channel, or haven't in time.
    func prepare(_ channel: ChannelID, at now: Int64, then run: @escaping @Sendable () -> Void) {
        let (mustAsk, isReady): (Bool, Bool) = state.withLock { state in
            let isKnown = state.asked[channel].map { now - $0 < Self.interestMilliseconds } ?? false
            let missing = isKnown ? [] : Set(state.nodes.keys)
            if !missing.isEmpty { state.asked[channel] = now }
            if state.gathers[channel] != nil {
                state.gathers[channel]?.waiting.append(run)
                return (false, false)
            }
            guard !missing.isEmpty else { return (false, true) }
            state.gathers[channel] = Gather(missing: missing, deadline: now + Self.gatherMilliseconds, waiting: [run])
            return (true, false)
        }
        if mustAsk { send(.nodes, .ask(channel, from: node)) }
        if isReady { run() }
    }

    // MARK: Telling

    func changed(_ channel: ChannelID) {
        state.withLock { state in if state.interested[channel] != nil { state.changed.insert(channel) } }
    }

    func sayHello() { send(.nodes, .heartbeat(node, isNew: true)) }
    func sayGoodbye() { send(.nodes, .goodbye(node)) }

    private func present(in channel: ChannelID) -> Present {
        let online = board.onlineMembers(of: channel)
        return Present(
            node: node, online: Array(online.prefix(Self.namesMax)), onlineBeyond: max(0, online.count - Self.namesMax),
            watchers: Array(board.watchers(of: channel).prefix(Self.namesMax)))
    }

    // MARK: Hearing

    func receive(_ message: Message, at now: Int64) {
        switch message {
        case .heartbeat(let other, let isNew):
            let channels = state.withLock { state in
                defer { state.nodes[other] = now }
                return state.nodes[other] == nil ? Array(state.asked.keys) : []
            }
            if isNew { send(.node(other), .heartbeat(node, isNew: false)) }
            // Who is heard of for the first time, or again, is asked at once for what the others told already.
            for channel in channels { send(.node(other), .ask(channel, from: node)) }
        case .goodbye(let other):
            for run in state.withLock({ $0.forget(other) }) { run() }
        case .ask(let channel, let other):
            state.withLock { $0.interested[channel, default: [:]][other] = now + Self.interestMilliseconds }
            send(.node(other), .present(channel, present(in: channel)))
        case .present(let channel, let present):
            let ready = state.withLock { state in
                // Only what was asked for is kept.
                if state.asked[channel] != nil { state.remote[channel, default: [:]][present.node] = present }
                return state.heard(of: channel, from: present.node)
            }
            for run in ready { run() }
        }
    }

    // MARK: Time

    /// Called often.
    ///
    /// - Returns: whether a node was lost.
    func tick(at now: Int64) -> Bool {
        var ready: [@Sendable () -> Void] = []
        var messages: [(BusTopic, Message)] = []
        var toTell: [(ChannelID, [NodeID])] = []
        let hasLost = state.withLock { state in
            let lost = state.nodes.filter { now - $0.value > timeoutMilliseconds }.keys
            for other in lost { ready += state.forget(other) }
            for (channel, gather) in state.gathers where gather.deadline <= now {
                ready += gather.waiting
                state.gathers[channel] = nil
            }
            if now - state.lastHeartbeat >= Self.heartbeatMilliseconds {
                state.lastHeartbeat = now
                messages.append((.nodes, .heartbeat(node, isNew: false)))
                messages += renewals(&state, at: now)
            }
            if now - state.lastTold >= Self.tellMilliseconds, !state.changed.isEmpty {
                state.lastTold = now
                toTell = state.changed.compactMap { channel in
                    state.interested[channel].map { (channel, $0.filter { $0.value > now }.map(\.key)) }
                }
                state.changed.removeAll()
            }
            return !lost.isEmpty
        }
        for (channel, nodes) in toTell where !nodes.isEmpty {
            let present = present(in: channel)
            messages += nodes.map { (.node($0), .present(channel, present)) }
        }
        for (topic, message) in messages { send(topic, message) }
        for run in ready { run() }
        return hasLost
    }

    /// Asks again for the channels that are still watched here, and forgets those that aren't, and who doesn't ask any more.
    private func renewals(_ state: inout State, at now: Int64) -> [(BusTopic, Message)] {
        var messages: [(BusTopic, Message)] = []
        for (channel, askedAt) in state.asked where now - askedAt >= Self.askAgainMilliseconds {
            if board.watchers(of: channel).isEmpty {
                guard now - askedAt >= Self.interestMilliseconds else { continue }
                state.asked[channel] = nil
                state.remote[channel] = nil
            } else {
                state.asked[channel] = now
                messages.append((.nodes, .ask(channel, from: node)))
            }
        }
        for (channel, nodes) in state.interested {
            let current = nodes.filter { $0.value > now }
            state.interested[channel] = current.isEmpty ? nil : current
        }
        return messages
    }
}

extension ClusterPresence.State {
    /// A node is gone. Returns whose wait is over by that.
    fileprivate mutating func forget(_ other: NodeID) -> [@Sendable () -> Void] {
        nodes[other] = nil
        for channel in remote.keys { remote[channel]?[other] = nil }
        for channel in interested.keys { interested[channel]?[other] = nil }
        return gathers.keys.flatMap { heard(of: $0, from: other) }
    }

    fileprivate mutating func heard(of channel: ChannelID, from other: NodeID) -> [@Sendable () -> Void] {
        gathers[channel]?.missing.remove(other)
        guard let gather = gathers[channel], gather.missing.isEmpty else { return [] }
        gathers[channel] = nil
        return gather.waiting
    }
}
