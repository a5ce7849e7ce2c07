#if Cluster
import Foundation
import RoostAPI
import RoostServer
import RoostTestSupport
import Synchronization

/// Several nodes in this process, on one PostgreSQL and one NATS server.
final class TestCluster: Sendable {
    let postgres: PostgreSQLServer
    let nats: NATSServer
    let database: String
    let directory: URL
    let servers: [TestServer]
    private let sockets = Mutex<[RawSocket]>([])

    /// Runs a test with nodes, and ends them whatever its outcome.
    static func run(
        _ count: Int, on postgres: PostgreSQLServer? = nil, effects: EffectSettings? = nil, pushes: PushSender? = nil,
        options: AppOptions = AppOptions(), _ body: (TestCluster) async throws -> Void
    ) async throws {
        let cluster = try await TestCluster(count, on: postgres ?? .shared, effects, pushes, options)
        do {
            try await body(cluster)
        } catch {
            await cluster.end()
            throw error
        }
        await cluster.end()
    }

    private init(
        _ count: Int, on postgres: PostgreSQLServer, _ effects: EffectSettings?, _ pushes: PushSender?, _ options: AppOptions
    ) async throws {
        self.postgres = postgres
        nats = try await NATSServer.start()
        database = try postgres.makeDatabase()
        directory = TemporaryDirectory.make()
        var servers: [TestServer] = []
        for _ in 0..<count { servers.append(try await Self.node(directory, database, nats, effects, pushes, options)) }
        self.servers = servers
    }

    static func node(
        _ directory: URL, _ database: String, _ nats: NATSServer, _ effects: EffectSettings? = nil,
        _ pushes: PushSender? = nil, _ options: AppOptions = AppOptions()
    ) async throws -> TestServer {
        try await TestServer(directory: directory, options: options) {
            $0.database = database
            $0.bus = nats.url
            // On a busy machine a node may take longer than the timeout. Answers without a node are tested with the tests' own clock.
            $0.gatherTimeout = .seconds(10)
            $0.effects = effects ?? $0.effects
            $0.pushSender = pushes
        }
    }

    /// Waits until each node has heard of all others.
    func waitUntilAcquainted() async throws {
        for server in servers {
            try await eventually("the nodes hear of one another") {
                try await server.metric("roost_cluster_nodes") == servers.count
            }
        }
    }

    private func end() async {
        // A server that stops waits for its last socket.
        for socket in sockets.withLock({ $0 }) { await socket.close() }
        for server in servers { try? await server.stop() }
        await nats.stop()
        try? FileManager.default.removeItem(at: directory)
        postgres.giveBack(database)
    }

    func socket(_ user: UserID, role: AppRole = .user, at place: Int) async throws -> RawSocket {
        let socket = try await servers[place].socket(user, role: role)
        sockets.withLock { $0.append(socket) }
        return socket
    }

    /// A channel with an owner and members, made at the first node. The members needn't be known before.
    func makeChannel(_ channel: ChannelID, owner: UserID, members: [UserID] = []) async throws {
        let admin = try await servers[0].socket("admin", role: .admin)
        for user in members { try await admin.call(UpsertUser(user: user)) }
        await admin.close()
        let socket = try await socket(owner, at: 0)
        try await socket.call(CreateChannel(channel: channel, users: members))
        await socket.close()
    }
}

extension TestServer {
    func metric(_ name: String) async throws -> Int? {
        let text = try await request("GET", "/metrics").body
        return text.split(separator: "\n").first { $0.hasPrefix("\(name) ") }.flatMap { Int($0.split(separator: " ")[1]) }
    }

    func status(_ path: String) async throws -> Int { try await request("GET", path).status }

    /// An operation over HTTP whose only fields are in its path.
    @discardableResult
    func post(_ path: String, as user: UserID) async throws -> Int {
        try await request("POST", path, token: try await token(user), headers: ["Content-Length: 0"]).status
    }
}

extension RawSocket {
    /// The next event of a stream; those of other streams are skipped.
    func event(of stream: StreamID, within deadline: Duration = .seconds(20)) async throws -> Event {
        while true {
            let event = try await nextEvent(within: deadline)
            if event.stream == stream { return event }
        }
    }

    /// The client ids of the next messages that events bring of a channel.
    func messages(_ count: Int, of channel: ChannelID) async throws -> [Message] {
        var messages: [Message] = []
        while messages.count < count { messages += try await event(of: .channel(channel)).rows.messages ?? [] }
        return messages
    }

    /// All events sent by now: a call's answer follows them.
    func eventsSoFar() async throws -> [Event] {
        try await call(GetMe())
        return events
    }
}
#endif
