#if Cluster
import Foundation
import RoostAPI
import RoostServer
import RoostTestSupport
import Testing

extension RealClusterTests {
    /// Names that look alike, written by several nodes.
    @Suite struct ClusterNameTests {
        @Test("R02 if names that look alike are taken at once on two nodes, one refuses: of users, ids and channels")
        func race() async throws {
            try await TestCluster.run(1) { cluster in
                var nodes: [TestServer] = []
                for _ in 0..<2 {
                    nodes.append(
                        try await TestServer(directory: cluster.directory) {
                            $0.database = cluster.database
                            $0.options.confusableNames = .refused
                        })
                }
                var sockets: [RawSocket] = []
                for (number, node) in nodes.enumerated() {
                    sockets.append(try await node.socket(UserID("u\(number)"), role: .admin))
                }
                let (atFirst, atSecond) = (sockets[0], sockets[1])
                for round in 0..<12 {
                    let names = ["Paula \(round)", "Раulа \(round)"]
                    let ids = ["scope-\(round)", "ѕсоре-\(round)"]
                    let operations: [[any RoostAPI.Operation]] = [
                        names.map { UpdateMe(displayName: $0) }, ids.map { UpsertUser(user: UserID($0)) },
                        ids.map { CreateChannel(channel: ChannelID($0)) },
                    ]
                    for pair in operations {
                        async let first = Self.code(pair[0], over: atFirst)
                        async let second = Self.code(pair[1], over: atSecond)
                        #expect(await Set([first, second]) == [nil, .alreadyExists])
                    }
                }
                for socket in sockets { await socket.close() }
                for node in nodes { try await node.stop() }
            }
        }

        private static func code(_ operation: some RoostAPI.Operation, over socket: RawSocket) async -> RoostError.Code? {
            do {
                _ = try await socket.call(operation)
                return nil
            } catch {
                return (error as? RoostError)?.code ?? .internalError
            }
        }
    }
}
#endif
