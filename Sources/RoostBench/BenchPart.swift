/// A part that `roost bench` can measure, or several of them.
package struct BenchPart {
    let benchmarks: [any Benchmark]

    private init(_ benchmarks: any Benchmark...) { self.benchmarks = benchmarks }
    private init(of parts: [BenchPart]) { benchmarks = parts.flatMap(\.benchmarks) }

    /// The default size of a part.
    package enum Standard {
        package static let fanoutSockets = 1000
        package static let idleSockets = 10_000
        package static let startMessages = 1_000_000
        package static let effectsWaiting = 1_000_000
        package static let hostileSockets = 5000
        package static let backupMessages = 1_000_000
        package static let clusterSockets = 1000
    }

    /// - Parameter hasPeers: Whether the same load also runs on those of Redis, NATS and mosquitto that are installed.
    package static func fanout(sockets: Int = Standard.fanoutSockets, hasPeers: Bool = false) -> BenchPart {
        .init(FanoutBenchmark(socketCount: sockets, hasPeers: hasPeers))
    }
    package static var send: BenchPart { .init(SendBenchmark()) }
    package static var latency: BenchPart { .init(LatencyBenchmark()) }
    package static var spread: BenchPart { .init(SpreadBenchmark()) }
    package static var mixed: BenchPart { .init(MixedBenchmark()) }
    package static func storm(clients: Int = Standard.idleSockets) -> BenchPart { .init(StormBenchmark(clientCount: clients)) }
    package static func idle(sockets: Int = Standard.idleSockets) -> BenchPart { .init(IdleBenchmark(socketCount: sockets)) }
    package static func start(messages: Int = Standard.startMessages) -> BenchPart { .init(StartBenchmark(messageCount: messages)) }
    package static var history: BenchPart { .init(HistoryBenchmark()) }
    package static var messages: BenchPart { .init(MessageFieldsBenchmark(), MessagePagesBenchmark()) }
    /// A quarter of the sockets watch the actions of the others, 50 at most.
    package static let liveSocketsMin = 4

    package static func live(sockets: Int = Standard.idleSockets) -> BenchPart {
        .init(
            LiveBenchmark(), WatchingBenchmark(socketCount: sockets), NamesBenchmark(),
            CrowdBenchmark(socketCount: sockets))
    }
    package static var resume: BenchPart { .init(ResumeBenchmark()) }
    package static var channels: BenchPart { .init(LargeChannelBenchmark(), ChannelListBenchmark()) }
    package static var sdk: BenchPart { .init(ClientListBenchmark(), OpenChatBenchmark()) }
    package static func effects(waiting: Int = Standard.effectsWaiting) -> BenchPart {
        .init(EffectsBenchmark(waitingCount: waiting))
    }
    package static func hostile(sockets: Int = Standard.hostileSockets) -> BenchPart {
        .init(HostileBenchmark(socketCount: sockets))
    }
    package static func backup(messages: Int = Standard.backupMessages) -> BenchPart {
        .init(BackupBenchmark(messageCount: messages))
    }

    /// The parts that run in minutes and need only this program.
    package static var all: BenchPart {
        BenchPart(of: [
            .fanout(), .send, .latency, .idle(), .start(), .history, .messages, .live(), .resume, .channels, .sdk, .effects(),
        ])
    }

    /// The channels of the other parts have this many members in total.
    package static let clusterSocketsMin = 150

    /// The parts of the cluster benchmark.
    package enum ClusterPart: String, CaseIterable, Sendable {
        case send, fanout, nodes, crossing, idle, spread, effects
    }

    /// Nodes on PostgreSQL and NATS. Throws in a build without them.
    ///
    /// - Parameters:
    ///   - database: The URL of a PostgreSQL database; nil to start a server.
    ///   - bus: The URL of a NATS server; nil to start one.
    ///   - seconds: The length of each measurement; nil for the scale's.
    ///   - idle: The number of idle connections; nil for the scale's.
    package static func cluster(
        _ parts: [ClusterPart], database: String?, bus: String?, seconds: Double?, sockets: Int, idle: Int?
    ) throws -> BenchPart {
        #if Cluster
        return .init(
            ClusterBenchmark(
                databaseURL: database, busURL: bus, seconds: seconds, socketCount: sockets, idleCount: idle,
                parts: parts.isEmpty ? ClusterPart.allCases : parts))
        #else
        throw BenchFailure(
            "this roost was built without PostgreSQL and NATS. Build it with them: "
                + "swift build -c release --product roost --traits Cluster --static-swift-stdlib")
        #endif
    }
}
