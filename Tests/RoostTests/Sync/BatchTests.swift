import Foundation
import Logging
import Synchronization
import Testing

@testable import Roost

/// What a connection brings while the store is busy.
@Suite("Sync: batches", .timeLimit(.minutes(1)))
struct BatchTests {
    private let server = ScriptedServer { _ in .error(.notFound("operation")) }

    /// An online client whose store is busy until the work ends.
    private func busyChat() async throws -> (chat: Chat, work: BusyWork) {
        var configuration = Chat.Configuration(logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = server
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        try await chat.connect()
        let store = try await chat.driver.prepare().store
        let work = BusyWork()
        Task { try await store.read { _ in work.run() } }
        while !work.isRunning { await Task.yield() }
        return (chat, work)
    }

    private func event(_ seq: Seq) -> Event {
        Event(kind: .preferencesUpdated, stream: .user("ann"), seq: seq, actor: "ann", rows: Rows())
    }

    private func position(of chat: Chat) async throws -> Seq {
        try await chat.driver.prepare().store.savedState().userCursor
    }

    @Test("I10 The transport reads on while the store writes, and everything that came meanwhile is stored, in order")
    func readsOn() async throws {
        let (chat, work) = try await busyChat()
        for seq in 1...400 as ClosedRange<Seq> { try await server.send(event(seq)) }
        work.end()
        while try await position(of: chat) < 400 { await Task.yield() }
        await chat.disconnect()
    }

    @Test("I18 Past 512 events the transport waits for the store, and then goes on")
    func waits() async throws {
        let (chat, work) = try await busyChat()
        let sent = Mutex(0)
        let sending = Task {
            for seq in 1...2000 as ClosedRange<Seq> {
                try await server.send(event(seq))
                sent.withLock { $0 += 1 }
            }
        }
        while sent.withLock({ $0 }) < 511 { await Task.yield() }
        for _ in 0..<1000 { await Task.yield() }
        // Those that the store has begun with, and those that wait.
        #expect(sent.withLock { $0 } <= 1024)
        work.end()
        try await sending.value
        while try await position(of: chat) < 2000 { await Task.yield() }
        await chat.disconnect()
    }
}
