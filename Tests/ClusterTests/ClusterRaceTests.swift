#if Cluster
import RoostAPI
import RoostTestSupport
import Testing

extension RealClusterTests {
    /// Changes of one message, or of one history, that meet through several nodes: whatever their order, all see one of the legal outcomes.
    @Suite struct ClusterRaceTests {
        private static let room: ChannelID = "room"

        /// The deletions that meet an edit through each of two devices.
        private enum Deletion: CaseIterable {
            case delete, purge
            /// Both, each by its own device.
            case deleteAndPurge
        }

        @Test(
            "SB-58 SB-59 R24 I3 I5 edits, a deletion and one for good that meet have one legal outcome, and nothing is left of a message deleted for good",
            arguments: [1, 3])
        func editsAndDeletions(nodes: Int) async throws {
            let options = AppOptions(undeletionSeconds: 3600, versionSeconds: 3600)
            try await TestCluster.run(nodes, options: options) { cluster in
                try await cluster.waitUntilAcquainted()
                try await cluster.makeChannel(Self.room, owner: "ann", members: ["bob"])
                var own: [RawSocket] = []
                for place in 0..<4 { own.append(try await cluster.socket("ann", at: place % nodes)) }
                var live = try await Self.devices(of: "bob", in: cluster)
                var sleeping = live[0]
                for round in 1...12 {
                    try await Self.race(Deletion.allCases[round % 3], round, own)
                }
                let head = try await own[0].call(GetChannel(channel: Self.room)).channel.counters.seq
                let page = try await own[0].call(ListMessages(channel: Self.room, after: 0, limit: 100)).messages
                // Every third round only deletes, which can be undone.
                #expect(page.count == 4 && page.allSatisfy { $0.text == "" && $0.deletedAt != nil })
                for index in live.indices {
                    try await live[index].follow(upTo: head)
                    #expect(live[index].shown == page)
                    try await sleeping.catchUp(over: live[index].socket, from: live[index])
                    #expect(sleeping.shown == page)
                    #expect(
                        try await live[index].socket.call(ListMessages(channel: Self.room, after: 0, limit: 100)).messages == page)
                }
                let left = try Self.texts(with: "word-", in: cluster)
                #expect(
                    Set(left) == Set(["word-3-", "word-6-", "word-9-", "word-12-"]),
                    "texts of rounds that only delete can be brought back")
            }
        }

        /// A message that is edited and deleted through different nodes at once.
        private static func race(_ deletion: Deletion, _ round: Int, _ own: [RawSocket]) async throws {
            let text = "word-\(round)-"
            let id = try await own[0].call(SendMessage(channel: room, clientId: ClientID("c\(round)"), text: text + "sent"))
                .messageId
            async let first = refusalCode { try await own[0].call(EditMessage(channel: room, message: id, text: text + "first")) }
            async let second = refusalCode { try await own[1].call(EditMessage(channel: room, message: id, text: text + "second")) }
            async let deleted = refusalCode {
                if deletion != .purge { try await own[2].call(DeleteMessage(channel: room, message: id)) }
            }
            async let purged = refusalCode {
                if deletion != .delete { try await own[3].call(PurgeMessage(channel: room, message: id)) }
            }
            let codes = await [first, second, deleted, purged]
            let isTooLate: (RoostError.Code?) -> Bool = { $0 == nil || $0 == .notFound }
            #expect(codes[0...1].allSatisfy(isTooLate) && codes[3] == nil, "round \(round): \(codes)")
            #expect(deletion == .deleteAndPurge ? isTooLate(codes[2]) : codes[2] == nil, "round \(round): \(codes)")
            for socket in own {
                let seen = await refusalCode { try await socket.call(GetMessage(channel: room, message: id)) }
                #expect(seen == (deletion == .delete ? nil : .notFound), "round \(round)")
            }
        }

        /// The beginnings of all texts with a word anywhere in the database.
        private static func texts(with word: String, in cluster: TestCluster) throws -> [String] {
            let tables = try cluster.postgres.run(
                sql: ["SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"], in: cluster.database)
            let rows = try cluster.postgres.run(
                sql: tables.map { "SELECT t::text FROM \"\($0)\" AS t WHERE t::text LIKE '%\(word)%'" }, in: cluster.database)
            return rows.flatMap { row in row.matches(of: /word-[0-9]+-/).map { String($0.output) } }
        }

        @Test(
            "SB-60 I5 I10 a reset while messages are sent through other nodes conceals those before it and none after it",
            arguments: [1, 3])
        func resetsAndSends(nodes: Int) async throws {
            try await TestCluster.run(nodes) { cluster in
                try await cluster.waitUntilAcquainted()
                try await cluster.makeChannel(Self.room, owner: "ann", members: ["bob"])
                let (ann, tablet) = (try await cluster.socket("ann", at: 0), try await cluster.socket("ann", at: 1 % nodes))
                let bob = try await cluster.socket("bob", at: 2 % nodes)
                var live = try await Self.devices(of: "bob", in: cluster)
                var sleeping = live[0]
                for round in 1...10 {
                    async let reset = bob.call(ResetHistory(channel: Self.room))
                    async let first = [ann.send(Self.room, "a-\(round)"), ann.send(Self.room, "b-\(round)")]
                    async let second = [tablet.send(Self.room, "c-\(round)"), tablet.send(Self.room, "d-\(round)")]
                    let (membership, messages) = try await (reset, first + second)
                    let expected = messages.filter { $0.seq > membership.historyFloor }.sorted { $0.seq < $1.seq }
                    let head = try await bob.call(GetChannel(channel: Self.room)).channel.counters.seq
                    for index in live.indices {
                        let socket = live[index].socket
                        try await live[index].follow(upTo: head, own: membership.userSeq)
                        #expect(live[index].shown == expected, "round \(round)")
                        try await sleeping.catchUp(over: socket, from: live[index])
                        #expect(sleeping.shown == expected, "round \(round)")
                        let page = try await socket.call(ListMessages(channel: Self.room, after: 0, limit: 100)).messages
                        #expect(page == expected, "round \(round)")
                        #expect(try await socket.call(GetUnread(channel: Self.room)).unreadCount == expected.count)
                    }
                }
                #expect(try await tablet.call(ListMessages(channel: Self.room, after: 0, limit: 100)).messages.count == 40)
            }
        }

        // MARK: Devices

        /// One device of a user at each node, all caught up.
        private static func devices(of user: UserID, in cluster: TestCluster) async throws -> [Device] {
            var devices: [Device] = []
            for place in cluster.servers.indices {
                var device = Device(socket: try await cluster.socket(user, at: place))
                try await device.resume()
                devices.append(device)
            }
            return devices
        }

        /// A device's state of the room: from live events, or from the changes since it slept.
        private struct Device {
            var socket: RawSocket
            private var userSeq: Seq = 0
            private var position: Seq?
            private var floor: Seq = 0
            private var messages: [Seq: Message] = [:]
            private var purged: Set<Seq> = []

            init(socket: RawSocket) { self.socket = socket }

            var shown: [Message] {
                messages.values.filter { $0.seq > floor && !purged.contains($0.seq) }.sorted { $0.seq < $1.seq }
            }

            /// Takes events until it has reached a seq in the room, and one in the user's own stream.
            mutating func follow(upTo seq: Seq, own: Seq = 0) async throws {
                while position ?? 0 < seq || userSeq < own {
                    let event = try await socket.nextEvent()
                    switch event.stream {
                    case .user: userSeq = max(userSeq, event.seq)
                    case .channel(let channel):
                        guard channel == room, let position, event.seq > position else { continue }
                        #expect(event.after ?? event.seq - 1 <= position)
                        self.position = event.seq
                    }
                    take(event.rows)
                }
            }

            /// Wakes up at another one's node, fetches the changes, and falls asleep at the same place again.
            mutating func catchUp(over socket: RawSocket, from other: Device) async throws {
                var woken = self
                woken.socket = socket
                try await woken.resume()
                #expect(woken.position == other.position)
                (messages, purged, floor) = (woken.messages, woken.purged, woken.floor)
            }

            mutating func resume() async throws {
                var hasMore = true
                while hasMore {
                    let positions = position.map { [room.rawValue: $0] } ?? [:]
                    let answer = try await socket.call(Resume(after: userSeq, channels: positions))
                    take(answer.user.rows)
                    userSeq = max(userSeq, answer.user.seq)
                    for changes in answer.channels where changes.stream == .channel(room) {
                        #expect(changes.isFresh != true || position == nil)
                        position = changes.seq
                        take(changes.rows)
                    }
                    hasMore = answer.hasMore
                }
            }

            private mutating func take(_ rows: Rows) {
                for membership in rows.memberships ?? [] where membership.channelId == room {
                    floor = max(floor, membership.historyFloor)
                }
                for message in rows.messages ?? [] where message.changeSeq >= messages[message.seq]?.changeSeq ?? 0 {
                    messages[message.seq] = message
                }
                for place in rows.purged ?? [] { purged.insert(place.seq) }
            }
        }
    }
}
#endif
