import Dispatch
import Foundation
import GRDB
import Logging
import RoostAPI
import Synchronization
import Testing

@testable import Roost

/// The requests of and to a chat that is about to end.
@MainActor @Suite("Store: about to log out", .timeLimit(.minutes(5)))
struct LogOutCheckTests {
    private let directory = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
    private let url = URL(filePath: "/")

    private func configuration(_ storage: Chat.Storage) -> Chat.Configuration {
        var configuration = Chat.Configuration(storage: storage, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = TinyServer()
        return configuration
    }

    @Test(
        "a request during the check whether the user can log out waits for it, and is then carried out or refused",
        arguments: [true, false])
    func asked(isUnsent: Bool) async throws {
        let chat = Chat(url: url, user: "ann", configuration: configuration(.inMemory)) { "token" }
        if isUnsent { try await chat.channel("general").send("unsent") }
        let outbox = try await chat.driver.files().outbox
        // The outbox is busy: its contents can't be counted.
        let (isRead, isFree) = (AsyncStream.makeStream(of: Void.self), DispatchSemaphore(value: 0))
        let reading = Task.detached {
            try await outbox.read { _ in
                isRead.continuation.finish()
                isFree.wait()
            }
        }
        for await _ in isRead.stream {}
        let logOut = Task { try await chat.logOut() }
        try await until { await chat.driver.isCheckingLogOut }
        let send = Task { try await chat.channel("general").send("meanwhile") }
        await letOthersRun()
        isFree.signal()
        try await reading.value
        if isUnsent {
            await #expect(throws: UnsentOperations.self) { try await logOut.value }
            _ = try await send.value
            #expect(try await outbox.count() == 2)
        } else {
            try await logOut.value
            let refusal = await #expect(throws: RoostError.self) { try await send.value }
            #expect(refusal?.code == .unauthenticated)
        }
    }

    @Test("a mark that reads the store while the user logs out is refused, and doesn't hang")
    func marking() async throws {
        let chat = Chat(url: url, user: "ann", configuration: configuration(.inMemory)) { "token" }
        let channel = chat.channel("general")
        try await channel.loaded()
        let store = try await chat.driver.prepare().store
        // The store is busy: how far the channel is read can't be looked up.
        let (isRead, isFree) = (AsyncStream.makeStream(of: Void.self), DispatchSemaphore(value: 0))
        let reading = Task.detached {
            try await store.read { _ in
                isRead.continuation.finish()
                isFree.wait()
            }
        }
        for await _ in isRead.stream {}
        let mark = Task { try await chat.driver.enqueue(.read(MarkRead(channel: "general"))) }
        await letOthersRun()
        let logOut = Task { try await chat.logOut(discardingUnsent: true) }
        try await until { await chat.driver.hasEnded }
        isFree.signal()
        try await reading.value
        let refusal = await #expect(throws: RoostError.self) { try await mark.value }
        #expect(refusal?.code == .unauthenticated)
        try await logOut.value
    }

    @Test("after logging out all channels can't be marked as read, and signals end at once")
    func over() async throws {
        let chat = Chat(url: url, user: "ann", configuration: configuration(.inMemory)) { "token" }
        try await chat.logOut()
        let refusal = await #expect(throws: RoostError.self) { try await chat.markAllRead() }
        #expect(refusal?.code == .unauthenticated)
        for await _ in chat.channel("general").signals {}
    }

    @Test("an unreadable store is reported as such by marking all channels as read")
    func unreadable() async throws {
        let chat = Chat(url: url, user: "ann", configuration: configuration(.inMemory)) { "token" }
        try await chat.driver.prepare().store.change { try $0.execute(sql: "DROP TABLE memberships") }
        let refusal = await #expect(throws: RoostError.self) { try await chat.markAllRead() }
        #expect(refusal?.code == .storageFailed && refusal?.message.contains("can't be read") == true)
    }

    @Test("a log-out that signs out the device asks the server if there is a connection, and waits for its answer for some seconds")
    func unansweredSignOut() async throws {
        let (server, clock) = (ScriptedServer { _ in .nothing }, ManualClock())
        let chat = try await server.connected(clock)
        let logOut = Task { try await chat.logOut(signingOutDevice: true) }
        try await until { clock.ends.contains(.seconds(5)) }
        #expect(await !chat.driver.hasEnded)
        clock.advance(by: .seconds(5))
        try await logOut.value
        try await until { await server.operations().contains("device.signOut") }
        #expect(await chat.driver.hasEnded)

        let never = Chat(url: url, user: "ann", configuration: configuration(.inMemory)) { "token" }
        try await never.logOut(signingOutDevice: true)
    }

    /// Answers like a server that has signed out the device: it closes the connection for lack of a valid token.
    private struct SigningOut: Transport {
        let server = ScriptedServer { $0.operation == "device.signOut" ? .lost : .nothing }

        func run(
            url: URL, outgoing: AsyncStream<TransportCommand>, receive: @escaping @Sendable (TransportEvent) async -> Void
        ) async {
            await server.run(url: url, outgoing: outgoing) { event in
                guard case .closed = event else { return await receive(event) }
                await receive(.closed(code: CloseCode.tokenRevoked.rawValue, reason: "token_revoked"))
            }
        }
    }

    @Test("a device that is signed out with the log-out doesn't ask for another token, and doesn't connect again")
    func noNewToken() async throws {
        var configuration = configuration(.inMemory)
        configuration.transport = SigningOut()
        let fetches = Turn()
        let chat = Chat(url: url, user: "ann", configuration: configuration) {
            _ = fetches.next()
            return "token"
        }
        try await chat.connect()
        try await chat.logOut(signingOutDevice: true)
        await letOthersRun()
        #expect(fetches.next() == 1)
        #expect(chat.driver.statuses.current == .offline)
        let refusal = await #expect(throws: RoostError.self) { _ = try await chat.deviceId }
        #expect(refusal?.code == .unauthenticated)
    }

    private final class Provider: Sendable {
        let isAsked = Atomic(false)
        let isCancelled = Atomic(false)
    }

    @Test("a token provider that doesn't answer is cancelled with its chat, and doesn't keep the files")
    func unansweredToken() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let storage = Chat.Storage.directory(directory)
        let provider = Provider()
        let (answered, answer) = AsyncStream.makeStream(of: Void.self)
        var chat: Chat? = Chat(url: url, user: "ann", configuration: configuration(storage)) {
            provider.isAsked.store(true, ordering: .relaxed)
            // It ignores its cancellation.
            await withTaskCancellationHandler {
                await Task.detached { for await _ in answered {} }.value
            } onCancel: {
                provider.isCancelled.store(true, ordering: .relaxed)
            }
            return "token"
        }
        chat?.start()
        try await until { provider.isAsked.load(ordering: .relaxed) }
        chat = nil
        try await until { provider.isCancelled.load(ordering: .relaxed) }
        try await until { (try? await Chat.erase("ann", at: url, in: storage)) != nil }
        answer.finish()
    }
}
