import Foundation
import RoostAPI
import RoostCore
import RoostTestSupport

@testable import RoostServer

/// Several nodes with their relays, one database, a bus that loses, repeats and reorders, and clients that connect and disconnect: on a
/// simulated clock, from one seed.
final class RelayWorld {
    /// How often things go wrong.
    struct Faults {
        var lossPercent = 10
        var repeatPercent = 10
        var delayMax: Int64 = 30
        /// Crashes and outages of the bus and of the database happen once in this many steps.
        var crashEvery = 300
        var busOutageEvery = 500
        var databaseOutageEvery = 700
        /// Whether connections also start and stop watching.
        var hasWatchers = false
    }

    private final class Node {
        let number: Int
        var relay = Relay()
        /// The node's subscriptions on the bus.
        var topics: Set<StreamID> = []
        /// The node's connections, and which of them gets what.
        var clients: [ConnectionID: RelayClient] = [:]
        var subscriptions = Subscriptions<ConnectionID>()
        /// When each lane last reported its commits: a lane reports in the order of its commits.
        var lanes = [Int64](repeating: 0, count: 3)

        init(number: Int) { self.number = number }
    }

    let seed: UInt64
    /// The events of the run, line by line, if requested. The iteration of dictionaries differs between two runs of a seed, so a failure is
    /// best examined in the run in which it occurred. `SWIFT_DETERMINISTIC_HASHING=1` makes runs alike.
    private(set) var trace: [String] = []
    private let isTraced = ProcessInfo.processInfo.environment["ROOST_TEST_TRACE"] != nil
    private var random: SeededGenerator
    private let faults: Faults
    private var nodes: [Node]
    private(set) var database = RelayDatabase()
    private var queue: [(time: Int64, order: Int, run: () -> Void)] = []
    private var order = 0
    private(set) var now: Int64 = 0
    private var lastConnection: Int64 = 0
    private var lastCall = 0
    private var busIsUp = true
    private var databaseIsUp = true
    private var isCalm = false
    private(set) var faultsFound: [String] = []
    private(set) var eventCount = 0

    static let channels = (1...6).map { ChannelID("c\($0)") }
    static let users = (1...8).map { UserID("u\($0)") }

    init(seed: UInt64, nodeCount: Int = 3, faults: Faults = Faults()) {
        self.seed = seed
        self.faults = faults
        random = SeededGenerator(seed: seed)
        nodes = (0..<nodeCount).map { Node(number: $0) }
        for node in nodes { tick(node) }
        for user in Self.users { scheduleConnect(user, in: random(0...50)) }
    }

    private func random(_ range: ClosedRange<Int64>) -> Int64 { Int64.random(in: range, using: &random) }
    private func happens(percent: Int) -> Bool { !isCalm && random(0...99) < percent }
    private func happens(onceIn count: Int) -> Bool { !isCalm && random(1...Int64(count)) == 1 }
    private func pick<T>(_ values: [T]) -> T { values[Int(random(0...Int64(values.count - 1)))] }

    private func after(_ delay: Int64, _ run: @escaping () -> Void) {
        order += 1
        queue.append((now + delay, order, run))
    }

    /// Runs what is due until a time.
    private func run(until end: Int64) {
        while let index = queue.indices.min(by: { (queue[$0].time, queue[$0].order) < (queue[$1].time, queue[$1].order) }),
            queue[index].time <= end
        {
            let next = queue.remove(at: index)
            now = max(now, next.time)
            next.run()
        }
        now = end
    }

    // MARK: The story

    func live(steps: Int) {
        for _ in 0..<steps {
            run(until: now + random(0...8))
            act()
        }
        isCalm = true
        busIsUp = true
        databaseIsUp = true
        for node in nodes { handle(.recheckAll, node) }
        // Long enough for every wait to be over: patience, retries, sweeps.
        run(until: now + 6000)
        judge()
    }

    private func act() {
        let node = pick(nodes)
        let user = pick(Self.users)
        let channel = pick(Self.channels)
        switch random(0...22) {
        case 0...8: commit(on: node, in: channel) { $0.send(to: channel) }
        case 9, 10:
            let back = Int(random(0...5))
            commit(on: node, in: channel) { $0.edit(in: channel, back: back) }
        case 11: commit(on: node, in: channel, by: user) { $0.hide(channel, from: user) }
        case 12, 13:
            let hidesHistory = random(0...1) == 0
            // Whether the watch of a former member survives a joining isn't promised if events are lost: the rows read for a gap don't
            // distinguish a joining from leaving and coming back.
            let isFirst = !database.hasBeenMember(user, of: channel)
            for other in nodes where !database.isMember(user, of: channel) {
                for connection in other.clients.keys where other.clients[connection]?.user == user {
                    other.clients[connection]?.joins(channel, forTheFirstTime: isFirst)
                }
            }
            let isInOneBreath = random(0...1) == 0
            commit(on: node, in: channel, by: user) { $0.setMember(user, of: channel, true, hidesHistory: hidesHistory) }
            if isInOneBreath {
                if faults.hasWatchers, random(0...1) == 0 { watch(channel, by: user, on: node) }
                commit(on: node, in: channel, by: user) { $0.send(to: channel) }
            }
        case 14:
            for other in nodes where database.isMember(user, of: channel) {
                for connection in other.clients.keys where other.clients[connection]?.user == user {
                    other.clients[connection]?.leaves(channel)
                }
            }
            commit(on: node, in: channel, by: user) { $0.setMember(user, of: channel, false) }
        case 15: commit(on: node, in: nil, by: user) { $0.touch(user) }
        case 16: commit(on: node, in: channel, by: user) { $0.read(user, in: channel) }
        case 17: scheduleConnect(user, in: 0)
        case 18, 19: if faults.hasWatchers { watch(channel, by: user, on: node) }
        case 20: if faults.hasWatchers { unwatch(channel, by: user, on: node) }
        default:
            guard let (connection, _) = node.clients.randomElement(using: &random) else { break }
            node.clients[connection] = nil
            node.subscriptions.remove(connection) { perform($0, on: node) }
        }
        if happens(onceIn: faults.crashEvery) { crash(pick(nodes)) }
        if happens(onceIn: faults.busOutageEvery), busIsUp {
            busIsUp = false
            after(random(50...1500)) { [self] in
                busIsUp = true
                for node in nodes { handle(.recheckAll, node) }
            }
        }
        if happens(onceIn: faults.databaseOutageEvery), databaseIsUp {
            databaseIsUp = false
            after(random(10...500)) { [self] in databaseIsUp = true }
        }
    }

    /// A transaction on a node: its items go to the node's relay and to the bus, each after a moment, or never if the node dies in between.
    private func commit(
        on node: Node, in channel: ChannelID?, by user: UserID? = nil, _ change: (inout RelayDatabase) -> [StreamItem]
    ) {
        let items = change(&database)
        guard !items.isEmpty, !happens(percent: 2) else { return }
        let connection = caller(user, on: node)
        var answer = Committed.Answer.waiting {}
        if let connection { answer = Self.answer(call(items, in: channel, by: connection, on: node), to: connection) }
        let caller = connection.flatMap { node.clients[$0]?.user }
        let seq = database.callerSeq(of: caller, in: channel)
        schedule(.init(items: items, attachments: [], answer: answer, user: caller, channel: channel, callerSeq: seq), on: node)
        for item in items { publish(item, from: node) }
    }

    /// A connection by which a user, or anyone, calls; now and then nil, for HTTP.
    private func caller(_ user: UserID?, on node: Node) -> ConnectionID? {
        guard random(0...9) > 0 else { return nil }
        return node.clients.filter { $0.value.isLive && (user == nil || $0.value.user == user) }.keys
            .sorted { $0.rawValue < $1.rawValue }.randomElement(using: &random)
    }

    /// Records a call. Returns its number.
    private func call(_ items: [StreamItem], in channel: ChannelID?, by connection: ConnectionID, on node: Node) -> Int {
        lastCall += 1
        let user = node.clients[connection]?.user
        let membershipPeriod = database.membershipPeriod(of: user, in: channel)
        node.clients[connection]?.call(lastCall, items, in: channel, membershipPeriod: membershipPeriod)
        return lastCall
    }

    /// The answer to a call, which contains its number; the welcome is the answer to 0.
    private static func answer(_ call: Int, to connection: ConnectionID) -> Committed.Answer {
        .socket(SocketID(shard: 0, connection: connection), Array("\(call)".utf8))
    }

    private func schedule(_ operation: Relay.LocalOperation, on node: Node) {
        let lane = operation.channel.flatMap { Self.channels.firstIndex(of: $0) }.map { $0 % 2 } ?? 2
        node.lanes[lane] = max(node.lanes[lane], now + random(0...3))
        after(node.lanes[lane] - now) { [self] in handle(.committed([operation]), node) }
    }

    private func watch(_ channel: ChannelID, by user: UserID, on node: Node) {
        guard let connection = caller(user, on: node) else { return }
        let seq = database.head(.channel(channel))
        let call = call([], in: channel, by: connection, on: node)
        node.clients[connection]?.watches(channel, from: seq, after: call)
        note(node, "\(connection) of \(user) watches \(channel) from \(seq), call \(call)")
        let notice = Notice.watching(connection, user, channel, at: seq)
        schedule(
            .init(
                items: [], attachments: [notice], answer: Self.answer(call, to: connection), user: user, channel: channel,
                callerSeq: database.callerSeq(of: user, in: channel)), on: node)
    }

    private func unwatch(_ channel: ChannelID, by user: UserID, on node: Node) {
        guard let connection = caller(user, on: node) else { return }
        let call = call([], in: channel, by: connection, on: node)
        node.clients[connection]?.unwatches(channel, after: call)
        note(node, "\(connection) of \(user) stops watching \(channel), call \(call)")
        let notice = Notice.stoppedWatching(connection, user, channel)
        schedule(
            .init(
                items: [], attachments: [notice], answer: Self.answer(call, to: connection), user: user, channel: channel,
                callerSeq: database.callerSeq(of: user, in: channel)), on: node)
    }

    private func publish(_ item: StreamItem, from sender: Node) {
        guard busIsUp else { return }
        for node in nodes where node !== sender && node.topics.contains(item.stream) {
            if happens(percent: faults.lossPercent) { continue }
            for _ in 0..<(happens(percent: faults.repeatPercent) ? 2 : 1) {
                after(random(0...faults.delayMax)) { [self] in handle(.received([item]), node) }
            }
        }
    }

    private func crash(_ node: Node) {
        guard let index = nodes.firstIndex(where: { $0 === node }) else { return }
        for client in node.clients.values { scheduleConnect(client.user, in: random(10...300)) }
        let next = Node(number: node.number)
        nodes[index] = next
        tick(next)
        // After a while the other nodes notice that it is gone.
        after(3000) { [self] in for other in nodes where other !== next { handle(.recheckAll, other) } }
    }

    private func scheduleConnect(_ user: UserID, in delay: Int64) {
        after(delay) { [self] in
            let node = pick(nodes)
            lastConnection += 1
            let connection = ConnectionID(rawValue: lastConnection)
            let streams = database.streams(of: user)
            node.clients[connection] = RelayClient(user: user, floors: streams.floors)
            node.subscriptions.add(connection, as: connection)
            after(random(0...5)) { [self] in
                let notice = Notice.connected(connection, user, streams)
                handle(.committed([.init(items: [], attachments: [notice], answer: Self.answer(0, to: connection))]), node)
            }
        }
    }

    private func tick(_ node: Node) {
        after(5) { [self] in
            guard nodes.contains(where: { $0 === node }) else { return }
            handle(.tick, node)
            tick(node)
        }
    }

    private func note(_ node: Node, _ text: @autoclosure () -> String) {
        if isTraced { trace.append("\(now) node \(node.number) \(text())") }
    }

    // MARK: A node's driver

    /// Messages for a crashed node are lost.
    private func handle(_ input: Relay.Input, _ node: Node) {
        if case .tick = input {} else { note(node, "<- \(input)") }
        guard nodes.contains(where: { $0 === node }) else { return }
        node.relay.handle(input, at: now)
        let output = node.relay.takeOutput()
        deliver(output.steps, on: node)
        for request in output.requests { note(node, "-> \(request)") }
        for request in output.requests { carryOut(request, on: node) }
    }

    private func carryOut(_ request: Relay.Request, on node: Node) {
        switch request {
        case .open(let streams):
            after(random(0...10)) { [self] in
                node.topics.formUnion(streams)
                read(on: node, orElse: .openFailed(streams)) { database in
                    .opened(Dictionary(uniqueKeysWithValues: streams.map { ($0, database.head($0)) }))
                }
            }
        case .close(let streams): node.topics.subtract(streams)
        case .fetch(let fetch):
            let limit = Int(random(1...5))
            read(on: node, orElse: .fetched(fetch, nil)) { database in
                .fetched(
                    fetch, database.missed(of: fetch.stream, after: fetch.after, limit: limit, reporting: fetch.leavers))
            }
        case .readStreams(let user, let token):
            read(on: node, orElse: .streamsRead(token, nil)) { .streamsRead(token, $0.streams(of: user)) }
        case .readHeads(let streams):
            read(on: node, orElse: .headsFailed(streams)) { database in
                .heads(Dictionary(uniqueKeysWithValues: streams.map { ($0, database.head($0)) }))
            }
        case .findUnused(let streams, let time):
            let used = Set(node.subscriptions.used(among: streams))
            let unused = streams.filter { !used.contains($0) }
            // A busy event loop answers late, possibly later than an unused feed is kept.
            after(random(1...10) == 1 ? random(0...12_000) : random(0...3)) { [self] in handle(.unused(unused, asOf: time), node) }
        }
    }

    /// A read takes a moment until it sees the database, and another until the relay has the answer.
    private func read(on node: Node, orElse failure: Relay.Input, _ answer: @escaping (RelayDatabase) -> Relay.Input) {
        after(random(0...5)) { [self] in
            let input = databaseIsUp ? answer(database) : failure
            after(databaseIsUp ? random(0...5) : 50) { [self] in handle(input, node) }
        }
    }

    /// As `ClusterNode` hands it to the hub.
    private func deliver(_ steps: [Relay.Step], on node: Node) {
        for step in steps { note(node, "\(step)") }
        for step in EventFrames.steps(for: steps).steps { node.subscriptions.deliver(step) { perform($0, on: node) } }
    }

    private func perform(_ action: Subscriptions<ConnectionID>.Action, on node: Node) {
        switch action {
        case .send(let bytes, _, let connection):
            for frame in RelayFrame.all(in: bytes) {
                eventCount += 1
                let faultCount = node.clients[connection]?.faults.count
                node.clients[connection]?.receive(frame.item, isWatching: frame.isWatching, from: database)
                note(node, "\(connection) gets \(frame.item.stream) \(frame.item.after) to \(frame.item.seq)")
                if let faults = node.clients[connection]?.faults, faults.count != faultCount {
                    note(node, "fault of \(connection): \(faults.last ?? "")")
                }
            }
        case .reply(let payload, let connection):
            let call = Int(String(decoding: payload, as: UTF8.self)) ?? 0
            note(node, "\(connection) gets the answer to \(call)")
            if call > 0 {
                node.clients[connection]?.answered(call, from: database)
            } else {
                // The welcome. The client reads its positions a moment later.
                after(random(0...10)) { [self] in
                    guard let user = node.clients[connection]?.user else { return }
                    node.clients[connection]?.resumed(database.streams(of: user))
                }
            }
        case .emptied(let stream): after(random(0...3)) { [self] in handle(.emptied([stream]), node) }
        case .checkAccess, .forgetReading, .signal, .connected, .disconnected, .appeared, .disappeared, .cameOnline, .wentOffline,
            .startedWatching, .answeredOnline, .stoppedWatching, .turnAway:
            break
        }
    }

    // MARK: The judgement

    private func judge() {
        for node in nodes {
            for (connection, client) in node.clients {
                faultsFound += client.faults
                let user = client.user
                let streams = database.streams(of: user)
                var expected: [StreamID: Seq] = [.user(user): streams.user]
                for (channel, seq) in streams.channels { expected[.channel(channel)] = seq }
                guard let held = client.positions else {
                    faultsFound.append("connection \(connection.rawValue) of \(user) was never welcomed")
                    continue
                }
                for (stream, seq) in expected where held[stream] != seq {
                    faultsFound.append("\(user) is at \(held[stream] ?? 0) of \(stream), which is at \(seq)")
                }
                for (channel, seq) in client.watchPositions where seq < database.head(.channel(channel)) {
                    faultsFound.append("\(user) watches \(channel) at \(seq) of \(database.head(.channel(channel)))")
                }
                if !client.calls.isEmpty {
                    faultsFound.append("\(user) has no answer to \(client.calls.count) calls")
                }
                for stream in held.keys where expected[stream] == nil { faultsFound.append("\(user) still holds \(stream)") }
            }
            if !node.relay.connects.isEmpty { faultsFound.append("node \(node.number) has connections that wait forever") }
            if !node.relay.answers.isEmpty { faultsFound.append("node \(node.number) has answers that wait forever") }
            if !node.relay.gaps.isEmpty { faultsFound.append("node \(node.number) has gaps that are never filled") }
        }
    }
}
