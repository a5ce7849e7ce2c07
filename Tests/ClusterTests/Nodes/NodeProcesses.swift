#if Cluster
import Foundation
import RoostAPI
import RoostServer
import RoostTestSupport
import Synchronization

/// Several nodes that can be killed, each in its own process, on one PostgreSQL and one NATS server.
///
/// A client asks for ``livePort(by:)`` each time it connects, as a load balancer without sticky sessions would send it.
final class NodeProcesses: Sendable {
    let postgres: PostgreSQLServer
    let nats: NATSServer
    let database: String
    private let directory: URL
    private let keys: TokenKeys
    /// The nodes by their places. Nil while one is down.
    private let nodes: Mutex<[ServerProcess?]>

    /// Each node's connections to the database and to the bus, which can be cut. Empty for nodes connected directly.
    let ways: [NodeWays]

    /// Starts the nodes, one after the other: the first makes the secret that the others use.
    ///
    /// - Parameters:
    ///   - nats: Nil for nodes without a bus.
    ///   - hasWays: Whether each node connects through ``ways``.
    static func start(
        _ count: Int, on postgres: PostgreSQLServer, _ nats: NATSServer?, hasWays: Bool = false
    ) async throws -> NodeProcesses {
        let directory = TemporaryDirectory.make()
        let database = try postgres.makeDatabase()
        var ways: [NodeWays] = []
        if hasWays { for _ in 0..<count { ways.append(try await NodeWays(database, postgres, nats)) } }
        let first = try await ServerProcess.start(
            directory: directory, arguments: arguments(ways.first?.database ?? database, ways.first?.busURL ?? nats?.url))
        let keys = await TokenKeys(secret: try SecretFile(directory: directory).read())
        let bus = if let nats { nats } else { try await NATSServer.reserve() }
        let cluster = NodeProcesses(postgres, bus, database, directory, keys, first, ways, count: count)
        for place in 1..<count { try await cluster.startNode(place) }
        return cluster
    }

    private init(
        _ postgres: PostgreSQLServer, _ nats: NATSServer, _ database: String, _ directory: URL, _ keys: TokenKeys,
        _ first: ServerProcess, _ ways: [NodeWays], count: Int
    ) {
        self.ways = ways
        self.postgres = postgres
        self.nats = nats
        self.database = database
        self.directory = directory
        self.keys = keys
        nodes = Mutex([first] + Array(repeating: nil, count: count - 1))
    }

    private static func arguments(_ database: String, _ bus: String?) -> [String] {
        ["--database", database, "--drain-window", "0"] + (bus.map { ["--bus", $0] } ?? [])
    }

    // MARK: Nodes

    /// - Parameter bus: Another address of the bus, for a node that loses only the bus.
    func startNode(_ place: Int, bus: String? = nil, environment: [String: String] = [:]) async throws {
        let arguments =
            ways.isEmpty ? Self.arguments(database, bus ?? nats.url) : Self.arguments(ways[place].database, ways[place].busURL)
        let node = try await ServerProcess.start(directory: directory, arguments: arguments, environment: environment)
        nodes.withLock { $0[place] = node }
    }

    /// SIGKILL. No new clients are sent there, and connected ones are cut off.
    func killNode(_ place: Int) async throws {
        let node = nodes.withLock { nodes in
            defer { nodes[place] = nil }
            return nodes[place]
        }
        try await node?.killNow()
    }

    /// SIGTERM. Returns when it has ended.
    func stopNode(_ place: Int) async throws -> Int32? {
        let node = nodes.withLock { nodes in
            defer { nodes[place] = nil }
            return nodes[place]
        }
        return try await node?.stop()
    }

    /// SIGSTOP or SIGCONT. Clients are still sent there, as by a balancer that hasn't noticed.
    func signal(_ number: Int32, to place: Int) { nodes.withLock { $0[place] }?.signal(number) }

    func port(of place: Int) throws -> Int {
        guard let node = nodes.withLock({ $0[place] }) else { throw Missed("a running node at place \(place)") }
        return node.port
    }

    #if os(Linux)
    func threadNames(of place: Int) throws -> Set<String> { try nodes.withLock { try $0[place]?.threadNames() } ?? [] }
    #endif

    func livePort(by random: inout SeededGenerator) -> Int? {
        let ports = nodes.withLock { $0.compactMap { $0?.port } }
        return ports.isEmpty ? nil : random.pick(ports)
    }

    /// Kills the running nodes. Whoever started PostgreSQL and NATS ends them.
    func end() async {
        for place in nodes.withLock({ $0.indices }) { try? await killNode(place) }
        for way in ways { await way.stop() }
        try? FileManager.default.removeItem(at: directory)
    }

    // MARK: Clients

    /// - Parameter issuedAt: Long before now by default: a node whose clock is two hours behind accepts the token too.
    func token(
        _ user: UserID, role: AppRole = .user, issuedAt: Date = Date(timeIntervalSinceNow: -14_400),
        expiresAt: Date = Date(timeIntervalSinceNow: 86_400), id: String? = nil
    ) async throws -> String {
        try await keys.sign(.init(user: user, role: role, expiresAt: expiresAt, issuedAt: issuedAt, id: id))
    }

    func socket(_ user: UserID, role: AppRole = .user, at place: Int) async throws -> RawSocket {
        try await .connect(port: try port(of: place), token: try await token(user, role: role))
    }

    /// The same at a node that may still be reconnecting to the database.
    func welcomedSocket(_ user: UserID, role: AppRole = .user, at place: Int) async throws -> RawSocket {
        var found: RawSocket?
        try await eventually("a welcome at node \(place)") {
            found = try? await socket(user, role: role, at: place)
            return found != nil
        }
        guard let found else { throw Missed("a welcome") }
        return found
    }

    /// The database's own answer: each row of one column.
    func rows(_ sql: String) throws -> [String] { try postgres.run(sql: [sql], in: database) }
}

/// One node's connections to the others, through proxies that can lose, cut and delay traffic.
final class NodeWays: Sendable {
    let databaseProxy: TCPProxy
    let busProxy: TCPProxy?
    /// The address of the database through the proxy.
    let database: String
    var busURL: String? { busProxy.map { "nats://127.0.0.1:\($0.port)" } }

    init(_ database: String, _ postgres: PostgreSQLServer, _ nats: NATSServer?) async throws {
        databaseProxy = try await TCPProxy.start(targets: [postgres.port])
        self.database = database.replacing(":\(postgres.port)/", with: ":\(databaseProxy.port)/")
        busProxy = if let nats { try await TCPProxy.start(targets: [nats.port]) } else { nil }
    }

    func stop() async {
        await databaseProxy.stop()
        await busProxy?.stop()
    }
}
#endif
