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

    /// What the server was told until now.
    private func told(by chat: Chat) async -> [String] {
        // Calls keep their order: what was to be told before this one is there when it is.
        _ = try? await Task { try await chat.call(GetMe()) }.value
        return await server.operations().filter { $0.hasPrefix("typing.") }
    }

    /// Returns when somebody sleeps until a time of the clock.
    private func sleeps(until end: Duration, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        try await until(sourceLocation: sourceLocation) { clock.ends.contains(end) }
    }

    @Test("The server hears that the user types once a second at most, and that they stopped 7 seconds after the last key")
    func typist() async throws {
        let chat = chat()
        try await chat.connect()
        let channel = chat.channel("general")
        for _ in 0..<3 { channel.startTyping() }
        clock.advance(by: .milliseconds(999))
        channel.startTyping()
        #expect(await told(by: chat) == ["typing.start"])
        clock.advance(by: .milliseconds(1))
        channel.startTyping()
        #expect(await told(by: chat) == ["typing.start", "typing.start"])

        try await sleeps(until: .seconds(8))
        clock.advance(by: .milliseconds(6999))
        #expect(await told(by: chat) == ["typing.start", "typing.start"])
        clock.advance(by: .milliseconds(1))
        try await until { await told(by: chat).count >= 3 }
        #expect(await told(by: chat) == ["typing.start", "typing.start", "typing.stop"])
        withExtendedLifetime(channel) {}
        await chat.disconnect()
        clock.advance(by: .seconds(60))
    }

    @Test("That the user stopped is told once, and only if it was told that they type; who begins again is told of at once")
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
        #expect(await told(by: chat) == ["typing.start", "typing.stop", "typing.start", "typing.stop"])
        await chat.disconnect()
        clock.advance(by: .seconds(60))
    }

    @Test("Who leaves the screen while they type has stopped typing, and nobody has to wait for it")
    func released() async throws {
        let chat = chat()
        try await chat.connect()
        var channel: LiveChannel? = chat.channel("general")
        channel?.startTyping()
        #expect(await told(by: chat) == ["typing.start"])
        channel = nil
        try await until { await told(by: chat) == ["typing.start", "typing.stop"] }
        await chat.disconnect()
        clock.advance(by: .seconds(60))
    }

    @Test(
        "Whoever leaves, or is removed, doesn't type any more as soon as that is told; they were shown as typing until a signal came"
    )
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

    @Test("SB-02 That more people type than are named is told by itself, and that no more do")
    func more() async throws {
        let chat = chat()
        try await chat.connect()
        let typing = chat.channel("general").typing()
        try await typing.loaded()
        var told: [Bool] = []
        let token = typing.observe { _ in told.append(typing.hasMore) }
        let users = (1...Limits.typingUsers).map { UserID("u\($0)") }
        for hasMore in [false, true, false] {
            let count = told.count
            try await server.send(
                Signal(kind: .typingChanged, channel: "general", typing: TypingUsers(users: users, hasMore: hasMore)))
            try await until { told.count > count }
            #expect(typing.users.map(\.userId) == users && typing.hasMore == hasMore)
        }
        #expect(told == [false, false, true, false])
        token.invalidate()
        await chat.disconnect()
        clock.advance(by: .seconds(60))
    }

    @Test("I14 Whoever types is shown until 10 seconds after that was last heard, or the connection ends; the user isn't")
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
        // What was heard first doesn't count any more.
        clock.advance(by: .seconds(5))
        await letOthersRun()
        #expect(typing.users.map(\.userId) == ["bob"])
        clock.advance(by: .milliseconds(4999))
        await letOthersRun()
        #expect(typing.users.map(\.userId) == ["bob"])
        clock.advance(by: .milliseconds(1))
        for await users in typing.updates where users.isEmpty { break }

        // Who has stopped isn't known where too much was told at once to take it in.
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
}
