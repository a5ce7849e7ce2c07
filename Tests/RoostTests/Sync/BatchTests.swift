import Foundation
import GRDB
import Logging
import RoostAPI
import Synchronization
import TaskSteps
import Testing

@testable import Roost

/// Events that a connection delivers while the store is busy.
@Suite("Sync: batches", .timeLimit(.minutes(5)))
struct BatchTests {
    private let server = ScriptedServer { _ in .error(.notFound("operation")) }

    /// An online client whose store is busy until the work ends.
    private func busyChat(
        observedBy commits: Commits? = nil, of server: ScriptedServer? = nil
    ) async throws -> (chat: Chat, work: BusyWork) {
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = server ?? self.server
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        try await chat.connect()
        let store = try await chat.driver.prepare().store
        if let commits { try await store.change { $0.add(transactionObserver: commits, extent: .databaseLifetime) } }
        let work = BusyWork()
        Task { try await store.read { _ in work.run() } }
        try await until { work.isRunning }
        return (chat, work)
    }

    private func event(_ seq: Seq, _ rows: Rows = Rows()) -> Event {
        Event(kind: .preferencesUpdated, stream: .user("ann"), seq: seq, actor: "ann", rows: rows)
    }

    /// Sends events one after another, and counts them.
    private func send(_ count: Int64, _ rows: Rows = Rows()) -> (task: Task<Void, any Error>, sent: @Sendable () -> Int) {
        let sent = Count()
        let task = Task {
            for seq in 1...count {
                try await server.send(event(seq, rows))
                sent.add()
            }
        }
        return (task, { sent.value })
    }

    private final class Count: Sendable {
        private let count = Mutex(0)
        var value: Int { count.withLock { $0 } }
        func add() { count.withLock { $0 += 1 } }
    }

    private func position(of chat: Chat) async throws -> Seq {
        try await chat.driver.prepare().store.savedState().userCursor
    }

    /// Counts transactions. GRDB doesn't report the changed rows of statements that it doesn't step through.
    private final class Commits: TransactionObserver, Sendable {
        private let commits = Count()
        var count: Int { commits.value }

        func observes(eventsOfKind kind: DatabaseEventKind) -> Bool { true }
        func databaseDidChange(with event: DatabaseEvent) {}
        func databaseDidCommit(_ database: Database) { commits.add() }
        func databaseDidRollback(_ database: Database) {}
    }

    @Test(
        "I3 the transport continues to read while the store writes, and all events meanwhile are stored in order, by one transaction"
    )
    func readsOn() async throws {
        let commits = Commits()
        let (chat, work) = try await busyChat(observedBy: commits)
        let before = commits.count
        defer { work.end() }
        for seq in 1...400 as ClosedRange<Seq> { try await server.send(event(seq)) }
        work.end()
        try await until { try await position(of: chat) == 400 }
        // One for the events that the store had begun with, and one for all later ones.
        #expect((1...2).contains(commits.count - before))
        await chat.disconnect()
    }

    @Test("I18 beyond 512 events the transport waits for the store, and then continues")
    func waits() async throws {
        let (chat, work) = try await busyChat()
        defer { work.end() }
        let (sending, sent) = send(2000)
        try await until { sent() >= 511 }
        await letOthersRun()
        // Those that the store has begun with, and the queued ones.
        #expect(sent() <= 1024)
        work.end()
        try await sending.value
        try await until { try await position(of: chat) == 2000 }
        await chat.disconnect()
    }

    @Test("I18 beyond 4 MiB the transport waits for the store, however few the events are, and then continues")
    func waitsForBytes() async throws {
        let (chat, work) = try await busyChat()
        defer { work.end() }
        // 256 KiB each: 16 of them are 4 MiB.
        let user = User(
            userId: "ann", displayName: String(repeating: "n", count: 256 << 10), createdAt: Timestamp(milliseconds: 0),
            updatedAt: Timestamp(milliseconds: 0))
        let (sending, sent) = send(60, Rows([user]))
        try await until { sent() >= 15 }
        await letOthersRun()
        // Those that the store has begun with, and the queued ones.
        #expect(sent() <= 32)
        work.end()
        try await sending.value
        try await until { try await position(of: chat) == 60 }
        await chat.disconnect()
    }

    @Test("a call that is cancelled while the store is busy ends at once, and doesn't wait for the running write")
    func cancelled() async throws {
        let (chat, work) = try await busyChat()
        defer { work.end() }
        try await server.send(event(1))
        try await until { await chat.driver.isDraining }
        let call = Task { _ = try await chat.call(GetMe()) }
        try await until { await !chat.driver.replies.isEmpty }
        call.cancel()
        let ended = await result(of: call)
        guard case .failure(is CancellationError)? = ended else {
            Issue.record("\(String(describing: ended))")
            return
        }
        #expect(await chat.driver.isDraining)
        work.end()
        // No caller waits for the answer now, and the client continues.
        try await until { try await position(of: chat) == 1 }
        await #expect(throws: RoostError.self) { try await chat.call(GetMe()) }
        await chat.disconnect()
    }

    /// The server's answer to the start of a watch.
    private static let watched = WatchedChannel(
        config: ChannelPolicy.presets[0], channel: channel(counters(1, messages: 0)), online: 1, watcherCount: 1, watchers: [:],
        members: [:], read: [:], messages: MessagePage(messages: [], hasOlder: false, hasNewer: false, seq: 1),
        ownCapabilities: [.channelRead, .channelWatch])

    @Test(
        "ST-01 ST-10 a watch that is cancelled before its received answer is handled is ended; after that it is the caller's",
        arguments: [false, true])
    func answeredWatch(isLookedAt: Bool) async throws {
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let server = ScriptedServer { call in
            call.operation == "channel.watch" ? .held(until: gate, .result(Self.watched)) : .result(Done())
        }
        let (chat, work) = try await busyChat(of: server)
        defer { work.end() }
        let driver = chat.driver
        let call = Task { _ = try await chat.call(WatchChannel(channel: "general")) }
        try await until { await server.operations().contains("channel.watch") }
        if !isLookedAt {
            try await server.send(event(1))
            try await until { await driver.isDraining }
            try await until { await driver.inputs.isEmpty }
        }
        open.finish()
        if isLookedAt {
            try await until { await driver.machine?.watched == ["general"] }
        } else {
            try await until { await !driver.inputs.isEmpty }
        }
        call.cancel()
        try await until { await driver.inputs.contains { if case .cancel = $0 { true } else { false } } }
        if isLookedAt {
            work.end()
            try await call.value
            await driver.rest()
            #expect(await driver.machine?.watched == ["general"])
            #expect(await server.operations().contains("channel.unwatch") == false)
        } else {
            await #expect(throws: CancellationError.self) { try await call.value }
            work.end()
            try await until { await server.operations().contains("channel.unwatch") }
            await driver.rest()
            #expect(await driver.machine?.watched == [])
        }
        await chat.disconnect()
    }
}
