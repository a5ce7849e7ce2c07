import Foundation
import Roost
import RoostAPI

/// Measures an app's list of 10,000 channels: its first rows from the store, without a connection, and 1,000 incoming messages.
///
/// The SDK is in this process. Its CPU time is this process's, in which little else happens: one bare socket writes the messages.
struct ClientListBenchmark: Benchmark {
    static let name = "client list"
    private let user = UserID("reader")
    private let writer = UserID("writer")
    private let firstRows = 50

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        let eventCount = scale.pick(1000, quick: 1000, smoke: 40)
        let channels = try ChannelListWorld.fill(
            directory, user: user, writer: writer, count: scale.pick(10_000, quick: 2000, smoke: 60))
        let tokens = try await BenchTokens(directory: directory).tokens(for: [user, writer])
        let server = try BenchServer(directory: directory, settings: ChannelListWorld.settings)
        defer { server.end() }
        guard let url = URL(string: "http://127.0.0.1:\(server.port)") else { throw BenchFailure("the port makes no address") }
        let store = directory.appending(path: "client")
        func chat() -> Chat {
            Chat(url: url, user: user, configuration: Chat.Configuration(storage: .directory(store))) { tokens[0] }
        }

        let first = chat()
        let newest = await first.channels(matching: ChannelQuery(), pageSize: firstRows)
        let (start, startCPU) = (Clock.now(), Clock.processCPU())
        async let connecting: Void = first.connect()
        for await update in await newest.updates where update.items.count == firstRows { break }
        let newestMilliseconds = Double(Clock.now() - start) / 1e6
        try await connecting
        let (resumeMilliseconds, resumeCPU) = (Double(Clock.now() - start) / 1e6, Double(Clock.processCPU() - startCPU) / 1e9)
        let unread = channels.count * ChannelListWorld.messagesPerChannel
        let whole = await first.channels()
        for await _ in await whole.updates where await whole.totalUnreadCount == unread { break }

        let loop = LoadLoop()
        try loop.connect(port: server.port, tokens: [tokens[1]])
        let before = ProcessUsage(of: getpid())
        let written = Clock.now()
        for channel in channels.shuffled().prefix(eventCount) {
            _ = loop.sockets[0].sendMessage(to: channel.rawValue, text: SampleText.message)
        }
        var answered = 0
        loop.onFrame = { _, frame, _ in if case .reply = frame { answered += 1 } }
        try loop.run(timeout: 60) { answered == eventCount }
        for await _ in await whole.updates where await whole.totalUnreadCount == unread + eventCount { break }
        let events = (
            cpu: ProcessUsage(of: getpid()).cpuMicroseconds(since: before) / 1000, wall: Double(Clock.now() - written) / 1e6
        )
        loop.closeAll()
        await first.disconnect()

        let second = chat()
        let opened = Clock.now()
        let list = await second.channels(matching: ChannelQuery(), pageSize: firstRows)
        for await update in await list.updates where update.items.count == firstRows { break }
        let openMilliseconds = Double(Clock.now() - opened) / 1e6
        return [
            Figure("first connection with \(channels.count) channels", resumeMilliseconds / 1000, "s", goals: [.atMost(2)]),
            Figure("the same, CPU of the app", resumeCPU, "s", goals: [.atMost(1.1)]),
            Figure("the same, until the newest \(firstRows) are shown", newestMilliseconds, "ms", goals: [.atMost(300)]),
            Figure("first \(firstRows) rows out of the store", openMilliseconds, "ms", goals: [.atMost(10)]),
            Figure("\(eventCount) messages into the list, CPU of the app", events.cpu, "ms", goals: [.atMost(120)]),
            Figure("the same, from the first sent to the last shown", events.wall, "ms"),
        ]
    }
}

/// One user in very many channels, each with a few messages that are unread.
enum ChannelListWorld {
    static let messagesPerChannel = 3
    static let settings = ["--channels-per-user", "\(Limits.channelsPerUserMax)"]

    static func fill(_ directory: URL, user: UserID, writer: UserID, count: Int) throws -> [ChannelID] {
        let channels = (0..<count).map { ChannelID("channel-\($0)") }
        try Seed.fill(directory) { seed in
            seed.options.channelsPerUser = Limits.channelsPerUserMax
            try seed.addUsers([user, writer])
            try seed.forEach(channels) { batch, channel in
                try batch.perform(CreateChannel(channel: channel, displayName: "Name of \(channel)", users: [user]), as: writer)
            }
            for round in 0..<messagesPerChannel {
                try seed.forEach(channels.shuffled()) { batch, channel in
                    let message = SendMessage(channel: channel, clientId: ClientID("\(round)"), text: SampleText.message)
                    try batch.perform(message, as: writer)
                }
            }
        }
        return channels
    }
}
