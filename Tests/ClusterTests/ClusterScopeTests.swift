#if Cluster
import RoostAPI
import RoostTestSupport
import Testing

extension RealClusterTests {
    /// The same on PostgreSQL, where another lane or node could have advanced the stream meanwhile.
    @Suite struct ClusterScopeTests {
        @Test(
            "a stream outside an operation's scope is an internal failure on PostgreSQL too, and the rest of its batch continues")
        func batch() async throws {
            try await TestCluster.run(1) { cluster in
                try await ScopeBatch.run(on: cluster.servers[0])
            }
        }
    }
}
#endif
