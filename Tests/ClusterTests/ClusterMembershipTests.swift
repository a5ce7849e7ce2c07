#if Cluster
import RoostAPI
import RoostTestSupport
import Testing

extension RealClusterTests {
    /// Channels, invitations and roles, with everybody on another node.
    @Suite struct ClusterMembershipTests {
        @Test("AM-25 SB-05 R04 of two who begin the same conversation at once through two nodes both get the same one")
        func oneConversation() async throws {
            try await TestCluster.run(2) { cluster in
                let ann = try await cluster.socket("ann", at: 0)
                let bob = try await cluster.socket("bob", at: 1)
                for round in 1...15 {
                    let third = UserID("third-\(round)")
                    _ = try await cluster.socket(third, at: round % 2)
                    async let one = ann.call(CreateChannel(type: .conversation, users: ["bob", third]))
                    async let other = bob.call(CreateChannel(type: .conversation, users: ["ann", third]))
                    let ids = try await [one.channel.channelId, other.channel.channelId]
                    #expect(ids[0] == ids[1])
                }
            }
        }

        @Test("EM-24 EM-25 SB-17 R14 an invitation, its acceptance and a role reach those whom they concern on other nodes")
        func invites() async throws {
            try await TestCluster.run(2) { cluster in
                let ann = try await cluster.socket("ann", at: 0)
                let bob = try await cluster.socket("bob", at: 1)
                try await bob.call(UpdatePreferences(autoAcceptInvitations: false))
                _ = try await bob.event(of: .user("bob"))
                try await ann.call(CreateChannel(channel: "group", type: .group))
                try await ann.call(InviteMembers(channel: "group", users: ["bob"], welcome: "Come in!"))
                let received = try await bob.event(of: .user("bob"))
                #expect(received.kind == .invitationReceived && received.rows.invitations?.first?.welcome == "Come in!")

                try await bob.call(AcceptInvitation(channel: "group"))
                var kinds: [Event.Kind] = []
                while kinds.last != .invitationAccepted { kinds.append(try await ann.event(of: .user("ann")).kind) }
                #expect(kinds.contains(.invitationSent))
                #expect(try await bob.event(of: .user("bob")).kind == .memberJoined)

                try await ann.call(SetMemberRole(channel: "group", users: ["bob"], role: .operator))
                let role = try await bob.event(of: .user("bob"))
                #expect(role.kind == .memberRoleChanged)
                #expect(role.rows.ownCapabilities?["group"]?.contains(.channelFreeze) == true)
                // What bob does by it holds for ann's node at once.
                try await bob.call(FreezeChannel(channel: "group"))
                #expect(try await ann.call(GetChannel(channel: "group")).channel.isFrozen)
            }
        }
    }
}
#endif
