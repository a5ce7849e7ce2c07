#if Cluster
import Foundation
import RoostAPI
import RoostCore
import RoostServer
import RoostTestSupport
import Synchronization
import Testing

extension RealClusterTests {
    /// Effects that several nodes could run.
    @Suite struct ClusterEffectTests {
        @Test("three nodes run each effect once; those in progress on a killed node are taken over by another")
        func threeNodes() async throws {
            let probe = EffectProbe()
            for number in 0..<5 { probe.hang("hanging \(number)") }
            var settings = probe.settings
            // Effects that take longer than that on a busy machine would be started again.
            settings.performingTime = .seconds(10)
            try await TestCluster.run(3, effects: settings) { cluster in
                for (place, server) in cluster.servers.enumerated() {
                    try await server.perform { context in
                        for number in 0..<50 {
                            let at = Timestamp(milliseconds: context.now.milliseconds + 200)
                            try context.schedule(EffectProbe.inside, key: "\(place) \(number)", at: at)
                            try context.schedule(EffectProbe.outside, key: "\(place) \(number)", at: at)
                        }
                        for number in 0..<5 where place == 0 {
                            try context.schedule(EffectProbe.outside, key: "hanging \(number)", at: context.now)
                        }
                    }
                }
                let last = cluster.servers[2]
                let found = Mutex((inside: 0, outside: 0))
                try await Polling.value {
                    try await last.perform { context in
                        let inside = try EffectProbe.ended(EffectProbe.inside, in: context.transaction).count
                        let outside = try EffectProbe.ended(EffectProbe.outside, in: context.transaction).count
                        found.withLock { $0 = (inside, outside) }
                    }
                    return found.withLock { $0 }
                } until: {
                    $0.inside == 150 && $0.outside == 155
                }
                let counts = probe.performedCounts
                #expect(counts.filter { $0.key.hasPrefix("hanging") }.values.allSatisfy { $0 == 2 })
                #expect(counts.filter { !$0.key.hasPrefix("hanging") }.values.allSatisfy { $0 == 1 })
                for server in cluster.servers { #expect(try await server.metric("roost_effects_dead") == 0) }
            }
        }

        @Test("effects are done even if the nodes that run them are killed with -9 one after another")
        func kills() async throws {
            let postgres = try PostgreSQLServer()
            let nodes = try await NodeProcesses.start(3, on: postgres, nil, hasWays: false)
            func effects() throws -> Int {
                try nodes.rows("SELECT count(*) FROM effects").first.flatMap { Int($0) } ?? -1
            }
            for round in 0..<3 {
                // The program's only kind: each of these deletes old keys.
                _ = try nodes.rows(
                    """
                    INSERT INTO effects (kind, effect_key, payload, due_at, revision, attempts)
                    SELECT 'idempotencyKeys.expire', 'test ' || n, '', 0, n, 0 FROM generate_series(1, 1500) AS n
                    """)
                _ = try nodes.rows(
                    """
                    INSERT INTO idempotency_keys (user_id, request_key, request, channel_id, created_at)
                    SELECT 'ann', 'key ' || n, '', 'general', 0 FROM generate_series(1, 3000) AS n
                    """)
                try await nodes.killNode(round)
                try await Polling.value {
                    try effects()
                } until: {
                    $0 < 1000
                }
                try await nodes.killNode((round + 1) % 3)
                try await nodes.startNode(round)
                try await nodes.startNode((round + 1) % 3)
                // An effect that failed on a busy machine doubles its wait: to half a minute in the end.
                try await Polling.value(within: .seconds(90)) {
                    try effects()
                } until: {
                    $0 == 0
                }
                #expect(try nodes.rows("SELECT count(*) FROM idempotency_keys") == ["0"])
            }
            await nodes.end()
            try postgres.stop()
        }
    }
}
#endif
