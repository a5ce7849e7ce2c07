#if Cluster
import Foundation
import RoostAPI
import RoostServer
import RoostTestSupport
import Synchronization

/// Several nodes, each in a process of its own, on one PostgreSQL and one NATS server: to be killed.
///
/// Who connects asks for ``livePort(by:)`` each time: so a load balancer without sticky sessions would send them.
final class NodeProcesses: Sendable {
    let postgres: PostgreSQLServer
    let nats: NATSServer
    let database: String
    private let directory: URL
    private let keys: TokenKeys
    /// The nodes by their places. None while one is away.
    private let nodes: Mutex<[ServerProcess?]>

    /// Starts the nodes, one after the other: the first makes the secret that the others use.
    static func start(_ count: Int, on postgres: PostgreSQLServer, _ nats: NATSServer) async throws -> NodeProcesses {
        let directory = TemporaryDirectory.make()
        let database = try postgres.makeDatabase()
        let first = try await ServerProcess.start(directory: directory, arguments: arguments(database, nats.url))
        let keys = await TokenKeys(secret: try SecretFile(directory: directory).read())
        let cluster = NodeProcesses(postgres, nats, database, directory, keys, first, count: count)
        for place in 1..<count { try await cluster.startNode(place) }
        return cluster
    }

    private init(
        _ postgres: PostgreSQLServer, _ nats: NATSServer, _ database: String, _ directory: URL, _ keys: TokenKeys,
        _ first: ServerProcess, count: Int
    ) {
        self.postgres = postgres
        self.nats = nats
        self.database = database
        self.directory = directory
        self.keys = keys
        nodes = Mutex([first] + Array(repeating: nil, count: count - 1))
    }

    private static func arguments(_ database: String, _ bus: String) -> [String] {
        ["--database", database, "--bus", bus, "--drain-window", "0"]
    }

    // MARK: Nodes

    /// - Parameter bus: another way to the bus, for a node that loses it alone.
    func startNode(_ place: Int, bus: String? = nil) async throws {
        let node = try await ServerProcess.start(directory: directory, arguments: Self.arguments(database, bus ?? nats.url))
        nodes.withLock { $0[place] = node }
    }

    /// SIGKILL. Nobody is sent there any more, and who is connected is cut off.
    func killNode(_ place: Int) async {
        let node = nodes.withLock { nodes in
            defer { nodes[place] = nil }
            return nodes[place]
        }
        await node?.killNow()
    }

    func port(of place: Int) throws -> Int {
        guard let node = nodes.withLock({ $0[place] }) else { throw Missed("a running node at place \(place)") }
        return node.port
    }

    func livePort(by random: inout SeededGenerator) -> Int? {
        let ports = nodes.withLock { $0.compactMap { $0?.port } }
        return ports.isEmpty ? nil : random.pick(ports)
    }

    /// Kills what runs. PostgreSQL and NATS are ended by whoever started them.
    func end() async {
        for place in nodes.withLock({ $0.indices }) { await killNode(place) }
        try? FileManager.default.removeItem(at: directory)
    }

    // MARK: Clients

    func token(_ user: UserID, role: AppRole = .user) async throws -> String {
        try await keys.sign(.init(user: user, role: role, expiresAt: Date(timeIntervalSinceNow: 3600)))
    }

    func socket(_ user: UserID, role: AppRole = .user, at place: Int) async throws -> RawSocket {
        try await .connect(port: try port(of: place), token: try await token(user, role: role))
    }

    /// What the database itself says: each row of one column.
    func rows(_ sql: String) throws -> [String] { try postgres.run(sql: [sql], in: database) }
}
#endif
