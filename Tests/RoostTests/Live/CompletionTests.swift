import Foundation
import Logging
import Roost
import RoostAPI
import Testing

/// Work of the SDK for callback-based code.
@MainActor @Suite("Chat: completions", .timeLimit(.minutes(5)))
struct CompletionTests {
    private let server = ScriptedServer { call in
        call.operation == "user.me"
            ? .result(User(userId: "ann", createdAt: .init(milliseconds: 0), updatedAt: .init(milliseconds: 0))) : .nothing
    }

    /// The chat of a test that doesn't need a server.
    private func chat() -> Chat {
        Chat(
            url: URL(filePath: "/"), user: "ann",
            configuration: .init(
                storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, transport: server)
        ) { "token" }
    }

    @Test("§8.8 work with a completion runs on the main actor, and delivers its result there, once")
    func success() async throws {
        let chat = try await server.connected()
        var results: [UserID] = []
        let task = chat.perform { chat in
            MainActor.assertIsolated()
            return try await chat.me().userId
        } completion: { result in
            MainActor.assertIsolated()
            results.append((try? result.get()) ?? "failed")
        }
        #expect(results.isEmpty)
        await task.value
        #expect(results == ["ann"])
        await chat.disconnect()
    }

    @Test("§8.8 errors of the work are delivered unchanged")
    func failure() async {
        var errors: [RoostError?] = []
        let task = chat().perform {
            try await $0.me()
        } completion: { result in
            if case .failure(let error) = result { errors.append(error as? RoostError) }
        }
        await task.value
        #expect(errors == [RoostError(.notConnected, "There is no connection to the server.")])
    }

    @Test("§8.8 work that is cancelled before it begins isn't done, but its completion is called")
    func cancelledBefore() async {
        var isDone = false
        var results: [Result<Void, any Error>] = []
        let task = chat().perform { _ in
            isDone = true
        } completion: {
            results.append($0)
        }
        task.cancel()
        await task.value
        #expect(!isDone && results.count == 1)
        #expect(throws: CancellationError.self) { try results[0].get() }
    }

    @Test("§8.8 work that is cancelled while it waits for the server ends, and its completion is called once")
    func cancelledLater() async throws {
        let chat = try await server.connected()
        var results: [Result<Page<Message>, any Error>] = []
        let task = chat.perform {
            try await $0.mentions()
        } completion: {
            results.append($0)
        }
        try await until { await server.operations().contains("mention.list") }
        task.cancel()
        await task.value
        #expect(results.count == 1)
        #expect(throws: CancellationError.self) { _ = try results[0].get() }
        await chat.disconnect()
    }

    @Test("§8.8 pieces of work begin in order, and the chat stays until they have ended")
    func order() async {
        weak var chat: Chat?
        var begun: [Int] = []
        var tasks: [Task<Void, Never>] = []
        do {
            let made = self.chat()
            chat = made
            for number in 0..<20 {
                tasks.append(
                    made.perform { _ in
                        begun.append(number)
                        await letOthersRun(1)
                    } completion: { _ in
                        #expect(chat != nil)
                    })
            }
        }
        for task in tasks { await task.value }
        #expect(begun == Array(0..<20))
    }
}
