import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

@MainActor @Suite("Watching: lists of watchers", .timeLimit(.minutes(5)))
struct WatcherListTests {
    @Test("ST-14 A list whose pages bring nobody new is loaded, and doesn't go on asking")
    func samePage() async throws {
        let server = ScriptedServer { call in
            guard call.operation == "channel.listWatchers" else { return .result(Done()) }
            return .result(WatcherPage(watchers: [UserSummary(userId: "ann")], watcherCount: 3))
        }
        let configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, transport: server)
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        try await chat.connect()
        let list = chat.channel("general").watchers(pageSize: 2)
        try await list.loaded()
        #expect(list.items.map(\.userId) == ["ann"])
        #expect(await server.operations().filter { $0 == "channel.listWatchers" }.count == 2)
        await chat.disconnect()
    }
}
