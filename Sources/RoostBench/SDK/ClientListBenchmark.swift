import Foundation
import Observation
import Roost
import RoostAPI

/// Measures an app in 10,000 channels: its first connection, lists while 1,000 messages arrive, loading rows from the store at the next start, and
/// idling.
///
/// The SDK is in this process. Its CPU time is this process's, without that of the thread whose bare socket writes the messages. The floors are
/// SQLite alone, which writes the same messages and reads the same rows.
struct ClientListBenchmark: Benchmark {
    static let name = "client list"
    private let user = UserID("reader")
    private let writer = UserID("writer")
    private let firstRows = 50

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        let channels = try ChannelListWorld.fill(
            directory, user: user, writer: writer, count: scale.pick(10_000, quick: 2000, smoke: 60))
        let tokens = try await BenchTokens(directory: directory).tokens(for: [user, writer])
        let server = try BenchServer(directory: directory, settings: ChannelListWorld.settings)
        defer { server.end() }
        guard let url = URL(string: "http://127.0.0.1:\(server.port)") else { throw BenchFailure("the port gives no address") }
        let store = directory.appending(path: "client")
        func chat() -> Chat {
            Chat(url: url, user: user, configuration: Chat.Configuration(storage: .directory(store))) { tokens[0] }
        }

        let first = chat()
        var figures = try await firstConnection(of: first, channels.count)
        var burst = MessageBurst(port: server.port, token: tokens[1])
        let count = scale.pick(1000, quick: 1000, smoke: 40)
        let files = (cache: try FloorCache.file(in: store), copy: directory.appending(path: "floor.sqlite"))
        figures += try await messages(channels, count, into: first, from: &burst, files)
        figures.append(try await idle(first, seconds: scale.pick(30, quick: 10, smoke: 0.1)))
        await first.disconnect()
        figures += try await nextStart(of: chat(), files.cache)
        return figures
    }

    /// Connects an app without data that shows its newest channels.
    private func firstConnection(of chat: Chat, _ channelCount: Int) async throws -> [Figure] {
        let newest = await chat.channels(matching: ChannelQuery(), pageSize: firstRows)
        let (start, startCPU) = (Clock.now(), Clock.processCPU())
        async let connecting: Void = chat.connect()
        for await update in await newest.updates where update.items.count == firstRows { break }
        let newestMilliseconds = Double(Clock.now() - start) / 1e6
        try await connecting
        let (seconds, cpuSeconds) = (Double(Clock.now() - start) / 1e9, Double(Clock.processCPU() - startCPU) / 1e9)
        return [
            Figure("first connection with \(channelCount) channels", seconds, "s", goals: [.atMost(2)]),
            Figure("the same, CPU of the app", cpuSeconds, "s", goals: [.atMost(1.1)]),
            Figure("the same, until the newest \(firstRows) are shown", newestMilliseconds, "ms", goals: [.atMost(300)]),
        ]
    }

    /// Sends a message to each of some channels three times: into a list of all channels, into one whose turns are watched, and into a list that
    /// holds a page.
    private func messages(
        _ channels: [ChannelID], _ count: Int, into chat: Chat, from burst: inout MessageBurst, _ files: (cache: URL, copy: URL)
    ) async throws -> [Figure] {
        var unread = channels.count * ChannelListWorld.messagesPerChannel
        var costs: [BurstCost] = []
        var floor: Double?
        for (pageSize, isWatched) in [(Int.max, false), (Int.max, true), (firstRows, false)] {
            let list = await chat.channels(matching: ChannelQuery(), pageSize: pageSize)
            try await list.loaded()
            await chat.waitForUnread(unread)
            // The rest of the order follows the first rows.
            try await Task.sleep(for: .milliseconds(200))
            unread += count
            let written = Array(channels.shuffled().prefix(count))
            let copy = costs.isEmpty ? try FloorCache.Copy(of: files.cache, at: files.copy) : nil
            let transactions = try FloorCache.transactionCount(of: files.cache)
            let turns = isWatched ? MainActorTurns() : nil
            let (start, startCPU) = (Clock.now(), Clock.processCPU() - burst.cpuTime)
            try await burst.send(to: written)
            await chat.waitForUnread(unread)
            await list.waitForUnread(unread)
            costs.append(
                BurstCost(
                    cpuMilliseconds: Double(Clock.processCPU() - burst.cpuTime - startCPU) / 1e6,
                    milliseconds: Double(Clock.now() - start) / 1e6,
                    longest: turns?.end() ?? MainActorTurns.Longest()))
            if let copy {
                let made = try FloorCache.transactionCount(of: files.cache) &- transactions
                floor = try copy.write(count, newestOf: files.cache, transactions: Int(made))
            }
        }
        let (whole, watched, window) = (costs[0], costs[1].longest, costs[2])
        return [
            Figure(
                "\(count) messages into the list of all, CPU of the app", whole.cpuMilliseconds, "ms", floor: floor,
                goals: [.atMost(120)]),
            Figure("the same, from the first sent to the last shown", whole.milliseconds, "ms"),
            Figure("the same, longest turn of the main actor, CPU", watched.cpuMilliseconds, "ms", goals: [.atMost(4)]),
            Figure("the same, longest wait for the main actor", watched.waitMilliseconds, "ms", goals: [.atMost(16)]),
            Figure(
                "\(count) messages into a list of \(firstRows), CPU of the app", window.cpuMilliseconds, "ms",
                goals: [.atMost(110)]),
        ]
    }

    private struct BurstCost {
        var cpuMilliseconds: Double
        var milliseconds: Double
        var longest: MainActorTurns.Longest
    }

    /// Idles for a while, connected, with a list on the screen.
    private func idle(_ chat: Chat, seconds: Double) async throws -> Figure {
        let list = await chat.channels(matching: ChannelQuery(), pageSize: firstRows)
        try await list.loaded()
        // Earlier work is done by then.
        try await Task.sleep(for: .seconds(min(2, seconds)))
        let startCPU = Clock.processCPU()
        try await Task.sleep(for: .seconds(seconds))
        let share = Double(Clock.processCPU() - startCPU) / (seconds * 1e9) * 100
        return withExtendedLifetime(list) {
            Figure("connected and idle, share of a core", share, "%", goals: [.atMost(0.02)])
        }
    }

    /// Shows the first rows of an existing store, before any network access.
    private func nextStart(of chat: Chat, _ cache: URL) async throws -> [Figure] {
        let (start, startCPU) = (Clock.now(), Clock.processCPU())
        let list = await chat.channels(matching: ChannelQuery(), pageSize: firstRows)
        for await update in await list.updates where update.items.count == firstRows { break }
        let (milliseconds, cpuMilliseconds) = (Double(Clock.now() - start) / 1e6, Double(Clock.processCPU() - startCPU) / 1e6)
        return [
            Figure("first \(firstRows) rows out of the store", milliseconds, "ms", goals: [.atMost(10)]),
            Figure(
                "first \(firstRows) rows out of the store, CPU of the app", cpuMilliseconds, "ms",
                floor: try FloorCache.firstRows(firstRows, of: cache)),
        ]
    }
}

extension Chat {
    /// Returns once the user has this many unread messages.
    fileprivate func waitForUnread(_ count: Int) async {
        for await total in await unread.updates where total.unreadCount == count { break }
    }
}

extension ChannelList {
    /// Returns once the list's channels have this many unread messages.
    fileprivate func waitForUnread(_ count: Int) async {
        while totalUnreadCount != count {
            await withCheckedContinuation { continuation in
                withObservationTracking {
                    _ = totalUnreadCount
                } onChange: {
                    continuation.resume()
                }
            }
        }
    }
}
