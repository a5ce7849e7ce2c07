#if Cluster
import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@testable import RoostDatabase
@testable import RoostServer

/// How often a batch waits for PostgreSQL's answer. Always on a real server: a lane's CPU use and its rate depend on it
/// ([0059](docs/decisions/0059-a-batch-remembers.md)).
@Suite("Round trips of a batch")
struct RoundTripTests {
    private let database: PostgreSQLDatabase
    private let settings: BatchSettings
    private var lane = Lane(number: 0, patience: .seconds(10), deferredJobsMax: 1000)

    init() throws {
        database = try PostgreSQLDatabase(url: try PostgreSQLServer.shared.makeDatabase(), laneCount: 1)
        settings = BatchSettings(access: try AccessGate(database), presence: PresenceBoard())
        for number in 0..<4 {
            let create = CreateChannel(channel: Self.channel(number), type: .community)
            try #require(try run([(create, "ann")]).refusals == [])
            for user in ["bob", "cem"] as [UserID] {
                try #require(try run([(JoinChannel(channel: Self.channel(number)), user)]).refusals == [])
            }
        }
        // Gives the lane its generator.
        try #require(try run(Self.sends(70, "first")).refusals == [])
    }

    private static func channel(_ number: Int) -> ChannelID { ChannelID("c\(number)") }

    /// Messages of three users, to four channels in turn.
    private static func sends(_ count: Int, _ name: String) -> [(any Handled, UserID)] {
        (0..<count).map { index in
            let users: [UserID] = ["ann", "bob", "cem"]
            let send = SendMessage(channel: channel(index % 4), clientId: ClientID("\(name) \(index)"), text: "\(index)")
            return (send, users[index % 3])
        }
    }

    /// Runs operations as one batch, as a lane does.
    ///
    /// - Returns: The round trips that the batch took, and the refusals.
    private mutating func run(_ operations: [(any Handled, UserID)]) throws -> (roundTrips: Int, refusals: [RoostError.Code]) {
        let jobs = operations.map { operation, user in job(operation, by: user) }
        let before = try roundTripCount()
        var refusals: [RoostError.Code]?
        lane.run(jobs, in: database, settings) { action in
            if case .committed(let done) = action { refusals = done.compactMap(\.outcome.refusal?.code) }
        }
        guard let refusals else { throw Missed("the commit of a batch") }
        // Reading the count takes one itself.
        return (try roundTripCount() - before - 1, refusals)
    }

    private func job(_ operation: some Handled, by user: UserID) -> Job {
        Job(
            .init(operation, for: Caller(user: user)), caller: Caller(user: user),
            run: { context in
                guard let response = try operation.handle(once: nil, in: &context) else { return [] }
                return try JSONWriter.bytes(of: response)
            }, destination: .waiting { _ in })
    }

    private func roundTripCount() throws -> Int {
        try database.write(lane: 0) { transaction in
            guard let transaction = transaction as? PostgreSQLTransaction else { throw Missed("PostgreSQL's transaction") }
            return transaction.roundTripCount
        }
    }

    @Test("NF-04 a batch of sends waits for PostgreSQL as often as one send does", arguments: [1, 2, 16, 100, 500])
    mutating func sends(count: Int) throws {
        let (roundTrips, refusals) = try run(Self.sends(count, "counted"))
        #expect(refusals == [])
        #expect(roundTrips == 4, "\(count) sends")
    }

    /// A hundred memberships are fetched together, and up to 256 statements are in flight: 200 channels take a few more round trips than four.
    @Test("NF-04 a batch of sends to 200 channels waits a few times more, and not once per channel")
    mutating func sendsToManyChannels() throws {
        let channels = (0..<200).map { ChannelID("many\($0)") }
        let creates: [(any Handled, UserID)] = channels.map { (CreateChannel(channel: $0, type: .community), "ann") }
        try #require(try run(creates).refusals == [])
        let sends: [(any Handled, UserID)] = channels.map { channel in
            (SendMessage(channel: channel, clientId: "only", text: "hi"), "ann")
        }
        let (roundTrips, refusals) = try run(sends)
        #expect(refusals == [])
        #expect((4...8).contains(roundTrips), "\(roundTrips) round trips")
    }

    @Test(
        "NF-04 if messages were deleted for good, a batch of sends waits once more, however many there are",
        arguments: [2, 16, 500])
    mutating func sendsAfterPurge(count: Int) throws {
        for number in 0..<4 {
            let id = try database.read { transaction in
                try transaction.first(
                    "SELECT message_id FROM messages WHERE channel_id = \(Self.channel(number)) AND sender_id = 'ann' LIMIT 1"
                ) {
                    MessageID(rawValue: $0.int64())
                }
            }
            let purge = PurgeMessage(channel: Self.channel(number), message: try #require(id))
            try #require(try run([(purge, "ann")]).refusals == [])
        }
        let (roundTrips, refusals) = try run(Self.sends(count, "counted"))
        #expect(refusals == [])
        #expect(roundTrips == 5, "\(count) sends")
    }

    /// A sender with more than 256 of them was looked up message by message.
    @Test("NF-04 however many of a sender's messages were deleted for good, their sends wait as often as those of others")
    mutating func sendsAfterManyPurges() throws {
        let channel = Self.channel(0)
        let id = try database.read { transaction in
            try transaction.first("SELECT message_id FROM messages WHERE channel_id = \(channel) AND sender_id = 'ann' LIMIT 1") {
                MessageID(rawValue: $0.int64())
            }
        }
        try #require(try run([(PurgeMessage(channel: channel, message: try #require(id)), "ann")]).refusals == [])
        try database.write(lane: 0) { transaction in
            for number in 1...300 {
                let clientId = ClientID("gone \(number)")
                try transaction.perform(
                    """
                    INSERT INTO purged_messages
                        (channel_id, seq, message_id, change_seq, ordinal, counts, sender_id, client_id, created_at, purged_at)
                    VALUES (\(channel), \(100_000 + number), \(number), 1, 0, 0, 'ann', \(clientId), 0, 0)
                    """)
            }
        }
        // Alone, and together with others.
        let own: [(any Handled, UserID)] = (0..<40).map { number in
            (SendMessage(channel: channel, clientId: ClientID("own \(number)"), text: "hi"), "ann")
        }
        for operations in [own, Self.sends(40, "mixed")] {
            let (roundTrips, refusals) = try run(operations)
            #expect(refusals == [])
            #expect(roundTrips == 5, "the first by \(operations[0].1)")
        }
    }
}
#endif
