#if Cluster
import Foundation
import RoostAPI
import RoostDatabase

/// Everything that one run measures, in this order:
/// 1. sends into many channels and into one, on PostgreSQL, by pgbench, and on SQLite;
/// 2. messages to many sockets, on PostgreSQL and on SQLite;
/// 3. the same load on one node, two and three;
/// 4. delivery from node to node;
/// 5. idle connections;
/// 6. sends over few and over many channels of a database with messages in it;
/// 7. effects.
struct ClusterBenchmark: Benchmark {
    static let name = "cluster"
    let databaseURL: String?
    let busURL: String?
    /// The length of each measurement; nil for the scale's.
    let seconds: Double?
    let socketCount: Int
    /// Nil for the scale's.
    let idleCount: Int?
    let parts: [BenchPart.ClusterPart]

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        let seconds = seconds ?? scale.pick(10, quick: 3, smoke: 1)
        let socketCount = scale.pick(socketCount, quick: socketCount, smoke: BenchPart.clusterSocketsMin)
        let idleCount = idleCount ?? scale.pick(10_000, quick: 1000, smoke: 50)
        try OpenFiles.require(sockets: socketCount)
        let world = ClusterWorld(userCount: socketCount)
        let alone = directory.appending(path: "sqlite")
        let shared = directory.appending(path: "nodes")
        for place in [alone, shared] { try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true) }
        let fsync = try Disk.fsyncs(in: directory).median / 1000
        let services = try ClusterServices(directory: directory, databaseURL: databaseURL, busURL: busURL)
        defer { services.end() }
        let run = try await ClusterRun(
            world: world, services: services, nodeDirectory: shared, aloneDirectory: alone, seconds: seconds)
        var figures = [Figure("disk: append and fsync, p50", fsync, "ms")]
        for part in parts {
            switch part {
            case .send: figures += try run.sends(in: directory)
            case .fanout: figures += try run.fanout()
            case .nodes: figures += try run.nodes()
            case .crossing: figures += try run.crossing()
            case .idle: figures += try await run.idle(connections: idleCount)
            case .spread: figures += try run.spread(scale)
            case .effects:
                let place = directory.appending(path: "effects")
                figures += try await ClusterEffects().figures(in: place, scale: scale)
            }
        }
        return figures
    }
}

/// The common part of the benchmark's parts.
struct ClusterRun {
    let world: ClusterWorld
    let services: ClusterServices
    let seconds: Double
    private let nodeDirectory: URL
    private let aloneDirectory: URL
    /// Indexed by the user's number.
    private let nodeTokens: [String]
    private let aloneTokens: [String]

    /// Fills both databases.
    init(world: ClusterWorld, services: ClusterServices, nodeDirectory: URL, aloneDirectory: URL, seconds: Double) async throws {
        self.world = world
        self.services = services
        self.seconds = seconds
        self.nodeDirectory = nodeDirectory
        self.aloneDirectory = aloneDirectory
        try world.fill(try PostgreSQLDatabase(url: services.databaseURL, laneCount: 1, readerCount: 1))
        try world.fill(try SQLiteDatabase(directory: aloneDirectory))
        let users = (0..<world.userCount).map(world.user)
        nodeTokens = try await BenchTokens(directory: nodeDirectory).tokens(for: users)
        aloneTokens = try await BenchTokens(directory: aloneDirectory).tokens(for: users)
    }

    func nodeTokens(of users: [UserID]) async throws -> [String] {
        try await BenchTokens(directory: nodeDirectory).tokens(for: users)
    }

    /// Starts nodes on one database and one bus, runs the body, and ends them.
    func withNodes<T>(_ count: Int, _ body: (ClusterMeter) throws -> T) throws -> T {
        let settings = ["--database", services.databaseURL, "--bus", services.busURL]
        var nodes: [BenchServer] = []
        defer { for node in nodes { node.end() } }
        for number in 1...count {
            nodes.append(try BenchServer(directory: nodeDirectory, settings: settings, name: "node-\(number)"))
        }
        return try body(ClusterMeter(nodes: nodes, services: services))
    }

    /// Starts a single server on SQLite.
    func withServer<T>(_ body: (ClusterMeter) throws -> T) throws -> T {
        let server = try BenchServer(directory: aloneDirectory)
        defer { server.end() }
        return try body(ClusterMeter(nodes: [server], services: services))
    }

    /// Connects users to a node, in their order.
    func connect(_ loop: LoadLoop, to node: BenchServer, users: some Sequence<Int>, isAlone: Bool = false) throws {
        let tokens = isAlone ? aloneTokens : nodeTokens
        try loop.connect(port: node.port, tokens: users.map { tokens[$0] })
    }
}
#endif
