import Foundation
import RoostAPI
import RoostCore
import RoostDatabase
import RoostServer
import Synchronization

/// Users with their own channels, and two kinds of effects: one that waits, and one that measures how late it runs.
final class EffectWorld: Sendable {
    static let waiting = EffectKind.Name(rawValue: "bench.waiting")
    static let timed = EffectKind.Name(rawValue: "bench.timed")
    private static let channelCount = 50
    /// The sends that each sender has under way.
    private static let window = 6

    private let ran = Mutex<(late: Histogram, count: Int)>((Histogram(), 0))
    private let sendCount = Atomic<Int>(0)
    private let databaseCPUSeconds: @Sendable () -> Double

    /// - Parameter databaseCPUSeconds: Returns the CPU seconds of a database server that works for this process; 0 for a database in the process.
    init(databaseCPUSeconds: @escaping @Sendable () -> Double = { 0 }) { self.databaseCPUSeconds = databaseCPUSeconds }

    /// How late effects of the kind ``timed`` ran.
    var lateness: Histogram { ran.withLock { $0.late } }
    var runCount: Int { ran.withLock { $0.count } }

    var settings: EffectSettings {
        var settings = EffectSettings()
        settings.kinds += [
            EffectKind(Self.waiting) { _, _, _ in },
            EffectKind(Self.timed) { [self] effect, _, _ in
                let late = Date().timeIntervalSince1970 * 1e9 - Double(effect.dueAt.milliseconds) * 1e6
                ran.withLock {
                    $0.late.record(UInt64(max(0, late)))
                    $0.count += 1
                }
            },
        ]
        return settings
    }

    // MARK: Filling

    private static func user(_ number: Int) -> UserID { UserID("user-\(number)") }
    private static func channel(_ number: Int) -> ChannelID { ChannelID("channel-\(number)") }

    static func addChannels(to database: any Database) throws {
        try Seed.fill(database) { seed in
            try seed.addUsers((0..<channelCount).map(user))
            try seed.forEach(0..<channelCount) { batch, number in
                try batch.perform(CreateChannel(channel: channel(number)), as: user(number))
            }
        }
    }

    /// Adds effects that aren't due for a day.
    static func addEffects(_ count: Int, to database: any Database) throws {
        try Seed.fill(database) { seed in
            try seed.forEach(0..<count) { batch, number in
                try batch.run(as: user(0)) { try $0.waitForADay() }
            }
        }
    }

    /// Deletes the effects that sends have requested since: all that are due within the hour.
    static func forgetNew(_ server: InProcessServer) async throws {
        try await server.perform { context in
            let soon = Timestamp(milliseconds: context.now.milliseconds + 3_600_000)
            try context.transaction.execute("DELETE FROM effects WHERE kind = \(waiting.rawValue) AND due_at <= \(soon)")
        }
    }

    // MARK: Load

    /// CPU time in microseconds.
    struct CPUTime {
        /// CPU time of this process, which is the node.
        var node: Double
        /// CPU time of the database server.
        var database: Double
        var total: Double { node + database }

        static func - (left: CPUTime, right: CPUTime) -> CPUTime {
            CPUTime(node: left.node - right.node, database: left.database - right.database)
        }

        static func / (time: CPUTime, count: Int) -> CPUTime {
            CPUTime(node: time.node / Double(count), database: time.database / Double(count))
        }
    }

    /// The CPU time used so far.
    var cpuTime: CPUTime { CPUTime(node: Double(Clock.processCPU()) / 1000, database: databaseCPUSeconds() * 1e6) }

    /// Sends as fast as possible, from all senders at once.
    ///
    /// - Returns: CPU time per send.
    func sends(to server: InProcessServer, _ count: Int, withEffect: Bool) async throws -> CPUTime {
        let tasks = Self.channelCount * Self.window
        let before = cpuTime
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<tasks {
                group.addTask { [self] in
                    for _ in 0..<(count / tasks + 1) {
                        try await send(to: server, task % Self.channelCount, withEffect: withEffect)
                    }
                }
            }
            try await group.waitForAll()
        }
        return (cpuTime - before) / ((count / tasks + 1) * tasks)
    }

    /// Sends at a steady pace until it is cancelled.
    func steadySends(to server: InProcessServer, perSecond: Int) async throws {
        let clock = ContinuousClock()
        var next = clock.now
        var number = 0
        while !Task.isCancelled {
            try await send(to: server, number % Self.channelCount, withEffect: false)
            number += 1
            next += .seconds(1) / perSecond
            try? await clock.sleep(until: next)
        }
    }

    private func send(to server: InProcessServer, _ number: Int, withEffect: Bool) async throws {
        let id = sendCount.add(1, ordering: .relaxed).newValue
        let message = SendMessage(channel: Self.channel(number), clientId: ClientID("bench-\(id)"), text: SampleText.message)
        let caller = Caller(user: Self.user(number))
        try await server.perform(as: caller, scope: message.scope(for: caller)) { context in
            let sent = try message.handle(in: &context)
            if withEffect { try context.waitForHalfAnHour(about: sent) }
        }
    }

    /// Waits until a number of effects of the kind ``timed`` have run.
    func wait(untilRun count: Int) async throws {
        let deadline = ContinuousClock.now + .seconds(60)
        while runCount < count {
            guard ContinuousClock.now < deadline else { throw BenchFailure("\(runCount) of \(count) effects have run") }
            try await Task.sleep(for: .milliseconds(1))
        }
    }
}

extension Context {
    /// Requests an effect whose key has the form of those about a message.
    fileprivate mutating func waitForHalfAnHour(about message: Message) throws {
        try schedule(
            EffectWorld.waiting, key: message.messageId.description, payload: SampleText.effect,
            at: Timestamp(milliseconds: now.milliseconds + 1_800_000))
    }

    fileprivate mutating func waitForADay() throws {
        try schedule(
            EffectWorld.waiting, key: ids.next(at: now).description, payload: SampleText.effect,
            at: Timestamp(milliseconds: now.milliseconds + 86_400_000))
    }
}
