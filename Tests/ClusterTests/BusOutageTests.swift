#if Cluster
import RoostAPI
import RoostTestSupport
import Testing

extension RealClusterTests {
    /// The bus goes away, or a node between its commit and its word to the others: what the others miss comes from the database.
    ///
    /// Stated is about two seconds: each node compares its streams with the database every second.
    @Suite struct BusOutageTests {
        private static let general: ChannelID = "general"
        /// Far beyond what is stated: reached only when nothing comes at all.
        private static let patience = Duration.seconds(20)

        @Test("I3 the bus is killed: delivery goes on at once on the sender's node, within about 2 s elsewhere, and at once when it is back")
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
                for number in 1...5 { try await exchange("without-\(number)", "without") }
                // Many at once, of which the other node has to fetch what it misses.
                for number in 1...150 { _ = try await ann.post(SendMessage(channel: Self.general, clientId: ClientID("many-\(number)"), text: "hi")) }
                let expected = Array(Seq(12)...161)
                #expect(try await bob.messages(150, of: Self.general).map(\.seq) == expected)
                #expect(try await cat.messages(150, of: Self.general).map(\.seq) == expected)

                try await cluster.nats.startAgain()
                for server in cluster.servers {
                    try await eventually("the bus is there") { try await server.metric("roost_cluster_bus_connected") == 1 }
                }
                let fetched = try await cluster.servers[1].metric("roost_cluster_gaps_fetched_total")
                for number in 1...5 { try await exchange("again-\(number)", "with bus again") }
                #expect(try await cluster.servers[1].metric("roost_cluster_gaps_fetched_total") == fetched)
                for (what, times) in times.sorted(by: { $0.key < $1.key }) {
                    print("Bus outage: \(what): at most \(times.max() ?? .zero) of \(times.count).")
                }
            }
        }

        @Test("I1 I3 I4 nodes killed in a burst of sends: who is connected to another node gets all that was stored, on one connection")
        func killedBeforePublishing() async throws {
            let nats = try await NATSServer.start()
            let nodes = try await NodeProcesses.start(2, on: .shared, nats)
            do {
                try await killInBursts(nodes)
            } catch {
                Issue.record(error)
            }
            await nodes.end()
            await nats.stop()
        }

        private func killInBursts(_ nodes: NodeProcesses) async throws {
            var random = SeededGenerator(seed: 1)
            let bob = try await nodes.socket("bob", at: 0)
            try await bob.call(CreateChannel(channel: Self.general))
            var view = StrictView(user: "bob")
            view.apply(try await bob.call(Resume(after: 0, channels: [:])))
            for event in await bob.takeEvents() { view.apply(event) }
            var (slowest, stored) = (Duration.zero, 0)
            for burst in 1...8 {
                let ann = try await nodes.socket("ann", at: 1)
                try await ann.call(JoinChannel(channel: Self.general))
                let sending = Task {
                    for number in 1...5000 {
                        let send = SendMessage(channel: Self.general, clientId: ClientID("\(burst)-\(number)"), text: "hi")
                        guard (try? await ann.post(send)) != nil else { return }
                    }
                }
                // The moment of the crash is what this test draws by lot.
                try await Task.sleep(for: .milliseconds(random.number(20...120)))
                await nodes.killNode(1)
                let killed = ContinuousClock.now
                sending.cancel()
                await sending.value
                var head: Seq = -1
                while view.channels[Self.general]?.position != head {
                    // Asked anew until bob has it: the database may still be finishing what the node had asked for.
                    let rows = try nodes.rows("SELECT seq FROM channel_heads WHERE channel_id = 'general'")
                    head = rows.first.flatMap { Seq($0) } ?? -1
                    while let position = view.channels[Self.general]?.position, position < head {
                        let event = try await bob.nextEvent(within: Self.patience)
                        view.note(event)
                        view.apply(event)
                        slowest = max(slowest, ContinuousClock.now - killed)
                    }
                }
                stored = view.channels[Self.general]?.messages.count ?? 0
                try await nodes.startNode(1)
            }
            #expect(view.faults.map(\.text) == [])
            #expect(try nodes.rows("SELECT count(*) FROM messages") == ["\(stored)"])
            print(
                "Killed in 8 bursts: \(stored) stored, all delivered to the other node, \(view.repairCount) events of repair, "
                    + "the last at most \(slowest) after the kill.")
        }
    }
}

extension RawSocket {
    /// The events that came while a reply was waited for.
    fileprivate func takeEvents() async -> [Event] {
        var taken: [Event] = []
        while !events.isEmpty, let event = try? await nextEvent() { taken.append(event) }
        return taken
    }
}
#endif
