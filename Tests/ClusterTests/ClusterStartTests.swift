#if Cluster
import Foundation
import RoostAPI
import RoostTestSupport
import Testing

@testable import RoostServer

extension RealClusterTests {
    /// Starts of a node when something is missing or wrong.
    @Suite struct ClusterStartTests {
        @Test("I3 nodes that start before the bus serve, and use it once it starts")
        func busComesLater() async throws {
            let nats = try await NATSServer.reserve()
            let directory = TemporaryDirectory.make()
            let database = try PostgreSQLServer.shared.makeDatabase()
            let first = try await TestCluster.node(directory, database, nats)
            let second = try await TestCluster.node(directory, database, nats)
            let ann = try await first.socket("ann")
            let bob = try await second.socket("bob")
            try await ann.call(CreateChannel(channel: "general", users: ["bob"]))
            let early = try await ann.send("general", "early")
            #expect(try await bob.messages(1, of: "general") == [early])

            try await nats.startAgain()
            for server in [first, second] {
                try await eventually("the bus is there") { try await server.metric("roost_cluster_bus_connected") == 1 }
                try await eventually("the nodes hear of one another") { try await server.metric("roost_cluster_nodes") == 2 }
            }
            // A comparison with the database that is quicker than the bus finds a false gap. That isn't so with every message;
            // without the bus it would be.
            var (readsGaps, number) = (true, 0)
            while readsGaps, number < 20 {
                number += 1
                let fetched = try await second.metric("roost_cluster_gaps_fetched_total")
                let late = try await ann.send("general", "late \(number)")
                #expect(try await bob.messages(1, of: "general") == [late])
                readsGaps = try await second.metric("roost_cluster_gaps_fetched_total") != fetched
            }
            #expect(!readsGaps)
            try await first.stop()
            try await second.stop()
            await nats.stop()
            try? FileManager.default.removeItem(at: directory)
        }

        @Test("I1 a node that can't reach its database ends with one sentence that says so")
        func databaseAway() async throws {
            let postgres = try PostgreSQLServer()
            let database = try postgres.makeDatabase()
            try postgres.killNow()
            let directory = TemporaryDirectory.make()
            defer { try? FileManager.default.removeItem(at: directory) }
            let (status, output) = try await ServerProcess.startAndWait(directory: directory, arguments: ["--database", database])
            #expect(status == 1)
            #expect(output.contains("PostgreSQL"))
            #expect(output.contains("127.0.0.1"))
            print("A node without its database says: \(output)")
        }

        @Test("I1 a node with another secret than the cluster's refuses to start, and says which file to copy")
        func otherSecret() async throws {
            try await TestCluster.run(1) { cluster in
                for hasOwn in [false, true] {
                    let directory = TemporaryDirectory.make()
                    if hasOwn { _ = try SecretFile(directory: directory).readOrMake() }
                    let refusal = await #expect(throws: Storage.WrongSecret.self) {
                        _ = try await TestServer(directory: directory) { $0.database = cluster.database }
                    }
                    let path = directory.appending(path: "token-secret").path
                    #expect(refusal?.description.contains("Copy the file token-secret") == true)
                    #expect(refusal?.description.contains(path) == true)
                    // Nothing was made that would hide the fault the next time.
                    #expect(FileManager.default.fileExists(atPath: path) == hasOwn)
                    try? FileManager.default.removeItem(at: directory)
                }
            }
        }

        @Test("I1 a bus without a shared database is refused")
        func busAlone() async throws {
            let refusal = await #expect(throws: RoostServer.Unsupported.self) {
                _ = try await TestServer { $0.bus = "nats://127.0.0.1:4222" }
            }
            #expect(refusal?.description.contains("--database postgres://") == true)
        }
    }
}
#endif
