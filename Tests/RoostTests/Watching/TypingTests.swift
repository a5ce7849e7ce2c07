import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

@MainActor @Suite("Watching: typing", .timeLimit(.minutes(5)))
struct TypingTests {
    private let clock = ManualClock()
    private let server = ScriptedServer { _ in .result(Done()) }

    private func chat() -> Chat {
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = server
        configuration.clock = clock
        return Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
    }

    /// The calls sent to the server until now.
    private func sent(by chat: Chat) async -> [String] {
        // Calls keep their order: those before this one have been sent when it is answered.
        _ = try? await Task { try await chat.call(GetMe()) }.value
        return await server.operations().filter { $0.hasPrefix("typing.") }
    }

    /// Returns when a task sleeps until a time of the clock.
    private func sleeps(until end: Duration, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        try await until(sourceLocation: sourceLocation) { clock.ends.contains(end) }
    }

    /// Blocks the main actor until a sleep has ended: what follows the sleep then waits for the actor.
    private func blockMainActor(untilAwake end: Duration) {
        let deadline = ContinuousClock.now + .seconds(45)
        while clock.ends.contains(end), ContinuousClock.now < deadline { usleep(1000) }
    }

    @Test("the server is notified that the user types once a second at most, and that they stopped 7 seconds after the last key")
    func typingReporter() async throws {
        let chat = chat()
        try await chat.connect()
        let channel = chat.channel("general")
        for _ in 0..<3 { channel.startTyping() }
        clock.advance(by: .milliseconds(999))
        channel.startTyping()
        #expect(await sent(by: chat) == ["typing.start"])
        clock.advance(by: .milliseconds(1))
        channel.startTyping()
        #expect(await sent(by: chat) == ["typing.start", "typing.start"])

        try await sleeps(until: .seconds(8))
        clock.advance(by: .milliseconds(6999))
        #expect(await sent(by: chat) == ["typing.start", "typing.start"])
        clock.advance(by: .milliseconds(1))
        try await until { await sent(by: chat).count >= 3 }
        #expect(await sent(by: chat) == ["typing.start", "typing.start", "typing.stop"])
        withExtendedLifetime(channel) {}
        await chat.disconnect()
        clock.advance(by: .seconds(60))
    }

    @Test("a user whose next key comes just when 7 seconds have passed, before that was handled, hasn't stopped typing")
    func keyAtTheEnd() async throws {
        let chat = chat()
        try await chat.connect()
        let channel = chat.channel("general")
        channel.startTyping()
        try await sleeps(until: .seconds(7))
        clock.advance(by: .seconds(7))
        blockMainActor(untilAwake: .seconds(7))
        channel.startTyping()
        await letOthersRun()
        #expect(await sent(by: chat) == ["typing.start", "typing.start"])
        withExtendedLifetime(channel) {}
        await chat.disconnect()
        clock.advance(by: .seconds(60))
    }

    @Test("the stop is sent once, and only after a start; a user who starts again is reported at once")
    func stops() async throws {
        let chat = chat()
        try await chat.connect()
        let channel = chat.channel("general")
        channel.stopTyping()
        channel.startTyping()
        channel.stopTyping()
        channel.stopTyping()
        channel.startTyping()
        try await channel.send("hi")
        #expect(await sent(by: chat) == ["typing.start", "typing.stop", "typing.start", "typing.stop"])
        await chat.disconnect()
        clock.advance(by: .seconds(60))
    }

    @Test("a user who leaves the screen while typing has stopped typing, and no caller has to wait for it")
    func released() async throws {
        let chat = chat()
        try await chat.connect()
        var channel: LiveChannel? = chat.channel("general")
        channel?.startTyping()
        #expect(await sent(by: chat) == ["typing.start"])
        channel = nil
        try await until { await sent(by: chat) == ["typing.start", "typing.stop"] }
        await chat.disconnect()
        clock.advance(by: .seconds(60))
    }

    @Test("a user who leaves, or is removed, is no longer shown as typing as soon as that arrives")
    func leavers() async throws {
        let chat = try await server.connectedInGeneral(clock)
        let typing = chat.channel("general").typing()
        try await server.send(
            Signal(kind: .typingChanged, channel: "general", typing: TypingUsers(users: ["bob", "cid", "dan"], hasMore: false)))
        for await users in typing.updates where !users.isEmpty { break }
        let gone = (["bob", "dan"] as [UserID]).map {
            Member(userId: $0, role: .member, state: .none, joinedAt: Timestamp(milliseconds: 0), joinedSeq: 1, changeSeq: 4)
        }
        try await server.send(
            Event(
                kind: .memberLeft, stream: .channel("general"), seq: 4, actor: "eve",
                rows: Rows(counters: counters(4, messages: 0), gone)))
        try await until { typing.users.map(\.userId) == ["cid"] }
        await chat.disconnect()
        clock.advance(by: .seconds(60))
    }

    @Test(
        "SB-02 a typing user is no longer shown once their message arrives, but still after a system message about them")
    func wrote() async throws {
        let chat = try await server.connectedInGeneral(clock)
        let typing = chat.channel("general").typing()
        try await server.send(
            Signal(kind: .typingChanged, channel: "general", typing: TypingUsers(users: ["bob", "cid"], hasMore: false)))
        for await users in typing.updates where !users.isEmpty { break }
        try await server.send(RoostTests.sent(message(4, "hi", by: "bob"), messages: 1))
        // The clock stands still, so nothing expires.
        try await until { typing.users.map(\.userId) == ["cid"] }
        var announcement = message(5, "cid joined.", by: "cid")
        announcement.content.kind = .system
        try await server.send(RoostTests.sent(announcement, messages: 2))
        let store = try await chat.driver.files().store
        try await until { try await store.read { try $0.cursor(of: "general") } == 5 }
        await letOthersRun()
        #expect(typing.users.map(\.userId) == ["cid"])
        await chat.disconnect()
        clock.advance(by: .seconds(60))
    }

    @Test("SB-02 a change of whether more users type than are named is reported by itself")
    func more() async throws {
        let chat = chat()
        try await chat.connect()
        let typing = chat.channel("general").typing()
        try await typing.loaded()
        var reported: [Bool] = []
        let token = typing.observe { _ in reported.append(typing.hasMore) }
        let users = (1...Limits.typingUsers).map { UserID("u\($0)") }
        for hasMore in [false, true, false] {
            let count = reported.count
            try await server.send(
                Signal(kind: .typingChanged, channel: "general", typing: TypingUsers(users: users, hasMore: hasMore)))
            try await until { reported.count > count }
            #expect(typing.users.map(\.userId) == users && typing.hasMore == hasMore)
        }
        #expect(reported == [false, false, true, false])
        token.invalidate()
        await chat.disconnect()
        clock.advance(by: .seconds(60))
    }

    @Test(
        "I14 a typing user is shown until 10 seconds after the last signal, or the end of the connection; the user themselves isn't"
    )
    func expiry() async throws {
        let chat = chat()
        try await chat.connect()
        let typing = chat.channel("general").typing()
        let signal = Signal(kind: .typingChanged, channel: "general", typing: TypingUsers(users: ["ann", "bob"], hasMore: false))
        try await server.send(signal)
        for await users in typing.updates where !users.isEmpty { break }
        #expect(typing.users.map(\.userId) == ["bob"])
        try await sleeps(until: .seconds(10))
        clock.advance(by: .milliseconds(9999))
        try await server.send(signal)
        try await sleeps(until: .milliseconds(19_999))
        // The first signal no longer counts.
        clock.advance(by: .seconds(5))
        await letOthersRun()
        #expect(typing.users.map(\.userId) == ["bob"])
        clock.advance(by: .milliseconds(4999))
        await letOthersRun()
        #expect(typing.users.map(\.userId) == ["bob"])
        clock.advance(by: .milliseconds(1))
        for await users in typing.updates where users.isEmpty { break }

        // If signals were dropped, it is unknown who has stopped.
        try await server.send(signal)
        for await users in typing.updates where !users.isEmpty { break }
        for _ in 0..<150 { chat.driver.signals.send(.wrote("cid", "general")) }
        for await users in typing.updates where users.isEmpty { break }

        try await server.send(signal)
        for await users in typing.updates where !users.isEmpty { break }
        await chat.disconnect()
        for await users in typing.updates where users.isEmpty { break }
        clock.advance(by: .seconds(60))
    }

    @Test("I14 a typing user who is reported again just when 10 seconds have passed, before that was handled, is still shown")
    func reportedAtTheEnd() async throws {
        let chat = chat()
        try await chat.connect()
        let typing = chat.channel("general").typing()
        let signal = Signal(kind: .typingChanged, channel: "general", typing: TypingUsers(users: ["bob"], hasMore: false))
        try await server.send(signal)
        for await users in typing.updates where !users.isEmpty { break }
        try await sleeps(until: .seconds(10))
        // Both wait for the main actor, this one first.
        chat.driver.signals.send(.signal(signal))
        clock.advance(by: .seconds(10))
        blockMainActor(untilAwake: .seconds(10))
        try await sleeps(until: .seconds(20))
        await letOthersRun()
        #expect(typing.users.map(\.userId) == ["bob"])
        await chat.disconnect()
        clock.advance(by: .seconds(60))
    }
}
