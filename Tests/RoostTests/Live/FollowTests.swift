import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

@MainActor @Suite("Live objects that ask the server", .timeLimit(.minutes(5)))
struct FollowTests {
    @Test("AM-29 R08 a change right after the server's answer reaches the live object")
    func noGap() async throws {
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = ScriptedServer { _ in .error(.notFound("operation")) }
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        try await chat.connect()
        let signals = try await chat.driver.prepare().store.signals

        // Until the files are open, their changes can't be followed.
        let (opened, open) = AsyncStream.makeStream(of: Void.self)
        try await chat.driver.openFiles(after: opened)
        let (seen, continuation) = AsyncStream.makeStream(of: StoreChange.self)
        let token = chat.driver.follow(
            .channels, connected: { signals.signal(StoreChange(channels: ["general"])) }, failed: { _ in },
            changed: { continuation.yield($0) })
        await letOthersRun()
        open.finish()
        for await change in seen where change.channels == ["general"] { break }
        token.invalidate()
        await chat.disconnect()
    }
}

extension SyncDriver {
    /// Has callers that need the files wait.
    func openFiles(after opened: AsyncStream<Void>) async throws {
        let files = try await files()
        opening = Task {
            for await _ in opened {}
            return files
        }
    }
}
