import Foundation
import RoostAPI

/// A benchmark whose costs can be measured of any build of Roost: all that it needs it does as a client.
protocol ComparableBenchmark {
    /// Names of the costs, each with its unit.
    static var costs: [(name: String, unit: String)] { get }

    /// Starts a server on an empty directory and measures it once.
    ///
    /// - Returns: One value for each of ``costs``.
    func measure(_ program: URL?, in directory: URL, scale: BenchScale) async throws -> [Double]
}

/// One cost of two builds: the medians of several runs, and their ratio.
struct ComparedCost: Encodable {
    let name: String
    let unit: String
    /// Of this build, in the order of the runs.
    let runs: [Double]
    /// Of the other one.
    let otherRuns: [Double]

    var median: Double { Self.median(of: runs) }
    var otherMedian: Double { Self.median(of: otherRuns) }
    /// How much dearer this build is: 1.05 is five per cent.
    var ratio: Double { otherMedian > 0 ? median / otherMedian : .nan }

    private static func median(of values: [Double]) -> Double {
        let sorted = values.sorted()
        guard !sorted.isEmpty else { return .nan }
        let middle = sorted.count / 2
        return sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
    }

    private enum CodingKeys: String, CodingKey { case name, unit, runs, otherRuns, median, otherMedian, ratio }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(name, forKey: .name)
        try container.encode(unit, forKey: .unit)
        try container.encode(runs, forKey: .runs)
        try container.encode(otherRuns, forKey: .otherRuns)
        try container.encode(median, forKey: .median)
        try container.encode(otherMedian, forKey: .otherMedian)
        try container.encode(ratio, forKey: .ratio)
    }
}

/// Two builds beside one another, on one machine.
package struct ComparisonReport: Encodable {
    let against: String
    let machine: Machine
    let costs: [ComparedCost]

    /// The machine of the figures.
    package var machineDescription: String { machine.description }

    /// The rows of a table, its head first.
    package var rows: [[String]] {
        let rows = costs.map { cost in
            let spread = { (values: [Double]) in
                "\(Report.number(values.min() ?? .nan)) to \(Report.number(values.max() ?? .nan))"
            }
            return [
                cost.name, Report.number(cost.median), spread(cost.runs), Report.number(cost.otherMedian), spread(cost.otherRuns),
                cost.unit,
                String(format: "%.3f", cost.ratio),
            ]
        }
        return [["", "this build", "runs", "the other", "runs", "unit", "ratio"]] + rows
    }
}

/// A server of some build with people and channels that clients made.
struct ComparedServer {
    let server: BenchServer
    let loop: LoadLoop

    /// Starts it, connects users, and has each be in a channel: the first of those who share one makes it, the others join.
    init(_ program: URL?, in directory: URL, users: Int, channel: (Int) -> String) async throws {
        server = try BenchServer(directory: directory, program: program)
        // A server makes its secret at its first start.
        let tokens = try await BenchTokens(directory: directory).tokens(for: (0..<users).map { UserID("user-\($0)") })
        loop = LoadLoop()
        try loop.connect(port: server.port, tokens: tokens)
        var made: Set<String> = []
        let makers = (0..<users).filter { made.insert(channel($0)).inserted }
        try callAll(makers) { CreateChannel(channel: ChannelID(channel($0)), type: "community") }
        try callAll(Array(Set(0..<users).subtracting(makers))) { JoinChannel(channel: ChannelID(channel($0))) }
    }

    private func callAll<Call: RoostAPI.Operation>(_ users: [Int], _ call: (Int) -> Call) throws {
        var answered = 0
        loop.onFrame = { _, frame, _ in if case .reply = frame { answered += 1 } }
        defer { loop.onFrame = { _, _, _ in } }
        for start in stride(from: 0, to: users.count, by: 500) {
            let part = users[start..<min(start + 500, users.count)]
            for user in part { _ = try loop.sockets[user].call(call(user)) }
            let expected = start + part.count
            try loop.run(timeout: 60) { answered >= expected }
        }
        // The events of joining aren't measured.
        try loop.run(for: 0.2)
    }

    func end() {
        loop.closeAll()
        server.end()
    }
}

extension SendBenchmark: ComparableBenchmark {
    static var costs: [(name: String, unit: String)] { [("server CPU per send", "µs")] }

    func measure(_ program: URL?, in directory: URL, scale: BenchScale) async throws -> [Double] {
        let senders = 50
        let compared = try await ComparedServer(program, in: directory, users: senders) { "channel-\($0)" }
        defer { compared.end() }
        let load = SendLoad(senders: (0..<senders).map { .init(socket: $0, channel: "channel-\($0)") }, window: 32)
        _ = try load.run(compared.loop, seconds: scale.pick(1, quick: 0.5, smoke: 0.1))
        let before = compared.server.usage
        let result = try load.run(compared.loop, seconds: scale.pick(6, quick: 3, smoke: 0.2))
        return [compared.server.usage.cpuMicroseconds(since: before) / Double(result.sent)]
    }
}

extension FanoutBenchmark: ComparableBenchmark {
    static var costs: [(name: String, unit: String)] {
        [("server CPU per delivery, 8 under way", "µs"), ("server CPU per delivery, single", "µs")]
    }

    func measure(_ program: URL?, in directory: URL, scale: BenchScale) async throws -> [Double] {
        let sockets = scale.pick(min(500, socketCount), quick: 200, smoke: 20)
        try OpenFiles.require(sockets: sockets)
        let compared = try await ComparedServer(program, in: directory, users: sockets) { _ in "fanout" }
        defer { compared.end() }
        let load = FanoutLoad(channel: "fanout")
        _ = try load.run(compared.loop, compared.server, window: 1, seconds: scale.warmUpSeconds)
        return try [8, 1].map { window in
            try load.run(compared.loop, compared.server, window: window, seconds: scale.pick(4, quick: 2, smoke: 0.2))
                .cpuMicroseconds
        }
    }
}

extension IdleBenchmark: ComparableBenchmark {
    static var costs: [(name: String, unit: String)] {
        [("RSS per idle connection", "KB"), ("server CPU per connection made", "µs")]
    }

    func measure(_ program: URL?, in directory: URL, scale: BenchScale) async throws -> [Double] {
        let sockets = scale.pick(min(5000, socketCount), quick: 1000, smoke: 20)
        try OpenFiles.require(sockets: sockets)
        // People and channels are made by a server that isn't the measured one: what it holds for that isn't the connections'.
        try await ComparedServer(program, in: directory, users: sockets) { "channel-\($0 / 100)" }.end()
        let tokens = try await BenchTokens(directory: directory).tokens(for: (0..<sockets).map { UserID("user-\($0)") })
        let server = try BenchServer(directory: directory, program: program)
        defer { server.end() }
        let loop = LoadLoop()
        defer { loop.closeAll() }
        let empty = server.usage
        try loop.connect(port: server.port, tokens: tokens)
        try loop.run(for: scale.pick(3, quick: 2, smoke: 0.2))
        let full = server.usage
        return [
            (full.residentBytes - empty.residentBytes) / Double(sockets) / 1000,
            full.cpuMicroseconds(since: empty) / Double(sockets),
        ]
    }
}
