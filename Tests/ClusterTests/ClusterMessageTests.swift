#if Cluster
import RoostAPI
import RoostTestSupport
import Testing

extension RealClusterTests {
    /// Changes of messages through one node, as seen by clients of other nodes.
    @Suite struct ClusterMessageTests {
        private static let room: ChannelID = "room"

        @Test(
            "SB-37 SB-59 SB-60 R23 R24 I3 I9 lists of texts, messages restored and deleted for good, and an emptied history are seen through every node"
        )
        func changes() async throws {
            try await TestCluster.run(3, options: AppOptions(undeletionSeconds: 3600)) { cluster in
                try await cluster.waitUntilAcquainted()
                try await cluster.makeChannel(Self.room, owner: "ann", members: ["bob"])
                let (ann, tablet) = (try await cluster.socket("ann", at: 0), try await cluster.socket("ann", at: 2))
                let followers = [try await cluster.socket("bob", at: 1), try await cluster.socket("bob", at: 2)]
                let (first, second) = (try await ann.send(Self.room, "1"), try await tablet.send(Self.room, "2"))
                let third = try await ann.send(Self.room, "3")
                #expect(first.createdAt <= second.createdAt && second.createdAt <= third.createdAt)

                let lists = UpdateMetaArrays(
                    channel: Self.room, message: first.messageId, create: ["k"], add: ["k": ["b", "a"]])
                try await tablet.call(lists)
                try await ann.call(DeleteMessage(channel: Self.room, message: third.messageId))
                let back = try await tablet.call(UndeleteMessage(channel: Self.room, message: third.messageId))
                try await ann.call(PurgeMessage(channel: Self.room, message: second.messageId))
                let head = try await ann.call(GetChannel(channel: Self.room)).channel.counters.seq
                for follower in followers {
                    let seen = try await Self.followed(follower, upTo: head)
                    #expect(seen.messages.map(\.metaArrays) == [["k": ["a", "b"]], nil] && seen.messages.last == back)
                    #expect(seen.purged == [second.seq] && back.text == third.text && back.deletedAt == nil)
                    let page = try await follower.call(ListMessages(channel: Self.room, after: 0, limit: 100))
                    #expect(page.messages == seen.messages)
                }
                try await Self.resetsHistory(by: followers, ann, first.messageId, cluster)
            }
        }

        /// Empties bob's history through the first of his devices: no node shows him earlier messages, or their changes.
        private static func resetsHistory(
            by followers: [RawSocket], _ ann: RawSocket, _ earlier: MessageID, _ cluster: TestCluster
        ) async throws {
            let reset = try await followers[0].call(ResetHistory(channel: room))
            var received: Membership?
            while received != reset { received = try await followers[1].event(of: .user("bob")).rows.memberships?.last }
            try await ann.call(EditMessage(channel: room, message: earlier, text: "changed"))
            let news = try await ann.send(room, "4")
            for follower in followers { #expect(try await followed(follower, upTo: news.seq).messages == [news]) }
            for place in 0..<3 {
                let bob = try await cluster.socket("bob", at: place)
                #expect(try await bob.call(ListMessages(channel: room, after: 0, limit: 100)).messages == [news])
                #expect(try await bob.call(GetUnread(channel: room)).unreadCount == 1)
            }
        }

        /// Follows the channel to a seq, and returns its messages according to the events.
        private static func followed(
            _ socket: RawSocket, upTo seq: Seq
        ) async throws -> (messages: [Message], purged: [Seq]) {
            var messages: [Seq: Message] = [:]
            var purged: [Seq] = []
            var reached: Seq?
            while reached ?? 0 < seq {
                let event = try await socket.event(of: .channel(room))
                if let reached { #expect(event.after ?? event.seq - 1 <= reached && event.seq > reached) }
                reached = event.seq
                for message in event.rows.messages ?? [] { messages[message.seq] = message }
                for place in event.rows.purged ?? [] {
                    messages[place.seq] = nil
                    purged.append(place.seq)
                }
            }
            return (messages.values.sorted { $0.seq < $1.seq }, purged)
        }

        @Test("SB-33 I3 I23 admin messages to the same channels through three nodes at once have one order, without a deadlock")
        func adminMessages() async throws {
            try await TestCluster.run(3) { cluster in
                try await cluster.waitUntilAcquainted()
                let channels = (0..<4).map { ChannelID("c\($0)") }
                let users: [UserID] = ["ann", "bob", "cid"]
                for channel in channels { try await cluster.makeChannel(channel, owner: "ann", members: ["bob", "cid"]) }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for place in 0..<3 {
                        let root = try await cluster.socket(UserID("root-\(place)"), role: .admin, at: place)
                        // Each names the channels and the users in another order.
                        let named = Array(channels[place...] + channels[..<place])
                        let mentioned = Array(users[place...] + users[..<place])
                        group.addTask { try await Self.sendAdminMessages(15, to: named, mentioning: mentioned, by: root) }
                    }
                    try await group.waitForAll()
                }
                for channel in channels { try await Self.expectOneOrder(of: channel, users, cluster) }
                let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
                #expect(try cluster.postgres.run(sql: [deadlocks], in: cluster.database) == ["0"])
            }
        }

        private static func sendAdminMessages(
            _ count: Int, to channels: [ChannelID], mentioning users: [UserID], by root: RawSocket
        ) async throws {
            for number in 0..<count {
                let sent = try await root.call(
                    SendAdminMessage(
                        channels: channels, clientId: ClientID("\(number)"), text: "noon", mentionees: [.users(users)]))
                #expect(sent.messages.map(\.channelId) == channels)
            }
        }

        /// Checks that each node has the same messages of a channel, each sender's in the order of sending, with times that don't decrease.
        private static func expectOneOrder(of channel: ChannelID, _ users: [UserID], _ cluster: TestCluster) async throws {
            var pages: [[Message]] = []
            for place in 0..<3 {
                let reader = try await cluster.socket(users[place], at: place)
                pages.append(try await reader.call(ListMessages(channel: channel, after: 0, limit: 100)).messages)
                let unread = try await reader.call(GetUnread(channel: channel))
                #expect(unread.unreadCount == 45 && unread.hasMention)
            }
            let page = pages[0]
            #expect(pages.allSatisfy { $0 == page } && page.count == 45 && page.allSatisfy { $0.kind == .admin })
            #expect(zip(page, page.dropFirst()).allSatisfy { $0.seq < $1.seq && $0.createdAt <= $1.createdAt })
            for place in 0..<3 {
                let own = page.filter { $0.sender == UserID("root-\(place)") }
                #expect(own.map(\.clientId.rawValue) == (0..<15).map { "\($0)" })
            }
        }
    }
}
#endif
