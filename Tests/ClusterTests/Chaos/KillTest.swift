#if Cluster
import Foundation
import RoostAPI
import RoostTestSupport
import Testing

extension RealClusterTests {
    /// Three nodes with one fault after another: no client misses anything, gets anything twice or out of order, and no reply arrives
    /// before its event or before an earlier one's.
    ///
    /// `ROOST_CLUSTER_SECONDS` sets the duration (240 for the promised figure), `ROOST_SEED` repeats the choices of a run. If
    /// libfaketime is installed (`apt-get install faketime`), nodes have clocks that are off by two hours, too.
    @Suite struct KillTest {
        private static let seconds = Int(ProcessInfo.processInfo.environment["ROOST_CLUSTER_SECONDS"] ?? "")
        private static let nodeCount = 3
        /// Of the type `community`: half of the ids come before its name, and half after.
        private static let channels = (1...50).flatMap { [ChannelID("channel-\($0)"), ChannelID("zone-\($0)")] }
        private static let users = (1...36).map { UserID("user-\($0)") }
        /// The last of the users also join and leave.
        private static let wandererCount = 8

        @Test(
            "I1 I3 I4 I6 I9 three nodes, many faults: 0 acked lost, 0 twice, 0 out of order, 0 gaps, 0 replies before events",
            .timeLimit(.minutes(15)), arguments: [true, false])
        func kills(hasBus: Bool) async throws {
            let seed = UInt64(ProcessInfo.processInfo.environment["ROOST_SEED"] ?? "") ?? UInt64.random(in: 1...UInt64(Int.max))
            print("Cluster kill test: seed \(seed), \(hasBus ? "with" : "without") the bus.")
            let postgres = try PostgreSQLServer()
            let nats = hasBus ? try await NATSServer.start() : nil
            let nodes = try await NodeProcesses.start(Self.nodeCount, on: postgres, nats, hasWays: true)
            do {
                try await run(nodes, seed: seed, hasBus: hasBus)
            } catch {
                Issue.record("seed \(seed): \(error)")
            }
            await nodes.end()
            await nats?.stop()
            try postgres.stop()
        }

        private func run(_ nodes: NodeProcesses, seed: UInt64, hasBus: Bool) async throws {
            var random = SeededGenerator(seed: seed)
            try await makeChannels(nodes, &random)
            var clients: [ChaosClient] = []
            for (index, user) in Self.users.enumerated() {
                let isWanderer = index >= Self.users.count - Self.wandererCount
                let wanders = isWanderer ? Array(Self.channels.shuffled(using: &random).prefix(10)) : []
                clients.append(try await ChaosClient(user: user, nodes: nodes, wanders: wanders, seed: random.next()))
            }
            try await withThrowingTaskGroup { [clients] group in
                for client in clients { group.addTask { await client.run() } }
                // Whatever fails, the clients end, or the task group would wait for them.
                let outcome: Result<Void, any Error>
                do {
                    let counts = try await wreck(nodes, hasBus: hasBus, &random)
                    for client in clients { await client.rest() }
                    let quiet = try await waitForRest(clients, nodes)
                    try await judge(clients, nodes, seed: seed, counts, quiet)
                    outcome = .success(())
                } catch {
                    outcome = .failure(error)
                }
                for client in clients { await client.end() }
                try outcome.get()
            }
        }

        // MARK: The steps

        /// Every user is a member of about ten channels.
        private func makeChannels(_ nodes: NodeProcesses, _ random: inout SeededGenerator) async throws {
            let admin = try await nodes.socket("admin", role: .admin, at: 0)
            for user in Self.users { try await admin.call(UpsertUser(user: user)) }
            await admin.close()
            var owners: [UserID: RawSocket] = [:]
            for channel in Self.channels {
                let members = Self.users.shuffled(using: &random).prefix(random.number(2...5))
                guard let owner = members.first else { continue }
                if owners[owner] == nil { owners[owner] = try await nodes.socket(owner, at: random.number(0...Self.nodeCount - 1)) }
                try await owners[owner]?.call(CreateChannel(channel: channel, users: Array(members.dropFirst())))
            }
            for socket in owners.values { await socket.close() }
        }

        /// One fault after another, each kind once before any is repeated. Nothing else depends on their times.
        private func wreck(_ nodes: NodeProcesses, hasBus: Bool, _ random: inout SeededGenerator) async throws -> [ChaosFault: Int]
        {
            let end = ContinuousClock.now + .seconds(Self.seconds ?? (hasBus ? 30 : 15))
            var counts: [ChaosFault: Int] = [:]
            var deck: [ChaosFault] = []
            while ContinuousClock.now < end {
                if deck.isEmpty { deck = ChaosFault.possible(hasBus: hasBus).shuffled(using: &random) }
                let fault = deck.removeLast()
                let place = random.number(0...Self.nodeCount - 1)
                do {
                    try await fault.happen(to: nodes, at: place, &random)
                } catch {
                    throw Missed("\(fault) at \(place): \(error)")
                }
                counts[fault, default: 0] += 1
                try await Task.sleep(for: .milliseconds(random.number(50...700)))
            }
            // A short run has time for some kinds only.
            if let seconds = Self.seconds, seconds >= 120 {
                let possibleCount = ChaosFault.possible(hasBus: hasBus).count
                #expect(counts.count >= min(14, possibleCount), "of \(possibleCount) kinds")
            }
            return counts
        }

        /// Waits until every client has everything, without reconnecting. Returns how long that took.
        private func waitForRest(_ clients: [ChaosClient], _ nodes: NodeProcesses) async throws -> Duration {
            let started = ContinuousClock.now
            try await eventually("the clients settle") {
                for client in clients where await !client.isResting { return false }
                return true
            }
            let heads = try nodes.rows("SELECT channel_id || ' ' || seq FROM channel_heads")
            let users = try nodes.rows("SELECT user_id || ' ' || seq FROM user_heads")
            var behind: [String] = []
            do {
                try await eventually("every client has everything") {
                    behind = []
                    for client in clients {
                        let view = await client.view
                        let own = Set(view.channels.map { "\($0.key) \($0.value.position)" }).subtracting(heads)
                        if !own.isEmpty || !users.contains("\(client.user) \(view.position)") {
                            behind.append("\(client.user) at \(view.position): \(own.sorted())")
                        }
                    }
                    return behind.isEmpty
                }
            } catch {
                // Missing messages are reported below, with everything else.
                Issue.record("\(error): \(behind)")
            }
            return ContinuousClock.now - started
        }

        private func judge(
            _ clients: [ChaosClient], _ nodes: NodeProcesses, seed: UInt64, _ counts: [ChaosFault: Int], _ quiet: Duration
        ) async throws {
            let check = try await ChaosCheck(Self.channels, clients, nodes)
            var faults: [StrictView.Fault: Int] = [:]
            var texts: [String] = []
            var (events, repairs, fresh, connects) = (0, 0, 0, 0)
            var refusals: [String: Int] = [:]
            for client in clients {
                let view = await client.view
                for fault in view.faults { faults[fault.kind, default: 0] += 1 }
                texts += view.faults.map { "\($0.kind.rawValue): \($0.text)" }
                events += view.eventCount
                repairs += view.repairCount
                fresh += view.freshCount
                connects += await client.connectCount
                refusals.merge(await client.refusals, uniquingKeysWith: +)
            }
            print(
                """
                Cluster kill test: seed \(seed), \(counts.values.reduce(0, +)) faults of \(counts.count) kinds, \
                \(check.ackedCount) acked, \(check.storedCount) stored, \(events) events received: \(check.lostCount) acked lost, \
                \(check.twiceCount + faults[.twice, default: 0]) twice, \(faults[.order, default: 0]) out of order, \
                \(faults[.gap, default: 0]) gaps, \(faults[.reply, default: 0]) replies before their event or out of order. \
                \(connects) connections, \(repairs) repair events, \(fresh) fresh channels, \
                refused \(refusals), at rest after \(quiet).
                """)
            #expect(texts.prefix(20) == [], "\(texts.count) faults with seed \(seed)")
            #expect(check.problems.prefix(20) == [], "\(check.problems.count) problems with seed \(seed)")
            #expect(check.ackedCount > 0)
        }
    }
}
#endif
