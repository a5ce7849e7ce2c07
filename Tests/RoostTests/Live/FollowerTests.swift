import Foundation
import Logging
import RoostAPI
import TaskSteps
import Testing

@testable import Roost

@MainActor @Suite("Live objects: reloading", .timeLimit(.minutes(5)))
struct FollowerTests {
    private func chat(_ clock: any Clock<Duration> = ContinuousClock()) -> Chat {
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = TinyServer()
        configuration.clock = clock
        return Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
    }

    private struct Unreadable: Error {}

    @Test("AM-29 pieces of work run one after another, in the order of the requests, whatever their outcomes")
    func order() async throws {
        let follower = Follower(chat().driver)
        var log: [String] = []
        let gate = AsyncStream.makeStream(of: Void.self)
        let first = Task {
            await follower.work {
                log.append("first begins")
                for await _ in gate.stream { break }
                log.append("first ends")
                throw Unreadable()
            }
        }
        try await until { !log.isEmpty }
        let second = Task { await follower.work { log.append("second") } }
        await letOthersRun(100)
        #expect(log == ["first begins"])
        gate.continuation.yield()
        _ = await (first.value, second.value)
        #expect(log == ["first begins", "first ends", "second"])
    }

    @Test("AM-29 work that is abandoned ends after any number of turns, and later work doesn't wait for it")
    func abandoned() async throws {
        let chat = chat()
        for turns in 1...30 {
            let follower = Follower(chat.driver)
            let (noEnd, never) = AsyncStream.makeStream(of: Void.self)
            defer { never.finish() }
            var begun: [Int] = []
            func work(_ number: Int, _ step: @escaping @MainActor () async throws -> Void) -> Task<Bool, any Error> {
                Task {
                    let outcome = await follower.work {
                        begun.append(number)
                        try await step()
                    }
                    return if case .done = outcome { true } else { false }
                }
            }
            let first = work(1) {
                for await _ in noEnd {}
                try Task.checkCancellation()
            }
            let second = work(2) {}
            await letOthersRun(turns)
            follower.abandonWork()
            let third = work(3) {}
            var areDone: [Bool?] = []
            for task in [first, second, third] { areDone.append(try await result(of: task)?.get()) }
            #expect(areDone == [false, false, true] && begun.filter { $0 > 1 } == [3], "\(turns) turns")
        }
    }

    @Test("a final refusal is reported; one that another connection or change may lift isn't")
    func outcomes() async throws {
        let follower = Follower(chat().driver)
        let refusal = RoostError(.notPermitted, "No.")
        let errors: [any Error] = [refusal, RoostError(.notConnected, "Later."), Unreadable()]
        var refused: [RoostError] = []
        for error in errors {
            if case .refused(let error) = await follower.work({ throw error }) { refused.append(error) }
        }
        #expect(refused == [refusal])
        guard case .done = await follower.work({}) else { throw Unreadable() }
    }

    @Test("a refusal after the log-out isn't reported for earlier requests; later requests are refused")
    func refusedByLogOut() async throws {
        let chat = chat()
        try await chat.connect()
        let follower = Follower(chat.driver)
        follower.follow(.channel("general"), ended: { [weak follower] in follower?.answered() }, changed: { _ in })
        let gate = AsyncStream.makeStream(of: Void.self)
        var isAsking = false
        let request = Task {
            await follower.work(asksServer: true) {
                isAsking = true
                for await _ in gate.stream { break }
                throw SyncDriver.loggedOut
            }
        }
        try await until { isAsking }
        try await chat.logOut()
        try await until { follower.phase == .loaded }
        gate.continuation.yield()
        guard case .failed = await request.value else { throw Unreadable() }
        #expect(follower.phase == .loaded)
        guard case .refused = await follower.work(asksServer: true, { throw SyncDriver.loggedOut }) else { throw Unreadable() }
        #expect(follower.phase == .refused(SyncDriver.loggedOut))
    }

    @Test("R08 a request that the server couldn't answer now is repeated, as long as the connection lasts")
    func asksAgain() async throws {
        let chat = chat()
        try await chat.connect()
        let follower = Follower(chat.driver)
        var asked = 0
        follower.follow(
            .channel("general"),
            connected: { [weak follower] in
                asked += 1
                let number = asked
                await follower?.work { if number < 3 { throw RoostError(.unavailable, "Later.") } }
                if number == 3 { follower?.answered() }
            }, changed: { _ in })
        try await follower.loaded()
        #expect(asked == 3)
        await chat.disconnect()
    }

    @Test("AM-29 it reloads for everything at once, for each change of its topic, and not after it is released")
    func follows() async throws {
        let chat = chat()
        let store = try await chat.driver.prepare().store
        let (seen, continuation) = AsyncStream.makeStream(of: StoreChange.self)
        var follower: Follower? = Follower(chat.driver)
        follower?.follow(.channel("general"), reload: { change in continuation.yield(change) })
        var changes = seen.makeAsyncIterator()
        #expect(await changes.next()?.isEverything == true)
        store.signals.signal(StoreChange(channels: ["other"]))
        store.signals.signal(StoreChange(channels: ["general"]))
        #expect(await changes.next() == StoreChange(channels: ["general"]))

        weak let released = follower
        follower = nil
        try await until { released == nil }
        store.signals.signal(StoreChange(channels: ["general"]))
        await letOthersRun()
        continuation.finish()
        #expect(await changes.next() == nil)
    }

    @Test("AM-29 R08 after a change that couldn't be read, the next one is of everything")
    func missed() async throws {
        // On a clock that stands still the store isn't read again without a change.
        let chat = chat(ManualClock())
        let store = try await chat.driver.prepare().store
        let follower = Follower(chat.driver)
        var changes: [StoreChange] = []
        follower.follow(
            .channels,
            reload: { change in
                changes.append(change)
                if changes.count == 2 { throw Unreadable() }
            })
        for (number, channel) in (["a", "b", "c"] as [ChannelID]).enumerated() {
            try await until { changes.count == number + 1 }
            await letOthersRun(10)
            store.signals.signal(StoreChange(channels: [channel]))
        }
        try await until { changes.count == 4 }
        #expect(changes.map(\.isEverything) == [true, false, true, false])
        #expect(changes.map(\.channels) == [[], ["a"], ["a", "b"], ["c"]])
    }

    @MainActor private final class File {
        var isReadable = true
    }

    @Test("AM-29 R08 an unreadable store is read again at growing intervals, with the missed changes, a bounded number of times")
    func readsAgain() async throws {
        let clock = ManualClock()
        let chat = chat(clock)
        let store = try await chat.driver.prepare().store
        let follower = Follower(chat.driver)
        var changes: [StoreChange] = []
        let file = File()
        follower.follow(
            .channel("general"),
            reload: { change in
                changes.append(change)
                if !file.isReadable { throw Unreadable() }
            })
        func change() { store.signals.signal(StoreChange(channels: ["general"])) }
        /// Returns once the store is about to be read again at a time, and that time has passed.
        func wait(_ seconds: Int, from start: Duration) async throws {
            try await until { clock.ends.contains(start + .seconds(seconds)) }
            clock.advance(by: .seconds(seconds))
        }
        try await until { changes.count == 1 }
        file.isReadable = false
        change()
        var (now, count) = (Duration.zero, 2)
        for seconds in [1, 2, 4, 8, 16, 32, 64, 128] {
            try await wait(seconds, from: now)
            now += .seconds(seconds)
            count += 1
            try await until { changes.count == count }
        }
        #expect(changes.last?.isEverything == true && changes.last?.channels == ["general"])
        guard case .unavailable = follower.phase else { throw Unreadable() }
        await letOthersRun()
        clock.advance(by: .seconds(3600))
        await letOthersRun()
        #expect(changes.count == count)

        // The next change is another occasion, and once that can be read the retries start over.
        file.isReadable = true
        change()
        try await until { follower.phase == .loading }
        file.isReadable = false
        change()
        now = .seconds(255 + 3600)
        try await until { clock.ends.contains(now + .seconds(1)) }
        file.isReadable = true
        clock.advance(by: .seconds(1))
        try await until { follower.phase == .loading && changes.count == count + 3 }
    }

    @Test("AM-29 R08 a list of channels shows a missed change, for which the store couldn't be read")
    func missedByChannels() async throws {
        let chat = chat()
        let store = try await chat.driver.prepare().store
        var own = membership(readSeq: 1, readCount: 0, userSeq: 1)
        func write(_ id: ChannelID) async throws {
            own.channelId = id
            var listed = channel(counters(1, messages: 0))
            listed.channelId = id
            try await store.write([.channel(listed), .membership(own)])
        }
        let source = StoredChannels(ChannelQuery(), pageSize: 10, driver: chat.driver)
        try await source.follow(.everything)
        // A list that isn't complete reads all channels with each change.
        if source.isPartial { try await source.complete() }
        try await write("a")
        let reading = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            try await source.follow(StoreChange(channels: ["a"]))
        }
        await #expect(throws: CancellationError.self) { try await reading.value }
        try await write("b")
        try await source.follow(StoreChange(channels: ["b"]))
        #expect(Set(source.items?.map(\.id) ?? []) == ["a", "b"])
    }

    @Test("several that ask the server soon ask it once")
    func soon() async throws {
        let follower = Follower(chat().driver)
        let (seen, continuation) = AsyncStream.makeStream(of: Int.self)
        for number in 1...3 { follower.soon { continuation.yield(number) } }
        var calls = seen.makeAsyncIterator()
        #expect(await calls.next() == 1)
        follower.soon { continuation.yield(4) }
        #expect(await calls.next() == 4)
    }

    @Test(
        "a request that many clients are to make is made within seconds, once, and not at all if there is another reason to make it sooner"
    )
    func spread() async throws {
        let clock = ManualClock()
        let server = ScriptedServer { _ in .nothing }
        let chat = try await server.connected(clock)
        let follower = Follower(chat.driver)
        var log: [String] = []
        for number in 1...3 { follower.withinSeconds { log.append("spread \(number)") } }
        try await until { clock.isSpreading }
        clock.advance(by: .milliseconds(499))
        await letOthersRun()
        #expect(log == [])
        clock.advance(by: .seconds(5))
        try await until { log == ["spread 1"] }

        follower.withinSeconds { log.append("late") }
        try await until { clock.isSpreading }
        follower.soon { log.append("soon") }
        follower.withinSeconds { log.append("needless") }
        try await until { clock.ends.contains(.milliseconds(5749)) }
        clock.advance(by: .milliseconds(250))
        try await until { log == ["spread 1", "soon"] }
        clock.advance(by: .seconds(5))
        await letOthersRun()
        #expect(log == ["spread 1", "soon"])
        #expect(
            [Duration.spread(0), .spread(4499), .spread(.max)].allSatisfy { (.milliseconds(500)..<(.seconds(5))).contains($0) })
        await chat.disconnect()
    }

    @Test("AM-30 a server that couldn't answer is asked when it says, and at growing intervals, within the hour")
    func pauses() {
        func pause(_ milliseconds: Int64?, _ failures: Int) -> Duration {
            let error = RoostError(.overloaded, "Later.", retryAfterMilliseconds: milliseconds)
            return .pause(after: error, failures: failures, first: 250)
        }
        #expect([pause(nil, 0), pause(nil, 1), pause(nil, 100)] == [.milliseconds(250), .milliseconds(500), .seconds(32)])
        #expect([pause(60_000, 0), pause(100, 3), pause(.max, 0)] == [.seconds(60), .seconds(2), .seconds(3600)])
        #expect(Duration.pause(after: CancellationError(), failures: 1, first: 500) == .seconds(1))
    }
}
