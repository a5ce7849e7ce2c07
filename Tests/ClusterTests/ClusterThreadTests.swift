#if Cluster && os(Linux)
import RoostAPI
import RoostTestSupport
import Testing

extension RealClusterTests {
    /// A node's threads as shown by the system's tools, and the capacity that one channel of a node leaves to others.
    @Suite struct ClusterThreadTests {
        @Test("the threads of a cluster's node have names that top, ps and perf show")
        func names() async throws {
            let nats = try await NATSServer.start()
            let nodes = try await NodeProcesses.start(1, on: .shared, nats)
            let expected = Set(
                (1...4).map { "roost-lane-\($0)" } + [
                    "roost-reader-1", "roost-reader-2", "roost-signals", "roost-effects", "roost-memory", "roost-access",
                    "roost-relay", "roost-repair", "roost-nats",
                ])
            var missing = expected
            // A thread gets its name once it runs.
            try? await eventually("all threads") {
                missing = expected.subtracting(try nodes.threadNames(of: 0))
                return missing.isEmpty
            }
            #expect(missing == [])
            await nodes.end()
            await nats.stop()
        }

        @Test("I18 a sender in a quiet channel waits for four batches of a hot one at most, in any lane")
        func quietBesideHot() async throws {
            try await TestCluster.run(1) { cluster in
                let waits = try await HotChannel.waits(on: cluster.servers[0], quiet: ["quiet-1", "quiet-2", "quiet-3", "quiet-4"])
                print("Waits next to a hot channel on PostgreSQL: \(waits)")
                #expect(waits.quiet <= HotChannel.bound)
                #expect(waits.hot > HotChannel.bound)
            }
        }
    }
}
#endif
