import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

/// Whether a chat connects by itself when its app returns from the background.
@MainActor @Suite("Connection: an app that comes back", .timeLimit(.minutes(5)))
struct ForegroundTests {
    private let directory = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
    private let url = URL(filePath: "/")

    private var folder: URL { directory.appending(component: SyncFiles.folderName(of: "ann", at: url)) }

    private func chat(
        _ transport: any Transport = TinyServer(), storage: Chat.Storage? = nil, clock: any Clock<Duration> = ContinuousClock()
    ) -> Chat {
        let configuration = Chat.Configuration(
            storage: storage ?? .shared(directory), followsSystem: false,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, transport: transport, clock: clock)
        return Chat(url: url, user: "ann", configuration: configuration) { "token" }
    }

    /// A server that refuses the first token.
    private struct RefusingOnce: Transport {
        let error: RoostError
        let server = TinyServer()
        let turn = Turn()

        func run(
            url: URL, outgoing: AsyncStream<TransportCommand>, receive: @escaping @Sendable (TransportEvent) async -> Void
        ) async {
            if turn.next() == 0 {
                await TurningAway(error).run(url: url, outgoing: outgoing, receive: receive)
            } else {
                await server.run(url: url, outgoing: outgoing, receive: receive)
            }
        }
    }

    @Test(
        "a client whose token was refused continues to try once the app is back; for a deactivated user it doesn't",
        arguments: [RoostError.Code.unauthenticated, .userDeactivated])
    func refused(code: RoostError.Code) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        // Its clock stands still, and with it the wait before the next attempt.
        let chat = chat(RefusingOnce(error: RoostError(code, "No.")), clock: ManualClock())
        let refusal = await #expect(throws: RoostError.self) { try await chat.connect() }
        #expect(refusal?.code == code)
        // A client that no longer tries keeps the reason.
        let refused = ConnectionStatus.refused(RoostError(code, "No."))
        await chat.driver.take(.background)
        #expect(chat.driver.statuses.current == (code == .userDeactivated ? refused : .offline))
        await chat.driver.take(.foreground)
        if code == .userDeactivated {
            #expect(chat.driver.statuses.current == refused)
            #expect(await chat.driver.machine?.connection == 1)
        } else {
            try await until { chat.driver.statuses.current == .online }
        }
        await chat.disconnect()
    }

    @Test("an app that goes to the background while it disconnects isn't connected when it returns")
    func disconnecting() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat()
        try await chat.connect()
        await chat.driver.beginBatch()
        let disconnecting = Task { await chat.disconnect() }
        try await until { await chat.driver.pendingStops == 1 }
        let background = Task { await chat.driver.take(.background) }
        try await until { await chat.driver.suspended != nil }
        await chat.driver.endBatch()
        await disconnecting.value
        await background.value
        await chat.driver.take(.foreground)
        #expect(chat.driver.statuses.current == .offline)
        #expect(await chat.driver.machine?.connection == 1)
        try await chat.connect()
        await chat.disconnect()
    }

    @Test("an app that disconnects, and goes to the background, while the files are being opened isn't connected when it returns")
    func disconnectedWhileOpening() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat()
        let (opened, open) = AsyncStream.makeStream(of: Void.self)
        try await chat.driver.openFiles(after: opened)
        chat.start()
        try await until { await chat.driver.preparation != nil }
        await chat.disconnect()
        let background = Task { await chat.driver.take(.background) }
        await letOthersRun()
        open.finish()
        await background.value
        await chat.driver.take(.foreground)
        try await until { await chat.driver.pendingStarts == 0 }
        #expect(chat.driver.statuses.current == .offline)
        #expect(await chat.driver.machine?.connection == 0)
    }

    // MARK: Files that aren't shared

    @Test(
        "a client whose files aren't shared is offline in the background too, keeps what is sent there, and sends it when the app is back",
        arguments: [true, false])
    func ownFiles(isInMemory: Bool) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat(storage: isInMemory ? .inMemory : .directory(directory))
        try await chat.connect()
        let list = chat.channel("general").messages()
        try await list.loaded()
        await chat.driver.take(.background)
        #expect(chat.driver.statuses.current == .offline)
        if !isInMemory { #expect(try takeLock(of: folder) == nil) }
        try await chat.channel("general").send("kept")
        try await until { list.items.map(\.text) == ["welcome", "kept"] }
        #expect(try await chat.driver.files().outbox.count() == 1)

        await chat.driver.take(.foreground)
        try await until { chat.driver.statuses.current == .online }
        try await until { try await chat.driver.files().outbox.count() == 0 }
        try await until { list.items.last?.state == .sent }
        #expect(list.items.map(\.text) == ["welcome", "kept"])
        await chat.disconnect()
    }

    @Test("a connection that the app makes in the background lasts, and is still there when the app is back")
    func connectedInBackground() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        // The server doesn't answer the pings of a client that checks its connection. On this clock it isn't late.
        let chat = chat(storage: .directory(directory), clock: ManualClock())
        try await chat.connect()
        await chat.driver.take(.background)
        try await chat.connect()
        try await chat.channel("general").sendConfirmed("the last one")
        await chat.driver.take(.otherNetwork)
        await chat.driver.take(.foreground)
        #expect(chat.driver.statuses.current == .online)
        #expect(await chat.driver.machine?.connection == 2)
        await chat.disconnect()
    }

    @Test("a call that is in flight when the app goes to the background fails, and a message that is being sent arrives later")
    func inFlight() async throws {
        let chat = chat(ScriptedServer { _ in .nothing }, storage: .inMemory)
        try await chat.connect()
        let call = Task { try await chat.call(GetMe()) }
        let send = Task { try await chat.channel("general").sendConfirmed("hi") }
        try await until { await !chat.driver.replies.isEmpty }
        try await until { try await chat.driver.files().outbox.count() == 1 }
        await chat.driver.take(.background)
        let error = await #expect(throws: RoostError.self) { try await call.value }
        #expect(error?.code == .notConnected)
        #expect(try await chat.driver.files().outbox.count() == 1)
        #expect(await chat.driver.confirmations.count == 1)
        send.cancel()
        await #expect(throws: CancellationError.self) { try await send.value }
    }

    @Test("a chat that is connected for the first time in the background starts with the knowledge that nobody reads")
    func startedInBackground() async throws {
        let chat = chat(storage: .inMemory)
        await chat.driver.take(.background)
        try await chat.connect()
        #expect(await chat.driver.machine?.pausedReading?.isEmpty == true)
        await chat.driver.take(.foreground)
        try await until { await chat.driver.machine?.pausedReading == nil }
        await chat.disconnect()
    }
}

extension SyncDriver {
    /// Has inputs wait, as after a batch that is under way.
    func beginBatch() async {
        await rest()
        isDraining = true
    }

    func endBatch() async {
        isDraining = false
        await drain()
    }
}
