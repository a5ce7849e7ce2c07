import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

/// Whether a chat with shared files connects by itself when its app returns from the background.
@MainActor @Suite("Connection: an app that comes back", .timeLimit(.minutes(5)))
struct ForegroundTests {
    private let directory = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
    private let url = URL(filePath: "/")

    private func chat(_ transport: any Transport = TinyServer(), clock: any Clock<Duration> = ContinuousClock()) -> Chat {
        let configuration = Chat.Configuration(
            storage: .shared(directory), followsSystem: false,
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
        "A client whose token was refused continues to try once the app is back; for a deactivated user it doesn't",
        arguments: [RoostError.Code.unauthenticated, .userDeactivated])
    func refused(code: RoostError.Code) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        // Its clock stands still, and with it the wait before the next attempt.
        let chat = chat(RefusingOnce(error: RoostError(code, "No.")), clock: ManualClock())
        let refusal = await #expect(throws: RoostError.self) { try await chat.connect() }
        #expect(refusal?.code == code)
        await chat.driver.take(.background)
        #expect(chat.driver.statuses.current == .offline)
        await chat.driver.take(.foreground)
        if code == .userDeactivated {
            #expect(chat.driver.statuses.current == .offline)
            #expect(await chat.driver.machine?.connection == 1)
        } else {
            try await until { chat.driver.statuses.current == .online }
        }
        await chat.disconnect()
    }

    @Test("An app that goes to the background while it disconnects isn't connected when it returns")
    func disconnecting() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat()
        try await chat.connect()
        await chat.driver.beginBatch()
        let disconnecting = Task { await chat.disconnect() }
        try await until { await chat.driver.stopsUnderWay == 1 }
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

    @Test("An app that disconnects, and goes to the background, while the files are being opened isn't connected when it returns")
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
        try await until { await chat.driver.startsUnderWay == 0 }
        #expect(chat.driver.statuses.current == .offline)
        #expect(await chat.driver.machine?.connection == 0)
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
