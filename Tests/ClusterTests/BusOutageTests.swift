#if Cluster
import RoostAPI
import RoostTestSupport
import Testing

extension RealClusterTests {
    /// The bus fails, or a node fails between its commit and its message to the others: the database provides the missed events.
    ///
    /// The documented delay is about two seconds: each node compares its streams with the database every second.
    @Suite struct BusOutageTests {
        private static let general: ChannelID = "general"

        @Test(
            "I3 without the bus all nodes deliver, the others by reading the database; once it is back they needn't read gaps"
        )
        func busGone() async throws {
            try await TestCluster.run(2) { cluster in
                try await cluster.makeChannel(Self.general, owner: "ann", members: ["bob", "cat"])
                let ann = try await cluster.socket("ann", at: 0)
                let cat = try await cluster.socket("cat", at: 0)
                let bob = try await cluster.socket("bob", at: 1)
                var times: [String: [Duration]] = [:]
                func exchange(_ id: String, _ state: String) async throws {
                    let started = ContinuousClock.now
                    let message = try await ann.send(Self.general, id)
                    #expect(try await cat.messages(1, of: Self.general) == [message])
                    times["\(state), same node", default: []].append(ContinuousClock.now - started)
                    #expect(try await bob.messages(1, of: Self.general) == [message])
                    times["\(state), other node", default: []].append(ContinuousClock.now - started)
                }
                for number in 1...5 { try await exchange("with-\(number)", "with bus") }
                await cluster.nats.killNow()
                for number in 1...3 { try await exchange("without-\(number)", "without") }
                // Many at once: the other node has to fetch those it misses.
                for number in 1...150 {
                    _ = try await ann.post(SendMessage(channel: Self.general, clientId: ClientID("many-\(number)"), text: "hi"))
                }
                let expected = Array(Seq(10)...159)
                #expect(try await bob.messages(150, of: Self.general).map(\.seq) == expected)
                #expect(try await cat.messages(150, of: Self.general).map(\.seq) == expected)

                try await cluster.nats.startAgain()
                for server in cluster.servers {
                    try await eventually("the bus is there") { try await server.metric("roost_cluster_bus_connected") == 1 }
                }
                // A comparison with the database that is quicker than the bus finds a false gap. Some rounds have no such
                // comparison; without the bus each would need one.
                var (readsGaps, round) = (true, 0)
                while readsGaps, round < 20 {
                    round += 1
                    let fetched = try await cluster.servers[1].metric("roost_cluster_gaps_fetched_total")
                    for number in 1...5 { try await exchange("again-\(round)-\(number)", "with bus again") }
                    readsGaps = try await cluster.servers[1].metric("roost_cluster_gaps_fetched_total") != fetched
                }
                #expect(!readsGaps)
                for (what, times) in times.sorted(by: { $0.key < $1.key }) {
                    print("Bus outage: \(what): at most \(times.max() ?? .zero) of \(times.count).")
                }
            }
        }

        @Test("X-37 I3 without the bus a user is invisible on all nodes, the others by reading the database, and visible again")
        func invisible() async throws {
            try await TestCluster.run(2) { cluster in
                try await cluster.makeChannel(Self.general, owner: "ann", members: ["bob"])
                let ann = try await cluster.socket("ann", at: 1)
                let (phone, tablet) = (try await cluster.socket("bob", at: 0), try await cluster.socket("bob", at: 1))
                await cluster.nats.killNow()
                func online() async throws -> [UserID] {
                    let members = try await ann.call(ListMembers(channel: Self.general))
                    return members.items.filter(\.isOnline).map(\.member.userId).sorted()
                }
                #expect(try await online().contains("bob"))
                for sharesPresence in [false, true] {
                    try await phone.call(UpdatePreferences(sharesPresence: sharesPresence))
                    try await eventually("bob to be \(sharesPresence ? "visible" : "invisible") on the other node") {
                        try await online().contains("bob") == sharesPresence
                    }
                }
                _ = try await tablet.call(GetMe())
                try await cluster.nats.startAgain()
            }
        }

        @Test("I3 I23 a channel whose missed events can't be read delays no call in it, no welcome and no other channel")
        func unreadableEvents() async throws {
            try await TestCluster.run(2) { cluster in
                let other: ChannelID = "other"
                for channel in [Self.general, other] {
                    try await cluster.makeChannel(channel, owner: "ann", members: ["bob", "cat"])
                }
                let ann = try await cluster.socket("ann", at: 0)
                let bob = try await cluster.socket("bob", at: 1)
                await cluster.nats.killNow()
                // A change that this version can't read, as a newer node may store it, and that nothing announces.
                try cluster.postgres.run(
                    sql: [
                        "BEGIN", "UPDATE channel_heads SET seq = seq + 1 WHERE channel_id = 'general'",
                        """
                        UPDATE members SET state = 'odd', change_seq = (SELECT seq FROM channel_heads WHERE channel_id = 'general')
                        WHERE channel_id = 'general' AND user_id = 'cat'
                        """, "COMMIT",
                    ], in: cluster.database)
                let sent = [try await bob.send(Self.general, "1"), try await bob.send(Self.general, "2")]
                _ = try await cluster.socket("bob", at: 1)
                let third = try await ann.send(other, "3")
                #expect(try await bob.messages(1, of: other) == [third])
                try cluster.postgres.run(
                    sql: ["UPDATE members SET state = 'member' WHERE channel_id = 'general' AND user_id = 'cat'"],
                    in: cluster.database)
                #expect(try await bob.messages(2, of: Self.general).map(\.seq) == sent.map(\.seq))
                try await cluster.nats.startAgain()
            }
        }

        @Test("I1 I3 I4 a node killed between its commits and publishing them: the others' clients get all, on one connection")
        func killedBeforeTelling() async throws {
            try await onTwoNodes { nodes, bob, view in
                let proxy = try await TCPProxy.start(targets: [nodes.nats.port])
                var slowest = Duration.zero
                for round in 1...3 {
                    try await nodes.killNode(1)
                    try await nodes.startNode(1, bus: "nats://127.0.0.1:\(proxy.port)")
                    let ann = try await nodes.socket("ann", at: 1)
                    try await ann.call(JoinChannel(channel: Self.general))
                    try await ann.send(Self.general, "told \(round)")
                    try await view.follow(bob, to: try Self.head(nodes))
                    // From here on the bus gets nothing from this node, as if it stopped before each message.
                    proxy.setMode(.swallow)
                    let started = ContinuousClock.now
                    for number in 1...20 { try await ann.send(Self.general, "untold \(round) \(number)") }
                    try await nodes.killNode(1)
                    try await view.follow(bob, to: try Self.head(nodes))
                    slowest = max(slowest, ContinuousClock.now - started)
                    proxy.setMode(.pass)
                    await ann.close()
                }
                await proxy.stop()
                #expect(view.repairCount > 0)
                print(
                    "Killed before publishing: 3 × 20 acked and unpublished, the other node had them at most \(slowest) after the first."
                )
            }
        }

        @Test("I1 I3 I4 if nodes are killed in a burst of sends, the others' clients get everything stored, on one connection")
        func killedInBursts() async throws {
            var random = SeededGenerator(seed: 1)
            try await onTwoNodes { nodes, bob, view in
                var slowest = Duration.zero
                for burst in 1...6 {
                    let ann = try await nodes.socket("ann", at: 1)
                    try await ann.call(JoinChannel(channel: Self.general))
                    let sending = Task {
                        for number in 1...5000 {
                            let send = SendMessage(channel: Self.general, clientId: ClientID("\(burst)-\(number)"), text: "hi")
                            guard (try? await ann.post(send)) != nil else { return }
                        }
                    }
                    // The moment of the crash is random.
                    try await Task.sleep(for: .milliseconds(random.number(30...200)))
                    try await nodes.killNode(1)
                    let killed = ContinuousClock.now
                    sending.cancel()
                    await sending.value
                    await ann.close()
                    // Read again until bob has it: the database may still be finishing the node's statements.
                    var head = try Self.head(nodes)
                    while view.channels[Self.general]?.position != head {
                        try await view.follow(bob, to: head)
                        slowest = max(slowest, ContinuousClock.now - killed)
                        head = try Self.head(nodes)
                    }
                    try await nodes.startNode(1)
                }
                // The last node's statements in the database may be committed even later than that.
                var count = 0
                try await eventually("bob to have all that is stored") {
                    try await view.follow(bob, to: try Self.head(nodes))
                    count = view.channels[Self.general]?.messages.count ?? 0
                    return try nodes.rows("SELECT count(*) FROM messages") == ["\(count)"]
                }
                print("Killed in 6 bursts: \(count) stored, the other node had them at most \(slowest) after the kill.")
            }
        }

        /// Bob is connected to the first node throughout, and sees no fault.
        private func onTwoNodes(_ body: (NodeProcesses, RawSocket, inout StrictView) async throws -> Void) async throws {
            let nats = try await NATSServer.start()
            let nodes = try await NodeProcesses.start(2, on: .shared, nats)
            do {
                let bob = try await nodes.socket("bob", at: 0)
                try await bob.call(CreateChannel(channel: Self.general))
                var view = StrictView(user: "bob")
                view.apply(try await bob.call(Resume(after: 0, channels: [:])))
                try await body(nodes, bob, &view)
                #expect(view.faults.map(\.text) == [])
                await bob.close()
            } catch {
                Issue.record(error)
            }
            await nodes.end()
            await nats.stop()
        }

        private static func head(_ nodes: NodeProcesses) throws -> Seq {
            let rows = try nodes.rows("SELECT seq FROM channel_heads WHERE channel_id = '\(general)'")
            guard let head = rows.first.flatMap({ Seq($0) }) else { throw Missed("the channel's head in \(rows)") }
            return head
        }
    }
}

extension StrictView {
    /// Takes events until the channel reaches a position.
    fileprivate mutating func follow(_ socket: RawSocket, to head: Seq) async throws {
        while let position = channels["general"]?.position, position < head {
            let event = try await socket.nextEvent()
            note(event)
            apply(event)
        }
    }
}
#endif
