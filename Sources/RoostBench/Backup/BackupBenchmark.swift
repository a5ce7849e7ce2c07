import Foundation
import RoostAPI
import RoostCore
import RoostServer

/// Measures how a backup affects senders, and checks that the restored database equals the original.
///
/// Senders keep one pace, alternating between a backup and none. The floor is the time without one.
struct BackupBenchmark: Benchmark {
    static let name = "backup"
    var messageCount = 1_000_000

    private let users = (0..<21).map { UserID("user-\($0)") }

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        let count = scale.pick(messageCount, quick: messageCount / 10, smoke: 1000)
        let data = directory.appending(path: "data")
        try fill(data, count)
        let tokens = try await BenchTokens(directory: data).tokens(for: users)
        let server = try BenchServer(directory: data)
        defer { server.end() }
        let loop = LoadLoop()
        try loop.connect(port: server.port, tokens: tokens)
        let load = PacedLoad(
            channels: users.map { "channel-of-\($0.rawValue)" }, sendsPerSecond: scale.pick(500, quick: 500, smoke: 100),
            pagesPerSecond: 0)
        var warm = PacedLoad.Result()
        try load.run(loop, into: &warm, seconds: scale.pick(5, quick: 2, smoke: 0.2))

        var (with, without) = (PacedLoad.Result(), PacedLoad.Result())
        var seconds: [Double] = []
        var last = directory
        var acknowledged = warm.sends.count
        for round in 0..<scale.pick(5, quick: 3, smoke: 1) {
            if round > 0 { try FileManager.default.removeItem(at: last) }
            last = directory.appending(path: "backup-\(round)")
            acknowledged = warm.sends.count + with.sends.count + without.sends.count
            let start = Clock.now()
            let backup = try BackupProcess(of: data, in: last, log: directory)
            try load.run(loop, into: &with) { backup.hasEnded }
            try backup.requireSuccess()
            seconds.append(Double(Clock.now() - start) / 1e9)
            try load.run(loop, into: &without, seconds: max(0.3, seconds[round]))
        }
        // The last backup is of an idle server: it must match to the last row.
        let quiet = directory.appending(path: "backup-at-rest")
        try load.run(loop, into: &warm, seconds: 0)
        let backup = try BackupProcess(of: data, in: quiet, log: directory)
        try loop.run(timeout: 600) { backup.hasEnded }
        try backup.requireSuccess()
        // Before the clients disconnect: the server would then store when they were last online.
        server.kill()
        loop.closeAll()

        let (underLoad, restored) = (directory.appending(path: "restored-0"), directory.appending(path: "restored-1"))
        _ = try await Backup.restore(last, to: underLoad, secret: .backup)
        try FileManager.default.removeItem(at: last)
        let start = Clock.now()
        _ = try await Backup.restore(quiet, to: restored, secret: .backup)
        let restoreSeconds = Double(Clock.now() - start) / 1e9
        let missing = try DatabaseComparison(data, underLoad).missingMessages(least: count + acknowledged)
        let (rows, different) = try DatabaseComparison(data, restored).differences()
        return [
            Figure(
                "sends' p99 while a backup is made", with.sends.p99 / 1000, "ms", floor: without.sends.p99 / 1000,
                goals: [.ratioAtMost(1.5)]),
            Figure("sends' p50 while a backup is made", with.sends.median / 1000, "ms", floor: without.sends.median / 1000),
            Figure("a backup of \(count) messages", seconds.sorted()[seconds.count / 2], "s"),
            Figure("restoring it", restoreSeconds, "s"),
            Figure("messages of a backup under load that differ or are missing", Double(missing), "", goals: [.atMost(0)]),
            Figure("rows compared after restoring", Double(rows), ""),
            Figure("rows that differ", Double(different), "", goals: [.atMost(0)]),
        ]
    }

    private func fill(_ directory: URL, _ count: Int) throws {
        try Seed.fill(directory) { seed in
            try seed.addUsers(users)
            try seed.forEach(users) { try $0.perform(CreateChannel(channel: ChannelID("channel-of-\($1.rawValue)")), as: $1) }
            try seed.forEach(0..<count) { batch, number in
                let user = users[number % users.count]
                let send = SendMessage(
                    channel: ChannelID("channel-of-\(user.rawValue)"), clientId: ClientID("seed-\(number)"),
                    text: SampleText.message)
                try batch.perform(send, as: user)
            }
        }
    }
}

/// `roost backup`, run as an operator runs it.
private final class BackupProcess {
    private let process: ChildProcess
    private let errors: URL

    init(of data: URL, in directory: URL, log: URL) throws {
        errors = log.appending(path: "\(directory.lastPathComponent).log")
        _ = FileManager.default.createFile(atPath: errors.path, contents: nil)
        process = try ChildProcess(
            ["backup", directory.path, "--data", data.path, "--with-secret"], errors: try FileHandle(forWritingTo: errors))
    }

    var hasEnded: Bool { !process.isRunning }

    func requireSuccess() throws {
        guard process.status != 0 else { return }
        throw BenchFailure("a backup failed: \((try? String(contentsOf: errors, encoding: .utf8)) ?? "")")
    }
}
