import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

@MainActor @Suite("Chat", .timeLimit(.minutes(5)))
struct ChatTests {
    private func chat(_ server: any Transport = TinyServer(), directory: URL? = nil) -> Chat {
        var configuration = Chat.Configuration(
            storage: directory.map(Chat.Storage.directory) ?? .inMemory,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = server
        return Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
    }

    @Test("connects, shows a message as pending and then as sent, and keeps its row")
    func sendAndSee() async throws {
        let chat = chat()
        let messages = chat.channel("general").messages()
        let channels = chat.channels()
        try await chat.connect()
        #expect(chat.connection.isOnline)
        try await until { !channels.items.isEmpty }

        let stored = try await chat.channel("general").sendConfirmed("hi")
        #expect(stored.text == "hi")
        for await update in messages.updates where update.items.contains(where: { $0.state == .sent && $0.text == "hi" }) { break }
        #expect(messages.items.map(\.text) == ["welcome", "hi"])
        try await until { channels.items.first?.lastMessage == stored }
        #expect(channels.totalUnreadCount == 1)
        await chat.disconnect()
    }

    @Test("a disconnect while the files are being opened leaves the chat disconnected")
    func disconnectedAtOnce() async throws {
        for _ in 0..<20 {
            let chat = chat()
            chat.start()
            await chat.disconnect()
            // Opens the files, at the latest.
            await #expect(throws: RoostError.self) { try await chat.call(GetMe()) }
            await letOthersRun(500)
            #expect(chat.connection.status == .offline)
        }
    }

    @Test("a connect during a disconnect waits for it, and fails if another disconnect follows: the chat stays disconnected")
    func disconnectedOnceMore() async throws {
        let chat = chat()
        try await chat.connect()
        await chat.driver.beginBatch()
        let first = Task { await chat.disconnect() }
        try await until { await chat.driver.pendingStops == 1 }
        let connecting = Task { try await chat.connect() }
        try await until { await chat.driver.pendingStarts == 1 }
        // The files are open, so it waits for the end of the connection.
        await letOthersRun()
        let second = Task { await chat.disconnect() }
        try await until { await chat.driver.pendingStops == 2 }
        await chat.driver.endBatch()
        let error = await #expect(throws: RoostError.self) { try await connecting.value }
        #expect(error?.code == .notConnected)
        await first.value
        await second.value
        #expect(chat.driver.statuses.current == .offline)
        try await chat.connect()
        await chat.disconnect()
    }

    @Test("an unreadable answer is the error of its call, and the connection continues")
    func unreadableAnswer() async throws {
        let turn = Turn()
        let chat = chat(ScriptedServer { _ in turn.next() == 0 ? .result(7) : .result(Done()) })
        try await chat.connect()
        let error = await #expect(throws: RoostError.self) { try await chat.joinChannel("general") }
        #expect(error?.code == .internalError && error?.message.contains("couldn't be read") == true)
        _ = try await chat.call(StopTyping(channel: "general"))
        #expect(chat.connection.isOnline)
        await chat.disconnect()
    }

    @Test("the machine gets this device's time before a connection opens")
    func deviceTime() async throws {
        let clock = ManualClock()
        clock.advance(by: .seconds(7))
        let chat = try await ScriptedServer { _ in .nothing }.connected(clock)
        #expect(await chat.driver.machine?.deviceTime == Timestamp(milliseconds: 7000))
        await chat.disconnect()
    }

    @Test("starts offline from the disk, and sends what was written before")
    func offlineStart() async throws {
        let directory = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        let server = TinyServer()
        do {
            let chat = chat(server, directory: directory)
            try await chat.connect()
            await chat.disconnect()
            try await chat.channel("general").send("later")
        }
        let chat = chat(server, directory: directory)
        let messages = chat.channel("general").messages()
        try await until { messages.items.count == 2 }
        #expect(messages.items.map(\.state) == [.sent, .pending])
        try await chat.connect()
        try await until { messages.items.last?.state == .sent }
        #expect(messages.items.map(\.text) == ["welcome", "later"])
        await chat.disconnect()
    }

    @Test("a token of observation ends it at once (AM-29)")
    func observation() async throws {
        let chat = chat()
        let channel = chat.channel("general")
        var seen: [Int] = []
        let token = channel.observe { seen.append($0?.unreadCount ?? -1) }
        try await chat.connect()
        for await view in channel.updates where view != nil { break }
        token.invalidate()
        try await channel.sendConfirmed("hi")
        for await view in channel.updates where view?.lastMessage?.text == "hi" { break }
        #expect(seen.last == 1)
        #expect(token.isInvalidated)
        await chat.disconnect()
    }

    @Test("offline, a call fails at once and a draft outside its limits is refused without asking")
    func refusals() async throws {
        let chat = chat()
        await #expect(throws: RoostError(.notConnected, "There is no connection to the server.")) { _ = try await chat.me() }
        await #expect(throws: RoostError.invalidArgument("text", "must not be empty")) {
            try await chat.channel("general").send("")
        }
    }

    @Test("a disconnect followed by a connect ends connected, whatever is being stored at that moment")
    func anew() async throws {
        let chat = chat()
        let channel = chat.channel("general")
        try await chat.connect()
        for number in 1...200 {
            // Work in progress at the disconnect.
            let sending = Task { try await channel.send(MessageDraft(text: "\(number)")) }
            await letOthersRun(1)
            await chat.disconnect()
            try await chat.connect()
            #expect(chat.connection.isOnline)
            try await channel.sendConfirmed(MessageDraft(text: "after \(number)"))
            _ = try await sending.value
        }
        await chat.disconnect()
        #expect(chat.connection.status == .offline)
    }
}
