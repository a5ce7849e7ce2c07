import Foundation
import Roost
import RoostAPI

/// Measures an app that shows one channel while very many messages arrive in it, at the beginning and at the end.
///
/// The SDK is in this process, and its CPU time is this process's, without that of the thread whose bare socket writes the messages.
struct OpenChatBenchmark: Benchmark {
    static let name = "open chat"
    private let user = UserID("reader")
    private let writer = UserID("writer")
    private let channel = ChannelID("busy")
    private let rounds = 4

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        let count = scale.pick(5000, quick: 2000, smoke: 40)
        try Seed.fill(directory) { seed in
            try seed.addUsers([user, writer])
            try seed.forEach([channel]) { try $0.perform(CreateChannel(channel: $1, users: [user]), as: writer) }
            try seed.forEach(Array(0..<50)) { batch, number in
                let message = SendMessage(channel: channel, clientId: ClientID("\(number)"), text: SampleText.message)
                try batch.perform(message, as: writer)
            }
        }
        let tokens = try await BenchTokens(directory: directory).tokens(for: [user, writer])
        let server = try BenchServer(directory: directory)
        defer { server.end() }
        guard let url = URL(string: "http://127.0.0.1:\(server.port)") else { throw BenchFailure("the port gives no address") }
        let configuration = Chat.Configuration(storage: .directory(directory.appending(path: "client")))
        let chat = Chat(url: url, user: user, configuration: configuration) { tokens[0] }
        try await chat.connect()
        let list = await chat.channel(channel).messages()
        for await _ in await list.updates where await list.items.count >= 30 { break }
        var newest = await list.items.last?.message?.seq ?? 0

        var burst = MessageBurst(port: server.port, token: tokens[1])
        var perMessage: [Double] = []
        var residentBytes: [Double] = []
        for _ in 0..<rounds {
            newest += Int64(count)
            let startCPU = Clock.processCPU() - burst.cpuTime
            try await show(count, upTo: newest, in: list, &burst)
            perMessage.append(Double(Clock.processCPU() - burst.cpuTime - startCPU) / 1000 / Double(count))
            residentBytes.append(ProcessUsage(of: getpid()).residentBytes)
        }
        // The watcher itself takes CPU time.
        let turns = MainActorTurns()
        try await show(count, upTo: newest + Int64(count), in: list, &burst)
        let longest = turns.end()
        await chat.disconnect()
        return [
            Figure("CPU of the app per message, the first \(count)", perMessage[0], "µs", goals: [.atMost(100)]),
            Figure(
                "CPU of the app per message, the last of \(rounds * count)", perMessage[rounds - 1], "µs", goals: [.atMost(100)]),
            Figure(
                "resident memory gained meanwhile", (residentBytes[rounds - 1] - residentBytes[0]) / 1e6, "MB", goals: [.atMost(8)]),
            Figure("longest turn of the main actor, CPU", longest.cpuMilliseconds, "ms", goals: [.atMost(4)]),
            Figure("longest wait for the main actor", longest.waitMilliseconds, "ms", goals: [.atMost(16)]),
        ]
    }

    /// Sends messages, and waits until the list shows the last of them.
    private func show(_ count: Int, upTo newest: Seq, in list: MessageList, _ burst: inout MessageBurst) async throws {
        try await burst.send(to: Array(repeating: channel, count: count))
        for await _ in await list.updates where await list.items.last?.message?.seq == newest { break }
    }
}
