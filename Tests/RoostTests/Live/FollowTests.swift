import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

@MainActor @Suite("Live objects that ask the server", .timeLimit(.minutes(1)))
struct FollowTests {
    @Test("AM-29 R08 A change that comes right after the server's answer reaches the live object")
    func noGap() async throws {
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = ScriptedServer { _ in .error(.notFound("operation")) }
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        try await chat.connect()
        let signals = try await chat.driver.prepare().store.signals

        // While the driver is busy, nobody can begin to follow its changes.
        let work = BusyWork()
        let busy = Task { await chat.driver.perform(work) }
        while !work.isRunning { await Task.yield() }
        let (seen, continuation) = AsyncStream.makeStream(of: StoreChange.self)
        let token = chat.driver.follow(
            .channels, connected: { signals.signal(StoreChange(channels: ["general"])) }, failed: { _ in },
            changed: { continuation.yield($0) })
        for _ in 0..<1000 { await Task.yield() }
        work.end()
        await busy.value
        for await change in seen where change.channels == ["general"] { break }
        token.invalidate()
        await chat.disconnect()
    }
}

extension SyncDriver {
    fileprivate func perform(_ work: BusyWork) { work.run() }
}
