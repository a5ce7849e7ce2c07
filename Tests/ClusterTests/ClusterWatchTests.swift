#if Cluster
import RoostAPI
import RoostTestSupport
import Testing

extension RealClusterTests {
    @Suite struct ClusterWatchTests {
        @Test("ST-05 SB-05 a watch that would make an existing conversation also counts users online on other nodes")
        func countsInExistingConversation() async throws {
            try await TestCluster.run(2) { cluster in
                try await cluster.waitUntilAcquainted()
                let (bob, ann) = (try await cluster.socket("bob", at: 0), try await cluster.socket("ann", at: 1))
                try await bob.call(CreateChannel(channel: "talk", type: .conversation, users: ["ann"]))
                try await eventually("both are online") { try await ann.call(WatchChannel(channel: "talk")).online == 2 }
                // It is the same conversation under another name.
                let other = WatchChannel(channel: "other", create: CreateChannel(type: .conversation, users: ["bob"]))
                let watched = try await ann.call(other)
                #expect(watched.channel.channelId == "talk" && watched.online == 2)
            }
        }

        @Test("ST-06 I3 a user who watches a livestream and joins, which their node reads from the database, continues to watch")
        func joiningWatcher() async throws {
            try await TestCluster.run(2) { cluster in
                let (ann, bob) = (try await cluster.socket("ann", at: 0), try await cluster.socket("bob", at: 1))
                try await ann.call(CreateChannel(channel: "stage", type: .livestream))
                try await bob.call(WatchChannel(channel: "stage"))
                await cluster.nats.killNow()
                #expect(try await cluster.servers[0].post("/v1/channels/stage/join", as: "bob") == 200)
                try await ann.call(SendMessage(channel: "stage", clientId: "1", text: "welcome"))
                #expect(try await Self.isMarked("welcome", at: bob))
            }
        }

        @Test(
            "ST-09 I3 I9 a user who watches by a query, before their node knows that they were made a member, gets the messages live"
        )
        func memberOnAnotherNode() async throws {
            try await TestCluster.run(2) { cluster in
                let (bob, cat) = (try await cluster.socket("bob", at: 1), try await cluster.socket("cat", at: 1))
                let ann = try await cluster.socket("ann", at: 0)
                try await ann.call(CreateChannel(channel: "talk", type: .messaging, users: ["cat"]))
                _ = try await cat.event(of: .user("cat"))
                await cluster.nats.killNow()
                try await ann.call(AddMembers(channel: "talk", users: ["bob"]))
                let page = try await bob.call(QueryAndWatchChannels(query: QueryChannels()))
                #expect(page.items.map(\.channel.channelId) == ["talk"])
                try await cat.call(SendMessage(channel: "talk", clientId: "1", text: "hello"))
                #expect(try await Self.isMarked("hello", at: bob))
            }
        }

        /// Waits for the channel's event with a text. Returns whether it is marked as from a watched channel. The user's own stream may bring the
        /// text earlier, as that of the channel's newest message.
        private static func isMarked(_ text: String, at socket: RawSocket) async throws -> Bool {
            while let frame = await socket.nextText() {
                guard frame.contains(#""text":"\#(text)""#), !frame.contains(#""stream":"user:"#) else { continue }
                return frame.hasPrefix(#"{"watching":true"#)
            }
            throw Missed("the message \(text)")
        }

        @Test("ST-09 I3 I4 a client that watches by a query on one node while another node writes gets every later message once")
        func manyMessages() async throws {
            try await TestCluster.run(2) { cluster in
                try await cluster.waitUntilAcquainted()
                let bob = try await cluster.socket("bob", at: 1)
                try await bob.call(CreateChannel(channel: "stage", type: .livestream))
                for _ in 0..<3 {
                    let servers = (0..<8).map { cluster.servers[$0 % 2] }
                    #expect(try await QueryWatchers.failures(watching: "stage", on: servers, while: bob) == [])
                }
            }
        }
    }
}
#endif
