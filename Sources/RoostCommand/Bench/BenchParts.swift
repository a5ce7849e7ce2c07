import ArgumentParser
import RoostBench

struct BenchAll: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "all", abstract: "All benchmarks that take minutes and need no other program, one after another.")
    @OptionGroup var options: BenchOptions

    func run() async throws { try await options.report(.all) }
}

struct BenchFanout: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fanout", abstract: "One channel whose messages go to many sockets.")
    @Option(help: "Sockets of members of the channel.") var sockets = BenchPart.Standard.fanoutSockets
    @Flag(
        help:
            "Also run the same load, with as many bytes, on Redis, NATS and mosquitto: those that are installed, as packaged by Debian."
    )
    var peers = false
    @OptionGroup var options: BenchOptions

    func validate() throws { try BenchCount.require(sockets, of: "--sockets", in: BenchCount.sockets) }

    func run() async throws { try await options.report(.fanout(sockets: sockets, hasPeers: peers)) }
}

struct BenchSend: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "send", abstract: "Durable sends over 50 channels.")
    @OptionGroup var options: BenchOptions

    func run() async throws { try await options.report(.send) }
}

struct BenchLatency: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "latency", abstract: "Acknowledgement latency at 1,000 sends a second, up to the maximum.")
    @OptionGroup var options: BenchOptions

    func run() async throws { try await options.report(.latency) }
}

struct BenchSpread: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "spread", abstract: "Sends over 1 to 10,000 channels of a database with 2,000,000 messages.")
    @OptionGroup var options: BenchOptions

    func run() async throws { try await options.report(.spread) }
}

struct BenchMixed: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mixed", abstract: "2,000 users who send, mark as read and open channels, all connected.")
    @OptionGroup var options: BenchOptions

    func run() async throws { try await options.report(.mixed) }
}

struct BenchStorm: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "storm", abstract: "A server is killed, and all of its clients reconnect at once.")
    @Option(help: "Number of clients. This process and the server each need as many file descriptors.")
    var clients = BenchPart.Standard.idleSockets
    @OptionGroup var options: BenchOptions

    func validate() throws { try BenchCount.require(clients, of: "--clients", in: BenchCount.sockets) }

    func run() async throws { try await options.report(.storm(clients: clients)) }
}

struct BenchIdle: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "idle", abstract: "Authenticated connections that do nothing.")
    @Option(help: "Connections to hold. This process and the server each need as many file descriptors.")
    var sockets = BenchPart.Standard.idleSockets
    @OptionGroup var options: BenchOptions

    func validate() throws { try BenchCount.require(sockets, of: "--sockets", in: BenchCount.sockets) }

    func run() async throws { try await options.report(.idle(sockets: sockets)) }
}

struct BenchStart: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "start", abstract: "From the start of the process to ready.")
    @Option(help: "Messages in the directory.") var messages = BenchPart.Standard.startMessages
    @OptionGroup var options: BenchOptions

    func validate() throws { try BenchCount.require(messages, of: "--messages", in: BenchCount.messages) }

    func run() async throws { try await options.report(.start(messages: messages)) }
}

struct BenchHistory: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "history", abstract: "Pages of 50 at random positions in a long channel.")
    @OptionGroup var options: BenchOptions

    func run() async throws { try await options.report(.history) }
}

struct BenchMessages: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "messages", abstract: "Messages with fields and mentions, edits, and pages by time, id and filter.")
    @OptionGroup var options: BenchOptions

    func run() async throws { try await options.report(.messages) }
}

struct BenchLive: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "live", abstract: "Typing and reading by 1,000 members, sockets that start and stop watching, and new names.")
    @Option(help: "Sockets that watch. This process and the server each need as many file descriptors.")
    var sockets = BenchPart.Standard.idleSockets
    @OptionGroup var options: BenchOptions

    func validate() throws {
        try BenchCount.require(sockets, of: "--sockets", in: BenchPart.liveSocketsMin...BenchCount.sockets.upperBound)
    }

    func run() async throws { try await options.report(.live(sockets: sockets)) }
}

struct BenchResume: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Coming back to 1,000 channels with 500 missed messages.")
    @OptionGroup var options: BenchOptions

    func run() async throws { try await options.report(.resume) }
}

struct BenchChannels: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "channels", abstract: "A channel of 300,000 members, and a user in 10,000 channels.")
    @OptionGroup var options: BenchOptions

    func run() async throws { try await options.report(.channels) }
}

struct BenchSDK: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sdk", abstract: "An app's list of 10,000 channels, and a chat that grows to 20,000 messages.")
    @OptionGroup var options: BenchOptions

    func run() async throws { try await options.report(.sdk) }
}

struct BenchEffects: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "effects", abstract: "Scheduled effects: what one adds to the cost of a send, and how late they run.")
    @Option(help: "Effects that are waiting meanwhile.") var waiting = BenchPart.Standard.effectsWaiting
    @OptionGroup var options: BenchOptions

    func validate() throws { try BenchCount.require(waiting, of: "--waiting", in: BenchCount.waitingEffects) }

    func run() async throws { try await options.report(.effects(waiting: waiting)) }
}

struct BenchHostile: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "hostile", abstract: "What hostile sockets cost a server and its other clients.")
    @Option(help: "Hostile sockets at once.") var sockets = BenchPart.Standard.hostileSockets
    @OptionGroup var options: BenchOptions

    func validate() throws { try BenchCount.require(sockets, of: "--sockets", in: BenchCount.sockets) }

    func run() async throws { try await options.report(.hostile(sockets: sockets)) }
}

struct BenchBackup: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup", abstract: "Backups of a server under load, and what is restored from them.")
    @Option(help: "Messages in the database.") var messages = BenchPart.Standard.backupMessages
    @OptionGroup var options: BenchOptions

    func validate() throws { try BenchCount.require(messages, of: "--messages", in: BenchCount.messages) }

    func run() async throws { try await options.report(.backup(messages: messages)) }
}

struct BenchCluster: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cluster", abstract: "One to three nodes on PostgreSQL and NATS, beside pgbench and SQLite.",
        discussion: """
            Starts a PostgreSQL server and a NATS server of its own, on this machine and on free ports, unless others are given. The \
            floor of sends is pgbench, which runs the statements of a send against the same server, in batches of the same size.
            """)
    @Option(
        help:
            "A PostgreSQL database to use, as postgres://user@host/name. No server may be using it, and what the benchmark stores stays there."
    )
    var database: String?
    @Option(help: "A NATS server to use, as nats://host:4222.") var bus: String?
    @Option(help: "Seconds of each measurement. The default is 10, and 3 with --quick.") var seconds: Int?
    @Option(help: "Sockets of members of the channel whose messages go to many.") var sockets = BenchPart.Standard.clusterSockets
    @Option(help: "Connections that do nothing, on one node. The default is 10000, and 1000 with --quick.") var idle: Int?
    @Option(parsing: .upToNextOption, help: "Only some parts: send, fanout, nodes, crossing, idle, spread, effects.")
    var only: [BenchPart.ClusterPart] = []
    @OptionGroup var options: BenchOptions

    func validate() throws {
        if let seconds { try BenchCount.require(seconds, of: "--seconds", in: 1...3600) }
        if let idle { try BenchCount.require(idle, of: "--idle", in: BenchCount.sockets) }
        try BenchCount.require(sockets, of: "--sockets", in: BenchPart.clusterSocketsMin...10_000)
    }

    func run() async throws {
        try await options.report(
            .cluster(only, database: database, bus: bus, seconds: seconds.map(Double.init), sockets: sockets, idle: idle))
    }
}

extension BenchPart.ClusterPart: ExpressibleByArgument {}

/// The process on which the floor of fan-out is measured.
struct FloorSocketsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "floor-sockets", abstract: "The floor of fan-out.", shouldDisplay: false)
    @Option var sockets: Int
    @Option(help: "Bytes of one write.") var bytes: Int

    func run() throws { try FloorSockets.serve(sockets: sockets, bytes: bytes) }
}
