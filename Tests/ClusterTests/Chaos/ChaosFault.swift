#if Cluster
import Foundation
import RoostTestSupport

/// Faults of nodes, the bus, the database and the connections between them.
enum ChaosFault: String, CaseIterable, Sendable {
    case killNode, stopNode, freezeNode, slowNode, clockAhead, clockBehind
    case killBus, freezeBus, cutBus, loseSentToBus, loseReceivedFromBus
    case killDatabase, cutDatabase, silenceDatabase, loseSentToDatabase, loseReceivedFromDatabase
    case freezeBackends, endBackends, lockRows

    private var isOfBus: Bool { [.killBus, .freezeBus, .cutBus, .loseSentToBus, .loseReceivedFromBus].contains(self) }
    private var isOfClock: Bool { [.clockAhead, .clockBehind].contains(self) }

    /// The faults possible here. Clocks are skewed by libfaketime, if it is installed.
    static func possible(hasBus: Bool) -> [ChaosFault] {
        allCases.filter { ($0.isOfBus ? hasBus : true) && ($0.isOfClock ? fakeTime != nil : true) }
    }

    private static let fakeTime: String? = [
        "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1", "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    ].first { FileManager.default.fileExists(atPath: $0) }

    /// The variables that offset a process's clock. None if libfaketime isn't installed.
    static func environment(clockOffBy offset: String) -> [String: String] {
        guard let fakeTime else { return [:] }
        return ["LD_PRELOAD": fakeTime, "FAKETIME": offset, "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_NO_CACHE": "1"]
    }

    /// Causes the fault, and undoes it after a moment.
    func happen(to nodes: NodeProcesses, at place: Int, _ random: inout SeededGenerator) async throws {
        let moment = Duration.milliseconds(random.number(200...1500))
        switch self {
        case .killNode:
            try await nodes.killNode(place)
            try await nodes.startNode(place)
        case .stopNode:
            let status = try await nodes.stopNode(place)
            guard status == 0 else { throw Missed("a stopped node that ends with 0, not \(status.map(String.init) ?? "none")") }
            try await nodes.startNode(place)
        case .clockAhead: try await skew("+2h", nodes, place)
        case .clockBehind: try await skew("-2h", nodes, place)
        case .freezeNode: try await frozen(nodes, place, for: moment)
        case .slowNode: for _ in 0..<10 { try await frozen(nodes, place, for: .milliseconds(90)) }
        case .killBus:
            await nodes.nats.killNow()
            try await Task.sleep(for: moment)
            try await nodes.nats.startAgain()
        case .freezeBus:
            nodes.nats.freeze()
            try await Task.sleep(for: moment)
            nodes.nats.thaw()
        case .cutBus: try await switching(nodes.ways[place].busProxy, to: .refuse, for: moment)
        case .loseSentToBus: try await switching(nodes.ways[place].busProxy, to: .swallowSent, for: moment)
        case .loseReceivedFromBus: try await switching(nodes.ways[place].busProxy, to: .swallowReceived, for: moment)
        case .killDatabase:
            try nodes.postgres.killNow()
            try await Task.sleep(for: moment)
            try nodes.postgres.startAgain()
        case .cutDatabase: try await switching(nodes.ways[place].databaseProxy, to: .refuse, for: moment)
        case .silenceDatabase: try await switching(nodes.ways[place].databaseProxy, to: .swallow, for: moment)
        case .loseSentToDatabase: try await switching(nodes.ways[place].databaseProxy, to: .swallowSent, for: moment)
        case .loseReceivedFromDatabase:
            try await switching(nodes.ways[place].databaseProxy, to: .swallowReceived, for: moment)
        case .freezeBackends:
            let backends = try nodes.rows("SELECT pid FROM pg_stat_activity WHERE application_name = 'roost'").compactMap {
                Int32($0)
            }
            let chosen = backends.shuffled(using: &random).prefix(3)
            for backend in chosen { kill(backend, SIGSTOP) }
            try await Task.sleep(for: moment)
            for backend in chosen { kill(backend, SIGCONT) }
        case .endBackends:
            _ = try nodes.rows(
                """
                SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'roost' AND pid % 2 = \(place % 2)
                """)
        case .lockRows:
            let seconds = Double(random.number(500...2500)) / 1000
            let digit = random.number(0...9)
            _ = try nodes.postgres.run(
                sql: [
                    "BEGIN",
                    "SELECT count(*) FROM (SELECT 1 FROM channel_heads WHERE channel_id LIKE '%\(digit)' FOR UPDATE) AS held",
                    "SELECT pg_sleep(\(seconds))", "COMMIT",
                ], in: nodes.database)
        }
    }

    private func skew(_ offset: String, _ nodes: NodeProcesses, _ place: Int) async throws {
        try await nodes.killNode(place)
        try await nodes.startNode(place, environment: Self.environment(clockOffBy: offset))
    }

    private func frozen(_ nodes: NodeProcesses, _ place: Int, for time: Duration) async throws {
        nodes.signal(SIGSTOP, to: place)
        try await Task.sleep(for: time)
        nodes.signal(SIGCONT, to: place)
        try await Task.sleep(for: .milliseconds(10))
    }

    private func switching(_ proxy: TCPProxy?, to mode: TCPProxy.Mode, for time: Duration) async throws {
        guard let proxy else { return }
        proxy.setMode(mode)
        if mode == .refuse { proxy.cutAll() }
        try await Task.sleep(for: time)
        proxy.setMode(.pass)
    }
}
#endif
