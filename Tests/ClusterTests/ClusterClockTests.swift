#if Cluster
import Foundation
import RoostAPI
import RoostTestSupport
import Testing

extension RealClusterTests {
    /// Nodes whose clocks differ, from one another and from PostgreSQL's, which a test sets.
    @Suite struct ClusterClockTests {
        private static let room: ChannelID = "room"

        @Test("I3 AM-07 D-29 a silence begun on one node ends on each by PostgreSQL's clock, however far theirs are off")
        func silence() async throws {
            try await Self.withTwoNodes { try await silence(on: $0) }
        }

        private func silence(on nodes: NodeProcesses) async throws {
            let admin = try await nodes.welcomedSocket("admin", role: .admin, at: 0)
            try await admin.call(UpsertUser(user: "bob"))
            let ann = try await nodes.socket("ann", at: 0)
            try await ann.call(CreateChannel(channel: Self.room, users: ["bob"]))
            let members = [try await nodes.socket("bob", at: 0), try await nodes.welcomedSocket("bob", at: 1)]

            let until = try #require(try await ann.call(SilenceChannel(channel: Self.room, seconds: 60)).mutedUntil)
            // PostgreSQL's time a moment later.
            #expect((1...60_000).contains(until.milliseconds - (try Self.now(nodes))))
            for seconds in [0, 30] {
                try Self.moveClock(nodes, by: seconds)
                for bob in members {
                    let refusal = await #expect(throws: RoostError.self) { try await bob.send(Self.room, "early") }
                    #expect([refusal?.code, refusal?.until] as [AnyHashable?] == [RoostError.Code.channelMuted, until])
                    #expect(try await bob.call(GetChannel(channel: Self.room)).channel.isMuted)
                }
            }
            try Self.moveClock(nodes, by: 30)
            for (place, bob) in members.enumerated() {
                try await bob.send(Self.room, "late at \(place)")
                #expect(try await bob.call(GetChannel(channel: Self.room)).channel.isMuted == false)
            }
            for socket in [admin, ann] + members { await socket.close() }
        }

        @Test("I3 SB-51 SB-54 the times of messages written by alternating nodes don't go back, whatever any clock does")
        func times() async throws {
            try await Self.withTwoNodes { try await times(on: $0) }
        }

        private func times(on nodes: NodeProcesses) async throws {
            let admin = try await nodes.welcomedSocket("admin", role: .admin, at: 0)
            try await admin.call(UpsertUser(user: "bob"))
            let ann = try await nodes.socket("ann", at: 0)
            try await ann.call(CreateChannel(channel: Self.room, users: ["bob"]))
            let writers = [ann, try await nodes.welcomedSocket("bob", at: 1)]
            var sent: [Message] = []
            for (number, seconds) in [0, 20, -40, 5, -3600, 60, 7200, -10].enumerated() {
                try Self.moveClock(nodes, by: seconds)
                for writer in writers { sent.append(try await writer.send(Self.room, "\(number)")) }
            }
            #expect(zip(sent, sent.dropFirst()).allSatisfy { $0.seq < $1.seq && $0.createdAt <= $1.createdAt })
            // They don't all have one time either: two hours stay two hours.
            #expect(sent[15].createdAt.milliseconds - sent[0].createdAt.milliseconds > 3_600_000)
            for writer in writers {
                let page = try await writer.call(ListMessages(channel: Self.room, after: 0, limit: 100))
                #expect(page.messages == sent)
            }
            for socket in [admin] + writers { await socket.close() }
        }

        @Test("a device's token and a single one stay revoked while their time is left, though PostgreSQL's clock is ahead of it")
        func revocations() async throws {
            try await Self.withTwoNodes(clocksOffBy: [nil, nil]) { try await revocations(on: $0) }
        }

        private func revocations(on nodes: NodeProcesses) async throws {
            let admin = try await nodes.welcomedSocket("admin", role: .admin, at: 0)
            let laptop = try await nodes.welcomedSocket("bob", at: 1)
            let port = try nodes.port(of: 1)
            let end = Date(timeIntervalSinceNow: 1800)
            let ofPhone = try await nodes.token("bob", expiresAt: end, id: "phone")
            let single = try await nodes.token("bob", expiresAt: end, id: "single")
            let phone = try await RawSocket.open(port: port)
            try await phone.send(json: AuthenticateFrame(token: ofPhone, device: DeviceDescription(deviceId: "phone")))
            guard case .text(let text) = await phone.next(), text.hasPrefix(#"{"welcome""#) else { throw Missed("a welcome") }
            #expect(try await laptop.call(SignOutDevice(device: "phone")).isTokenRevoked)

            // A standby whose clock is right, and then one that is two hours ahead.
            try Self.moveClock(nodes, by: -3600)
            try await admin.call(
                RevokeToken(tokenId: "single", expiresAt: Timestamp(milliseconds: Int64(end.timeIntervalSince1970 * 1000))))
            try Self.moveClock(nodes, by: 7200)
            try await admin.call(RevokeToken(tokenId: "other"))
            for token in [ofPhone, single] {
                await #expect(throws: (any Error).self) { try await RawSocket.connect(port: port, token: token) }
            }
            for socket in [admin, laptop, phone] { await socket.close() }
        }

        @Test("a user's newest tokens are revoked though PostgreSQL's clock is behind their time of issue")
        func newestTokens() async throws {
            try await Self.withTwoNodes(clocksOffBy: [nil, nil]) { nodes in
                // Five minutes behind.
                try Self.moveClock(nodes, by: -3900)
                try await newestTokens(on: nodes)
            }
        }

        private func newestTokens(on nodes: NodeProcesses) async throws {
            let admin = try await nodes.welcomedSocket("admin", role: .admin, at: 0)
            let ann = try await nodes.welcomedSocket("ann", at: 1)
            let port = try nodes.port(of: 1)
            let token = try await nodes.token("bob", issuedAt: Date(timeIntervalSinceNow: -1))
            let bob = try await RawSocket.connect(port: port, token: token)
            #expect(try await bob.call(GetMe()).userId == "bob")
            try await admin.call(RevokeUserTokens(user: "bob"))
            await #expect(throws: (any Error).self) { try await bob.call(GetMe()) }
            await #expect(throws: (any Error).self) { try await RawSocket.connect(port: port, token: token) }
            for socket in [admin, ann, bob] { await socket.close() }
        }

        // MARK: Clocks

        /// Starts two nodes, puts the clocks off, and ends the nodes whatever the body throws.
        private static func withTwoNodes(
            clocksOffBy offsets: [String?] = ["-2h", "+2h"], _ body: (NodeProcesses) async throws -> Void
        ) async throws {
            let nats = try await NATSServer.start()
            let nodes = try await NodeProcesses.start(2, on: .shared, nats)
            do {
                try await putClocksOff(nodes, ofNodes: offsets)
                try await body(nodes)
            } catch {
                Issue.record(error)
            }
            await nodes.end()
            await nats.stop()
        }

        /// Gives PostgreSQL an adjustable clock, an hour ahead, and the nodes their own clocks, if libfaketime is installed.
        ///
        /// - Parameter offsets: How far each node's clock is off; nil for one that is right.
        private static func putClocksOff(_ nodes: NodeProcesses, ofNodes offsets: [String?]) async throws {
            try nodes.postgres.run(
                sql: [
                    "CREATE TABLE moved_clock (ahead INTERVAL NOT NULL)", "INSERT INTO moved_clock VALUES ('1 hour')",
                    """
                    CREATE FUNCTION clock_timestamp() RETURNS TIMESTAMPTZ LANGUAGE sql VOLATILE
                    AS 'SELECT pg_catalog.clock_timestamp() + ahead FROM public.moved_clock'
                    """,
                    // Its own functions come first, unless the search path says otherwise.
                    """
                    DO $$ BEGIN
                        EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database());
                    END $$
                    """,
                ], in: nodes.database)
            for (place, offset) in offsets.enumerated() {
                try await nodes.killNode(place)
                try await nodes.startNode(place, environment: offset.map(ChaosFault.environment(clockOffBy:)) ?? [:])
            }
        }

        private static func moveClock(_ nodes: NodeProcesses, by seconds: Int) throws {
            _ = try nodes.rows("UPDATE moved_clock SET ahead = ahead + interval '\(seconds) seconds'")
        }

        private static func now(_ nodes: NodeProcesses) throws -> Int64 {
            let rows = try nodes.rows("SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT")
            guard let now = rows.first.flatMap({ Int64($0) }) else { throw Missed("a time in \(rows)") }
            return now
        }
    }
}
#endif
