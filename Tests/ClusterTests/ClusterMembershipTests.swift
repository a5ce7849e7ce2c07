#if Cluster
import RoostAPI
import RoostTestSupport
import Testing

extension RealClusterTests {
    /// Channels, invitations and roles, with everybody on another node.
    @Suite struct ClusterMembershipTests {
        @Test("AM-25 SB-05 R04 two users who start the same conversation at once through two nodes get the same one")
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

        @Test("EM-24 EM-25 SB-17 R14 an invitation, its acceptance and a role reach the users concerned on other nodes")
        func invites() async throws {
            try await TestCluster.run(2) { cluster in
                let ann = try await cluster.socket("ann", at: 0)
                let bob = try await cluster.socket("bob", at: 1)
                try await bob.call(UpdatePreferences(autoAcceptInvitations: false))
                _ = try await bob.event(of: .user("bob"))
                try await ann.call(CreateChannel(channel: "group", type: .group))
                try await ann.call(InviteMembers(channel: "group", users: ["bob"], welcome: "Come in!"))
                // The rows show it: an event that a node has read from the database has no kind.
                let received = try await bob.event(of: .user("bob")).rows.invitations?.first
                #expect(received?.state == .pending && received?.welcome == "Come in!")

                try await bob.call(AcceptInvitation(channel: "group"))
                var states: [InvitationState] = []
                while states.last != .accepted {
                    let invitations = try await ann.event(of: .user("ann")).rows.invitations ?? []
                    states += invitations.map(\.state)
                }
                #expect(states == [.pending, .accepted])
                let joined = try await bob.event(of: .user("bob")).rows
                #expect(joined.memberships?.first?.state == .member && joined.invitations?.first?.state == .accepted)

                try await ann.call(SetMemberRole(channel: "group", users: ["bob"], role: .operator))
                let changed = try await bob.event(of: .user("bob")).rows
                #expect(changed.memberships?.first?.role == .operator)
                #expect(changed.ownCapabilities?["group"]?.contains(.channelFreeze) == true)
                // Bob's operations with it apply on ann's node immediately.
                try await bob.call(FreezeChannel(channel: "group"))
                #expect(try await ann.call(GetChannel(channel: "group")).channel.isFrozen)
            }
        }
    }
}
#endif
