#if Cluster
import RoostAPI
import RoostTestSupport
import Testing

extension RealClusterTests {
    /// Listing members asks all nodes who is online, as watching does.
    @Suite struct ClusterMemberListTests {
        @Test("R15 SB-63 I13 a list of members, a search and a single member show who is online on other nodes")
        func online() async throws {
            try await TestCluster.run(3) { cluster in
                try await cluster.waitUntilAcquainted()
                try await cluster.makeChannel("general", owner: "ann", members: ["bob", "cat"])
                let ann = try await cluster.socket("ann", at: 0)
                _ = try await cluster.socket("bob", at: 1)
                // The first request: no node has reported on the channel yet.
                let listed = try await ann.call(ListMembers(channel: "general", sort: .userId)).items
                #expect(listed.map(\.isOnline) == [true, true, false])
                // The other way round, on a node that wasn't asked before.
                let cat = try await cluster.socket("cat", at: 2)
                #expect(try await cat.call(SearchMembers(channel: "general", text: "bob")).items.map(\.isOnline) == [true])
                #expect(try await cat.call(GetMember(channel: "community:general", user: "ann")).isOnline)
            }
        }
    }
}
#endif
