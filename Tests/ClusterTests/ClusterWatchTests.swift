#if Cluster
import RoostAPI
import RoostTestSupport
import Testing

extension RealClusterTests {
    @Suite struct ClusterWatchTests {
        @Test("ST-09 I3 I4 whoever watches by a query on one node while another node writes gets every message from there on, once")
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
