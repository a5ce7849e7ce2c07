import Foundation
import RoostAPI

/// The same sends over few and over many channels of a large database: each channel has its own pages, which have to be read, changed and written.
///
/// The floor is SQLite alone on a copy of the same file, with the same cache size, in batches of the server's size.
struct SpreadBenchmark: Benchmark {
    static let name = "spread"
    private let messageCount = 2_000_000
    private let senderCount = 50
    private let window = 32

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        let messageCount = scale.pick(messageCount, quick: 200_000, smoke: 400)
        let channelCounts = scale.pick([1, 50, 1000, 10_000], quick: [1, 50, 1000, 10_000], smoke: [1, 100])
        let channelCount = channelCounts.last ?? 1
        let users = (0..<senderCount).map { UserID("user-\($0)") }
        func owner(_ channel: Int) -> UserID { users[channel % senderCount] }
        try Seed.fill(directory) { seed in
            try seed.addUsers(users)
            try seed.forEach(0..<channelCount) { batch, number in
                try batch.perform(CreateChannel(channel: ChannelID("channel-\(number)")), as: owner(number))
            }
            try seed.forEach(0..<messageCount) { batch, number in
                let channel = number % channelCount
                try batch.perform(
                    SendMessage(
                        channel: ChannelID("channel-\(channel)"), clientId: ClientID("seed-\(number)"), text: SampleText.message),
                    as: owner(channel))
            }
        }
        let tokens = try await BenchTokens(directory: directory).tokens(for: users)
        let before = directory.appending(path: "floor-source.sqlite")
        try Disk.copy(directory.appending(path: "roost.sqlite"), to: before)
        let messagesPerChannel = Int64(messageCount / channelCount + 1)

        var figures: [Figure] = []
        for count in channelCounts {
            let measured = try measure(directory, tokens, channelCount: count, scale)
            let floor = try FloorInserts.measure(
                onCopyOf: before, after: messagesPerChannel, batchSize: Int((measured.batchSize ?? 256).rounded()),
                channelCount: count, userCount: senderCount, seconds: scale.pick(6, quick: 2, smoke: 0.1))
            let name = "\(count) channels"
            let isLargest = count == 10_000 && scale != .smoke
            figures += [
                Figure(
                    "\(name): acknowledged sends", measured.sendsPerSecond, "1/s", floor: floor.rowsPerSecond,
                    goals: isLargest ? [.ratioAtLeast(0.4)] : []),
                Figure(
                    "\(name): server CPU per send", measured.cpuMicroseconds, "µs", floor: floor.cpuMicrosecondsPerRow,
                    goals: isLargest ? [.atMost(42)] : []),
                Figure("\(name): acknowledgement p99", measured.late / 1000, "ms"),
            ]
        }
        return figures + (try readEverywhere(directory, tokens, channelCount: channelCount, messagesPerChannel, scale))
    }

    /// Returns what a reader's call of a number is: whether it is a send, and the place of its channel among the reader's.
    ///
    /// Sends are counted separately from the pages between them. By the call's number alone, every fourth of 200 channels would only be sent to,
    /// and the others only read.
    ///
    /// - Parameter step: The last of this many calls in a row is a send; nil for no sends.
    static func call(_ number: Int, channelCount: Int, sendingEvery step: Int?) -> (isSend: Bool, channel: Int) {
        let sendCount = step.map { number / $0 } ?? 0
        let isSend = step.map { number % $0 == $0 - 1 } ?? false
        // Steps that reach all channels.
        return (isSend, (isSend ? sendCount : number - sendCount) * 37 % channelCount)
    }

    /// Reads pages all over the database, which fills every page cache, again with a send as every fourth call, and measures the peak memory of the
    /// server meanwhile.
    private func readEverywhere(
        _ directory: URL, _ tokens: [String], channelCount: Int, _ messagesPerChannel: Int64, _ scale: BenchScale
    ) throws -> [Figure] {
        let server = try BenchServer(directory: directory)
        defer { server.end() }
        let loop = LoadLoop()
        defer { loop.closeAll() }
        try loop.connect(port: server.port, tokens: tokens)
        // Enough to send to each of a reader's 200 channels.
        let callCount = scale.pick(800, quick: 100, smoke: 4)
        /// CPU microseconds of a call. Each reader has other channels.
        func read(sendingEvery step: Int?) throws -> Double {
            var cpu = 0.0
            let readers = 0..<min(tokens.count, channelCount)
            for reader in readers {
                let own = Array(stride(from: reader, to: channelCount, by: senderCount))
                let load = CallLoad(loop: loop, server: server, socket: reader)
                cpu += try load.run(callCount, window: 8) { socket, number in
                    let (isSend, place) = Self.call(number, channelCount: own.count, sendingEvery: step)
                    let channel = "channel-\(own[place])"
                    if isSend {
                        _ = socket.sendMessage(to: channel, text: SampleText.message)
                    } else {
                        // Steps that reach all parts of a channel.
                        let before = 50 + Int64(number) * 7919 % messagesPerChannel
                        _ = try socket.call(ListMessages(channel: ChannelID(channel), before: before, limit: 50))
                    }
                }.cpuMicroseconds
            }
            return cpu / Double(callCount * readers.count)
        }
        let page = try read(sendingEvery: nil)
        _ = try read(sendingEvery: 4)
        return [
            Figure("server CPU per page of 50, anywhere", page, "µs"),
            // Since the server's start, whose memory is included.
            Figure(
                "resident memory at most, with sends between", try PeakMemory.bytes(server.identifier) / 1e6, "MB",
                goals: scale == .smoke ? [] : [.atMost(128)]),
        ]
    }

    private struct Measurement {
        var sendsPerSecond: Double
        var cpuMicroseconds: Double
        var late: Double
        var batchSize: Double?
    }

    private func measure(_ directory: URL, _ tokens: [String], channelCount: Int, _ scale: BenchScale) throws -> Measurement {
        let server = try BenchServer(directory: directory)
        defer { server.end() }
        let loop = LoadLoop()
        defer { loop.closeAll() }
        try loop.connect(port: server.port, tokens: tokens)
        let senders = (0..<min(senderCount, channelCount)).map { sender in
            SendLoad.Sender(
                socket: sender, channels: stride(from: sender, to: channelCount, by: senderCount).map { "channel-\($0)" })
        }
        let load = SendLoad(senders: senders, window: scale.pick(window, quick: window, smoke: 2))
        _ = try load.run(loop, seconds: scale.warmUpSeconds)
        let batches = BatchCounter(port: server.port)
        let before = server.usage
        let result = try load.run(loop, seconds: scale.pick(10, quick: 3, smoke: 0.2))
        return Measurement(
            sendsPerSecond: result.sendsPerSecond,
            cpuMicroseconds: server.usage.cpuMicroseconds(since: before) / Double(result.sent),
            late: result.acknowledgements.p99, batchSize: BatchCounter(port: server.port)?.averageSize(since: batches))
    }
}
