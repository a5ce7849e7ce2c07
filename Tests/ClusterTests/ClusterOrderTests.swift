#if Cluster
import Foundation
import RoostAPI
import RoostTestSupport
import Testing

extension RealClusterTests {
    /// One connection's view of its own operations: they run in order, each event arrives once and before the reply, with the bus and without.
    @Suite struct ClusterOrderTests {
        private static let general: ChannelID = "general"

        // MARK: The order in which operations run

        @Test("I1 SB-12 a channel can be created with its id and written to at once, whatever the id, and by both its names")
        func createsAndSends() async throws {
            try await TestCluster.run(1) { cluster in
                let ann = try await cluster.socket("ann", at: 0)
                // Before, after and beside the type's name, and with their own colons.
                let ids = (0..<8).flatMap { ["a\($0)", "zz\($0)", "messaging\($0)", "M\($0):\($0)", "~\($0)"] }
                var sends: Set<Int64> = []
                var calls: Set<Int64> = []
                for id in ids {
                    calls.insert(try await ann.post(CreateChannel(channel: ChannelID(id), type: .messaging)))
                    for (number, name) in [id, "messaging:\(id)", id].enumerated() {
                        sends.insert(
                            try await ann.post(
                                SendMessage(channel: ChannelID(name), clientId: ClientID("\(number)"), text: "hi")))
                    }
                }
                let replies = try await ann.answers(to: calls.union(sends)).replies
                #expect(replies.compactMap(\.error) == [])
            }
        }

        @Test("I3 messages sent to a channel by its id and as type:id in turn are stored in the order of sending")
        func bothNames() async throws {
            try await TestCluster.run(1) { cluster in
                let ann = try await cluster.socket("ann", at: 0)
                for id in ["trip", "zebra"] {
                    try await ann.call(CreateChannel(channel: ChannelID(id), type: .messaging))
                    let calls = try await (0..<40).asyncMap { number in
                        try await ann.post(
                            SendMessage(
                                channel: ChannelID(number % 2 == 0 ? id : "messaging:\(id)"), clientId: ClientID("\(number)"),
                                text: "hi"))
                    }
                    let answers = try await ann.answers(to: Set(calls))
                    #expect(answers.replies.map(\.call) == calls)
                    let stored = try await ann.call(ListMessages(channel: ChannelID(id), after: 0, limit: 100)).messages
                    #expect(stored.map(\.clientId.rawValue) == (0..<40).map { "\($0)" })
                }
            }
        }

        @Test(
            "ST-02 of watching and unwatching at once the last one wins, even though watching asks the other nodes")
        func watchesInTurn() async throws {
            try await TestCluster.run(2) { cluster in
                try await cluster.waitUntilAcquainted()
                try await cluster.makeChannel(Self.general, owner: "ann")
                let ann = try await cluster.socket("ann", at: 1)
                for name: ChannelID in ["general", "community:general"] {
                    var calls: [Int64] = []
                    for _ in 1...5 {
                        calls.append(try await ann.post(WatchChannel(channel: name)))
                        calls.append(try await ann.post(UnwatchChannel(channel: Self.general)))
                    }
                    #expect(try await ann.answers(to: Set(calls)).replies.map(\.call) == calls)
                    let send = try await ann.post(SendMessage(channel: Self.general, clientId: ClientID(name.rawValue), text: "hi"))
                    #expect(try await ann.answers(to: [send]).marks(of: Self.general) == [false])
                }
            }
        }

        // MARK: Events, then the reply

        @Test(
            "I1 a node's first follower of a channel gets their own event before the reply: joined, created or watched at once"
        )
        func firstFollower() async throws {
            try await TestCluster.run(2) { cluster in
                try await cluster.waitUntilAcquainted()
                let (ann, bob) = (try await cluster.socket("ann", at: 0), try await cluster.socket("bob", at: 1))
                for number in 0..<12 {
                    let joined = ChannelID("joined-\(number)")
                    try await ann.call(CreateChannel(channel: joined, type: .community))
                    // Sometimes this node follows it already for another user.
                    var calls = [try await bob.post(JoinChannel(channel: joined))]
                    if number % 2 == 0 { calls.append(try await bob.post(WatchChannel(channel: joined))) }
                    calls += try await Self.sends(3, to: joined, by: bob)
                    // Others write meanwhile.
                    let others = try await Self.sends(2, to: joined, by: ann)
                    #expect(try await bob.answers(to: Set(calls)).faults(of: "bob", calls) == [])
                    #expect(try await ann.answers(to: Set(others)).faults(of: "ann", others) == [])

                    let created = ChannelID("created-\(number)")
                    calls = [try await bob.post(CreateChannel(channel: created, type: .community))]
                    calls += try await Self.sends(3, to: created, by: bob)
                    if number % 2 == 0 { calls.append(try await bob.post(WatchChannel(channel: created))) }
                    calls += try await Self.sends(2, to: created, by: bob, from: 10)
                    #expect(try await bob.answers(to: Set(calls)).faults(of: "bob", calls) == [])
                }
            }
        }

        @Test(
            "I1 I3 while a node's bus is down its replies arrive in the order of the calls, each event once, before its reply, and marked"
        )
        func withoutBus() async throws {
            try await TestCluster.run(2) { cluster in
                try await cluster.makeChannel(Self.general, owner: "ann", members: ["bob"])
                let (ann, bob) = (try await cluster.socket("ann", at: 0), try await cluster.socket("bob", at: 1))
                await cluster.nats.killNow()
                for round in 0..<10 {
                    // The other node's writes are a gap here until they are read from the database.
                    try await ann.call(SendMessage(channel: Self.general, clientId: ClientID("ann-\(round)"), text: "hi"))
                    var calls = try await Self.sends(5, to: Self.general, by: bob, from: round * 100)
                    let watch = try await bob.post(WatchChannel(channel: Self.general))
                    calls.append(watch)
                    calls += try await Self.sends(5, to: Self.general, by: bob, from: round * 100 + 50)
                    let unwatch = try await bob.post(UnwatchChannel(channel: Self.general))
                    let answers = try await bob.answers(to: Set(calls + [unwatch]))
                    #expect(answers.faults(of: "bob", calls + [unwatch]) == [])
                    #expect(answers.marks(of: Self.general, between: watch, and: unwatch).allSatisfy { $0 })
                }
                let (cat, left) = (try await cluster.socket("cat", at: 1), try await cluster.socket("cat", at: 0))
                for round in 0..<5 {
                    let channel = ChannelID("made-\(round)")
                    try await left.call(CreateChannel(channel: channel, type: .community, users: ["bob"]))
                    let others = try await Self.sends(3, to: channel, by: left)
                    #expect(try await left.answers(to: Set(others)).faults(of: "cat", others) == [])
                    var calls = [try await cat.post(WatchChannel(channel: channel))]
                    calls += try await Self.sends(5, to: channel, by: cat, from: 10)
                    #expect(try await cat.answers(to: Set(calls)).faults(of: "cat", calls) == [])
                }
            }
        }

        private static func sends(
            _ count: Int, to channel: ChannelID, by socket: RawSocket, from first: Int = 0
        ) async throws -> [Int64] {
            try await (first..<first + count).asyncMap { number in
                try await socket.post(SendMessage(channel: channel, clientId: ClientID("c\(number)"), text: "hi"))
            }
        }
    }
}

/// The frames that a connection received, in order, until all of its calls were answered.
struct Answers {
    enum Frame {
        case event(Event, isWatching: Bool)
        case reply(Int64, RoostError?, Message?)
    }
    var frames: [Frame] = []

    var replies: [(call: Int64, error: RoostError?)] {
        frames.compactMap { if case .reply(let call, let error, _) = $0 { (call, error) } else { nil } }
    }

    /// The `watching` mark of each event of a channel; only between two replies if they are given.
    func marks(of channel: ChannelID, between first: Int64? = nil, and last: Int64? = nil) -> [Bool] {
        var marks: [Bool] = []
        var isWithin = first == nil
        for frame in frames {
            switch frame {
            case .reply(let call, _, _):
                if call == first { isWithin = true }
                if call == last { isWithin = false }
            case .event(let event, let isWatching): if event.stream == .channel(channel), isWithin { marks.append(isWatching) }
            }
        }
        return marks
    }

    /// Replies out of order, refusals, events twice or out of order, and replies before their event.
    func faults(of user: UserID, _ calls: [Int64]) -> [String] {
        var faults: [String] = []
        var received: [StreamID: Seq] = [:]
        for frame in frames {
            switch frame {
            case .event(let event, _):
                if event.seq <= received[event.stream] ?? 0 { faults.append("\(event.stream) \(event.seq) again, or late") }
                received[event.stream] = event.seq
            case .reply(let call, let error?, _): faults.append("\(call) was refused: \(error)")
            case .reply(let call, nil, let message?):
                if received[.channel(message.channelId)] ?? 0 < message.seq {
                    faults.append("\(call) was answered before its event")
                }
            case .reply: break
            }
        }
        let order = replies.map(\.call)
        if order != calls { faults.append("replies in the order \(order), calls \(calls)") }
        return faults
    }
}

extension RawSocket {
    private struct AnyReply: Decodable {
        let reply: Int64
        let error: RoostError?
        let result: SomeResult?
    }
    /// A message, or anything else.
    private struct SomeResult: Decodable {
        let message: Message?
        init(from decoder: any Decoder) throws { message = try? Message(from: decoder) }
    }

    /// Takes frames until some calls are answered.
    func answers(to calls: Set<Int64>) async throws -> Answers {
        var answers = Answers()
        var missing = calls
        while !missing.isEmpty {
            switch await next() {
            case .text(let text):
                let data = Data(text.utf8)
                if text.hasPrefix(#"{"watching""#) {
                    let frame = try JSONDecoder().decode(EventFrame.self, from: data)
                    answers.frames.append(.event(frame.event, isWatching: frame.watching))
                } else {
                    let reply = try JSONDecoder().decode(AnyReply.self, from: data)
                    answers.frames.append(.reply(reply.reply, reply.error, reply.result?.message))
                    missing.remove(reply.reply)
                }
            case .ping: continue
            case let other: throw Missed("the replies to \(missing.sorted()): \(other)")
            }
        }
        return answers
    }
}

extension Sequence {
    fileprivate func asyncMap<T>(_ transform: (Element) async throws -> T) async rethrows -> [T] {
        var values: [T] = []
        for element in self { values.append(try await transform(element)) }
        return values
    }
}
#endif
