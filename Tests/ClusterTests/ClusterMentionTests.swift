#if Cluster
import RoostAPI
import RoostTestSupport
import Testing

extension RealClusterTests {
    /// Mentions by users of three nodes at once, mostly of users on another node.
    @Suite struct ClusterMentionTests {
        private static let users: [UserID] = ["ann", "bob", "cid"]

        @Test(
            "MN-12 MN-16 SB-59 R35 I3 through three nodes at once, events of mentions arrive in order without a gap, and match a fetch"
        )
        func threeNodes() async throws {
            try await TestCluster.run(3) { cluster in
                try await cluster.waitUntilAcquainted()
                try await cluster.makeChannel("general", owner: "ann", members: ["bob", "cid"])
                var follower: [UserID: RawSocket] = [:]
                var writer: [UserID: RawSocket] = [:]
                for (place, user) in Self.users.enumerated() {
                    writer[user] = try await cluster.socket(user, at: place)
                    // Each user also follows on another node than the one where they write.
                    follower[user] = try await cluster.socket(user, at: (place + 1) % 3)
                }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for user in Self.users {
                        guard let socket = writer[user] else { continue }
                        group.addTask { try await Self.writeMessages(by: user, socket) }
                    }
                    try await group.waitForAll()
                }
                for user in Self.users {
                    guard let own = follower[user] else { continue }
                    try await Self.expectConvergence(of: user, own, cluster)
                }
            }
        }

        /// Mentions the others in turn, and removes some of the mentions.
        private static func writeMessages(by user: UserID, _ socket: RawSocket) async throws {
            let others = users.filter { $0 != user }
            for number in 1...20 {
                let mentionees: [Mentionee] =
                    number % 4 == 0 ? [.channel] : [.users(number % 3 == 0 ? others : [others[number % 2]])]
                let sent = try await socket.call(
                    SendMessage(
                        channel: "general", clientId: ClientID("\(number)"), text: "hi", mentionees: mentionees))
                switch number % 5 {
                case 1:
                    try await socket.call(EditMessage(channel: "general", message: sent.messageId, mentionees: [.users(others)]))
                case 2: try await socket.call(DeleteMessage(channel: "general", message: sent.messageId))
                case 3: try await socket.call(MarkRead(channel: "general", seq: sent.seq - 2))
                case 4: try await socket.call(DeleteMessagesForMe(channel: "general", messages: [sent.messageId]))
                default: break
                }
            }
        }

        /// Follows the user's stream to its end, and checks that its last membership is the one that each node has.
        private static func expectConvergence(of user: UserID, _ socket: RawSocket, _ cluster: TestCluster) async throws {
            let head = try await socket.call(GetMyChanges(after: 0, limit: 1000)).seq
            var membership: Membership?
            var deletions: Set<Seq> = []
            var seq: Seq?
            while seq ?? 0 < head {
                let event = try await socket.event(of: .user(user))
                if let seq { #expect(event.after ?? event.seq - 1 <= seq && event.seq > seq) }
                seq = event.seq
                membership = event.rows.memberships?.last ?? membership
                deletions.formUnion((event.rows.ownDeletions ?? []).map(\.seq))
            }
            #expect(deletions.count == 4)
            for place in 0..<3 {
                let other = try await cluster.socket(user, at: place)
                let channel = try await other.call(GetChannel(channel: "general"))
                #expect(channel.membership?.mentionSeq == membership?.mentionSeq)
                #expect(channel.membership?.mentionMessage == membership?.mentionMessage)
                #expect(channel.membership?.userSeq == membership?.userSeq)
                let unread = try await other.call(GetUnread(channel: "general"))
                #expect(unread.hasMention == channel.hasMention && unread.unreadCount == channel.unreadCount)
                let page = try await other.call(ListMessages(channel: "general", after: 0, limit: 100)).messages
                #expect(Set(page.filter(\.isDeletedForMe).map(\.seq)) == deletions)
                // A user's newest mention is one that a page shows.
                if let newest = membership?.mentionMessage {
                    #expect(page.contains { $0.messageId == newest && ($0.mentionees?.mentionedUsers.contains(user) ?? false) })
                }
            }
        }
    }
}
#endif
