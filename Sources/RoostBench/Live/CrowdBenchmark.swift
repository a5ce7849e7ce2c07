import Foundation
import RoostAPI
import RoostCore

/// Measures the cost of watching, presence and receipts in a very large channel, next to one of a thousand members.
struct CrowdBenchmark: Benchmark {
    static let name = "crowd"
    /// Connected members of the large channel.
    let socketCount: Int
    /// A member of the small channel who comes and goes.
    private static let visitor = UserID("visitor")

    init(socketCount: Int) { self.socketCount = socketCount }

    private struct Crowd {
        let channel: ChannelID
        /// The connected members, by the numbers of their sockets.
        let sockets: Range<Int>
        /// The same number in each channel, and at least one.
        let watcherCount: Int

        /// The watching members, and the active ones.
        var watchers: Range<Int> { sockets.prefix(watcherCount) }
        var actors: Range<Int> { sockets.dropFirst(watcherCount).prefix(500) }
    }

    func figures(in directory: URL, scale: BenchScale) async throws -> [Figure] {
        let smallMembers = Self.smallMembers(scale)
        // The visitor connects only to leave.
        let smallCount = smallMembers.count - 1
        try OpenFiles.require(sockets: socketCount + smallMembers.count)
        let online = scale.pick(socketCount, quick: min(4000, socketCount), smoke: 60)
        let members = scale.pick(Limits.membersPerChannel, quick: 30_000, smoke: 100)
        let largeMembers = (0..<members).map { UserID("user-\(smallCount + $0)") }
        let watcherCount = min(50, smallCount / 4, online / 4)
        let small = Crowd(channel: "small", sockets: 0..<smallCount, watcherCount: watcherCount)
        let large = Crowd(channel: "large", sockets: smallCount..<(smallCount + online), watcherCount: watcherCount)
        try Seed.fill(directory) { seed in
            try seed.addUsers(smallMembers + largeMembers)
            for (crowd, all) in [(small, smallMembers), (large, largeMembers)] {
                try seed.forEach([0]) { batch, _ in try batch.perform(CreateChannel(channel: crowd.channel), as: all[0]) }
                try seed.forEach(Array(stride(from: 1, to: all.count, by: Limits.membersPerCall))) { batch, start in
                    let part = Array(all[start..<min(start + Limits.membersPerCall, all.count)])
                    try batch.perform(AddMembers(channel: crowd.channel, users: part), as: all[0])
                }
            }
        }
        let connected = Array(smallMembers.dropLast()) + Array(largeMembers.prefix(online)) + [Self.visitor]
        let tokens = try await BenchTokens(directory: directory).tokens(for: connected)
        let server = try BenchServer(directory: directory)
        defer { server.end() }
        let loop = LoadLoop()
        try loop.connect(port: server.port, tokens: Array(tokens.dropLast()))

        let rounds = scale.pick(20, quick: 10, smoke: 2)
        let watching = try each(small, large) { try watch($0, loop, server, rounds: rounds) }
        for crowd in [small, large] {
            try all(loop, crowd.watchers) { try $0.call(WatchChannel(channel: crowd.channel, limit: 0)) }
        }
        // Lets the remaining signals be sent.
        try loop.run(for: scale == .smoke ? 0.3 : 6)
        let presence = try each(small, large) { try comeAndGo($0, loop, server, rounds: Self.presenceRounds(scale)) }
        let marks = try each(small, large) { try mark($0, loop, server, rounds: rounds) }
        let ends = try end(small, loop, server, token: tokens[tokens.count - 1], count: scale.pick(20, quick: 10, smoke: 2))
        loop.closeAll()
        let what = "\(members) members, \(online) of them online"
        func figure(_ name: String, _ pair: (small: Double, large: Double)) -> Figure {
            Figure(name, pair.large, "µs", floor: pair.small, goals: [.ratioAtMost(1.2)])
        }
        return [
            figure("server CPU per start and stop of watching, \(what)", watching),
            figure("server CPU per member who goes and comes, told to \(watcherCount) watchers, \(what)", presence),
            figure("server CPU per mark, \(what)", marks),
            Figure("a watcher is told that a connection has ended, after p99", ends, "ms", goals: [.atMost(1000)]),
        ]
    }

    /// The small channel's members, the last of whom is the visitor. In a channel of more than `Limits.largeChannelMembers` nobody is sent marks, and its
    /// costs would not be those of a small channel.
    static func smallMembers(_ scale: BenchScale) -> [UserID] {
        (0..<scale.pick(999, quick: 999, smoke: 39)).map { UserID("user-\($0)") } + [visitor]
    }

    private func each(_ small: Crowd, _ large: Crowd, _ measure: (Crowd) throws -> Double) throws -> (small: Double, large: Double)
    {
        (try measure(small), try measure(large))
    }

    private func watch(_ crowd: Crowd, _ loop: LoadLoop, _ server: BenchServer, rounds: Int) throws -> Double {
        let actors = crowd.actors
        let before = server.usage
        for _ in 0..<rounds {
            try all(loop, actors) { try $0.call(WatchChannel(channel: crowd.channel, limit: 0)) }
            try all(loop, actors) { try $0.call(UnwatchChannel(channel: crowd.channel)) }
        }
        return server.usage.cpuMicroseconds(since: before) / Double(rounds * actors.count)
    }

    /// How often each member becomes invisible and visible again: two of the changes that a user may make in a minute. No member is in both crowds.
    static func presenceRounds(_ scale: BenchScale) -> Int {
        min(scale.pick(20, quick: 10, smoke: 2), Limits.presenceChangesPerMinute / 2)
    }

    /// Makes members invisible and visible again, which others see as going and coming.
    private func comeAndGo(_ crowd: Crowd, _ loop: LoadLoop, _ server: BenchServer, rounds: Int) throws -> Double {
        let actors = crowd.actors
        let before = server.usage
        for _ in 0..<rounds {
            let start = Clock.now()
            for isShared in [false, true] {
                try all(loop, actors) { try $0.call(UpdatePreferences(sharesPresence: isShared)) }
            }
            // Spread over seconds, because watchers are notified twice a second: the cost of the notifications is included.
            try loop.run(until: start + 250_000_000)
        }
        return server.usage.cpuMicroseconds(since: before) / Double(rounds * actors.count)
    }

    private func mark(_ crowd: Crowd, _ loop: LoadLoop, _ server: BenchServer, rounds: Int) throws -> Double {
        let actors = crowd.actors
        var microseconds = 0.0
        for _ in 0..<rounds {
            let sender = loop.sockets[crowd.sockets.lowerBound]
            let last = loop.sockets[crowd.sockets.upperBound - 1]
            let count = last.eventCount
            _ = sender.sendMessage(to: crowd.channel.rawValue, text: SampleText.message)
            try loop.run(timeout: 60) { last.eventCount > count }
            try loop.run(for: 0.2)
            let before = server.usage
            try all(loop, actors) { try $0.call(MarkRead(channel: crowd.channel)) }
            microseconds += server.usage.cpuMicroseconds(since: before)
        }
        return microseconds / Double(rounds * actors.count)
    }

    /// Ends the connection of a member repeatedly.
    ///
    /// - Returns: Milliseconds until a watcher was notified.
    private func end(_ crowd: Crowd, _ loop: LoadLoop, _ server: BenchServer, token: String, count: Int) throws -> Double {
        var times = Histogram()
        let watcher = loop.sockets[crowd.sockets.lowerBound]
        for _ in 0..<count {
            let other = LoadLoop()
            try other.connect(port: server.port, tokens: [token])
            try loop.run(for: 1.2)
            watcher.signalCount = 0
            let start = Clock.now()
            other.closeAll()
            try loop.run(timeout: 10) { watcher.signalCount > 0 }
            times.record(Clock.now() - start)
        }
        return times.microseconds(0.99) / 1000
    }

    /// Makes sockets call, some at a time, and waits for the answers.
    private func all(_ loop: LoadLoop, _ sockets: some Collection<Int>, _ call: (LoadSocket) throws -> Int) throws {
        var answered = 0
        loop.onFrame = { _, frame, _ in if case .reply = frame { answered += 1 } }
        defer { loop.onFrame = { _, _, _ in } }
        for number in sockets { _ = try call(loop.sockets[number]) }
        try loop.run(timeout: 60) { answered >= sockets.count }
    }
}
