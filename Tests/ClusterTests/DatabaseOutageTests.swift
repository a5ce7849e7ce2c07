#if Cluster
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

extension RealClusterTests {
    /// The database fails under load and recovers.
    @Suite struct DatabaseOutageTests {
        private static let general: ChannelID = "general"
        private static let sentCount = 60

        @Test(
            "I1 I3 I4 with the database killed, calls are refused with a time, sockets stay, and all recovers, signals too")
        func databaseGone() async throws {
            let postgres = try PostgreSQLServer()
            try await TestCluster.run(2, on: postgres) { cluster in
                try await cluster.makeChannel(Self.general, owner: "ann", members: ["bob", "cid", "dan"])
                let ann = try await cluster.socket("ann", at: 0)
                let bob = try await cluster.socket("bob", at: 1)
                let (cid, dan) = (try await cluster.socket("cid", at: 0), try await cluster.socket("dan", at: 0))
                try await cid.call(WatchChannel(channel: Self.general, limit: 0))
                try await ann.send(Self.general, "before")

                // In the middle of it the database ends: unacknowledged messages are refused, and can be sent again.
                let sends = (1...Self.sentCount).map {
                    SendMessage(channel: Self.general, clientId: ClientID("\($0)"), text: "text of \($0)")
                }
                var calls: [Int64] = []
                for send in sends.prefix(30) { calls.append(try await ann.post(send)) }
                let acked = try await ann.reply(to: calls[0], as: Message.self)
                try postgres.killNow()
                let killed = ContinuousClock.now
                for send in sends.dropFirst(30) { calls.append(try await ann.post(send)) }
                var outcomes = [Outcome.stored(acked)]
                for call in calls.dropFirst() { outcomes.append(try await Outcome(of: call, by: ann)) }
                print("Cluster outage: refused within \(ContinuousClock.now - killed) of the database's end.")
                #expect(outcomes.allSatisfy { $0 != .other })
                #expect(outcomes.suffix(30) == Array(repeating: .refused, count: 30))
                await dan.close()
                try await expectReadiness(503, of: cluster)
                try await expectRefused { try await bob.send(Self.general, "in between") }
                try await expectRefused { try await bob.call(ListMessages(channel: Self.general)) }

                try postgres.startAgain()
                try await expectReadiness(200, of: cluster)
                // All the same ids again: stored once, and acknowledged messages are where they were.
                var stored: [Message] = []
                for send in sends { stored.append(try await Self.patiently { try await ann.call(send) }) }
                for (outcome, message) in zip(outcomes, stored) {
                    if case .stored(let before) = outcome { #expect(before == message) }
                }
                let page = try await bob.call(ListMessages(channel: Self.general, limit: 100)).messages
                #expect(page.dropFirst() == stored.sorted { $0.seq < $1.seq }[...])
                // Watchers learn who has gone meanwhile.
                while try await cid.nextSignal().presence?.offline != ["dan"] {}
                // The time couldn't be stored then.
                try await eventually("it to be known when dan was last online") {
                    try await cid.call(ListUserPresence(users: ["dan"])).users.first?.lastActiveAt != nil
                }
                // Both received each of them on their existing sockets.
                for socket in [ann, bob] {
                    #expect(try await socket.messages(page.count, of: Self.general).map(\.seq) == Array(2..<Int64(page.count) + 2))
                }
            }
        }

        @Test(
            "AM-45 I4 messages on a reading user's device are eventually read, even if the database was down when the device confirmed"
        )
        func readMeanwhile() async throws {
            let postgres = try PostgreSQLServer()
            try await TestCluster.run(1, on: postgres) { cluster in
                try await cluster.makeChannel(Self.general, owner: "ann", members: ["bob"])
                let ann = try await cluster.socket("ann", at: 0)
                let (phone, tablet) = (try await cluster.socket("bob", at: 0), try await cluster.socket("bob", at: 0))
                try await phone.call(StartReading(channel: Self.general))
                let sent = try await ann.send(Self.general, "1")
                await phone.stopAnsweringPings()
                try await phone.waitForPing()
                try postgres.killNow()
                await phone.answerPingsAgain()
                // It is queued after the mark, which is refused too.
                try await expectRefused { try await phone.call(MarkRead(channel: Self.general, seq: sent.seq)) }
                try postgres.startAgain()
                try await expectReadiness(200, of: cluster)
                try await phone.confirmReading(upTo: sent.seq, of: Self.general, asking: tablet)
            }
        }

        @Test(
            "I23 /livez and /metrics answer immediately while the database doesn't, however often they are requested, and the node stops in time"
        )
        func silentDatabase() async throws {
            let postgres = try PostgreSQLServer.shared
            let database = try postgres.makeDatabase()
            let way = try await NodeWays(database, postgres, nil)
            let server = try await TestServer { $0.database = way.database }
            try await eventually("effects are shown") {
                try MetricsText(try await server.request("GET", "/metrics").body).value("roost_effects_dead") == 0
            }
            let ann = try await server.socket("ann")
            way.databaseProxy.setMode(.swallow)
            // A lane waits for its answer until the end.
            _ = try await ann.post(CreateChannel(channel: Self.general))
            // A database read would take at least the five seconds after which a connection counts as lost.
            var slowest = Duration.zero
            for path in Array(repeating: ["/livez", "/metrics"], count: 20).joined() {
                let started = ContinuousClock.now
                let answer = try await server.request("GET", path)
                slowest = max(slowest, ContinuousClock.now - started)
                #expect(answer.status == 200)
                if path == "/metrics" { #expect(try MetricsText(answer.body).value("roost_effects_dead") == 0) }
            }
            #expect(slowest < .seconds(5))
            // The promise is five seconds after the window; a machine busy with other tests is given more. A node that waited for the database would
            // take as long as a connection may be silent: 40 seconds.
            let start = ContinuousClock.now
            try await server.end()
            #expect(.now - start < .seconds(30))
            // The threads that still wait end with their connections, and can make no others to a database that the next test empties.
            await way.stop()
            postgres.giveBack(database)
        }

        private enum Outcome: Equatable {
            case stored(Message)
            /// With a code and a time after which to retry.
            case refused
            case other

            init(of call: Int64, by socket: RawSocket) async throws {
                do {
                    self = .stored(try await socket.reply(to: call, as: Message.self))
                } catch let error as RoostError {
                    self = error.code == .unavailable && error.retryAfterMilliseconds != nil ? .refused : .other
                }
            }
        }

        private func expectRefused(_ call: () async throws -> Void) async throws {
            let refusal = await #expect(throws: RoostError.self) { try await call() }
            #expect(refusal?.code == .unavailable)
            #expect(refusal?.retryAfterMilliseconds != nil)
        }

        private func expectReadiness(_ status: Int, of cluster: TestCluster) async throws {
            for server in cluster.servers {
                try await eventually("/readyz answers \(status)") { try await server.status("/readyz") == status }
                #expect(try await server.status("/livez") == 200)
            }
        }

        /// Retries while it is refused with a time.
        private static func patiently<T>(_ call: () async throws -> T) async throws -> T {
            for _ in 0..<20 {
                do {
                    return try await call()
                } catch let error as RoostError {
                    guard let wait = error.retryAfterMilliseconds else { throw error }
                    try await Task.sleep(for: .milliseconds(wait))
                }
            }
            throw Missed("a call that isn't refused")
        }
    }
}
#endif
