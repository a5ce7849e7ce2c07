#if Cluster
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

extension RealClusterTests {
    /// The pushes that nodes hand off.
    @Suite struct Pushing {
        @Test(
            "ST-07 a user connected to any node gets no push until that node is gone; one node hands off each message"
        )
        func anyNode() async throws {
            let pushed = Mailbox<PushNotification>()
            try await TestCluster.run(3, pushes: { for push in $0 { pushed.put(push) } }) { cluster in
                try await cluster.waitUntilAcquainted()
                try await cluster.makeChannel("general", owner: "ann", members: ["bob", "cid", "dan"])
                let ann = try await cluster.socket("ann", at: 0)
                let bob = try await cluster.socket("bob", at: 1)
                let cid = try await cluster.socket("cid", at: 2)
                try await cid.call(UpdatePreferences(sharesPresence: false))
                try await ann.call(SendMessage(channel: "general", clientId: "1", text: "1"))
                let first = try #require(await pushed.next())
                #expect(first.message.text == "1" && first.recipients.map(\.user) == ["dan"])

                await bob.close()
                try await eventually("bob to be gone") {
                    (try? await ann.call(ListUserPresence(users: ["bob"])).users.first?.isOnline) == false
                }
                for number in 2...20 {
                    try await ann.call(SendMessage(channel: "general", clientId: ClientID("\(number)"), text: "\(number)"))
                }
                var later: [PushNotification] = []
                while later.count < 19 { later.append(try #require(await pushed.next())) }
                #expect(later.map(\.message.text).sorted() == (2...20).map { "\($0)" }.sorted())
                #expect(later.allSatisfy { $0.recipients.map(\.user) == ["bob", "dan"] })
            }
        }

        @Test("ST-07 R37 a user connected to another node gets no push, even if a channel has more members than one question names")
        func manyMembers() async throws {
            let pushed = Mailbox<PushNotification>()
            try await TestCluster.run(2, pushes: { for push in $0 { pushed.put(push) } }) { cluster in
                try await cluster.waitUntilAcquainted()
                let users = (0..<Limits.usersPerCall + 20).map { UserID("u\(1000 + $0)") }
                let others = Array(users.dropFirst(Limits.membersPerCall))
                try await cluster.makeChannel("general", owner: "ann", members: Array(users.prefix(Limits.membersPerCall)))
                let admin = try await cluster.socket("admin", role: .admin, at: 0)
                for user in others { try await admin.call(UpsertUser(user: user)) }
                let ann = try await cluster.socket("ann", at: 0)
                try await ann.call(AddMembers(channel: "general", users: others))
                for user in users.suffix(3) { _ = try await cluster.socket(user, at: 1) }
                try await ann.call(SendMessage(channel: "general", clientId: "1", text: "hi"))
                let push = try #require(await pushed.next())
                #expect(push.recipients.map(\.user) == Array(users.dropLast(3)))
            }
        }
    }
}
#endif
