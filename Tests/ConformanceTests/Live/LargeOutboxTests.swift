import Foundation
import Logging
import RoostAPI
import RoostTestSupport
import Testing

@testable import Roost

/// A very large outbox.
@MainActor @Suite struct LargeOutboxTests {
    private static let count: Int64 = 100_000

    /// Writes the file of a device that was offline: messages in a channel, and unanswered operations.
    private func fill(_ directory: URL, at url: URL) async throws {
        let folder = directory.appending(component: SyncFiles.folderName(of: "ann", at: url))
        try StoreFolder.make(folder)
        let outbox = try Outbox(url: folder.appending(component: "outbox.sqlite"), logger: Logger(label: "test"))
        try await outbox.apply(
            (1...Self.count).map { number in
                let message = SendMessage(channel: "general", clientId: ClientID("c\(number)"), text: "\(number)")
                return .put(
                    OutboxItem(id: number, number: number, operation: .send(message), createdAt: Timestamp(milliseconds: number)))
            })
    }

    @Test(
        "with 100,000 queued messages the app opens, shows the first and the last, and the first fifty arrive in order",
        .timeLimit(.minutes(3)))
    func large() async throws {
        let server = try await TestServer()
        _ = try await server.socket("ann")
        let bob = Chat(url: server.url, user: "bob", configuration: .init(storage: .inMemory)) { try await server.token("bob") }
        try await bob.connect()
        let general = try await bob.createChannel("general", users: ["ann"])
        let directory = TemporaryDirectory.make()
        try await fill(directory, at: server.url)

        let ann = Chat(url: server.url, user: "ann", configuration: .init(storage: .directory(directory))) {
            try await server.token("ann")
        }
        let list = ann.channel("general").messages()
        try await ann.outbox.loaded()
        #expect(ann.outbox.count == Int(Self.count) && ann.outbox.hasMore)
        #expect(ann.outbox.entries.map(\.id) == Array(1...Int64(LiveOutbox.pageSize)))
        try await ann.outbox.loadMore()
        #expect(ann.outbox.entries.map(\.id) == Array(1...Int64(2 * LiveOutbox.pageSize)))
        await ann.outbox.discard(ann.outbox.entries[1])

        try await ann.connect()
        let arrived = general.messages()
        try await wait("some that arrived", within: .seconds(60)) { arrived.items.count >= 50 }
        // The list continues with arriving messages, and holds a window of them.
        let shown = arrived.items.compactMap { Int($0.text) }
        let (oldest, newest) = (try #require(shown.first), try #require(shown.last))
        #expect(shown == (oldest...newest).filter { $0 != 2 })
        let first = try await bob.call(ListMessages(channel: "general", after: 0, limit: 3)).messages
        #expect(first.map(\.content.text) == ["1", "3", "4"])
        #expect(list.items.count <= MessageList.rowsMax + 300)
        #expect(list.items.last?.text == "\(Self.count)" && list.items.last?.state == .pending)
        // Something else isn't held up.
        _ = try await ann.me()
        await #expect(throws: UnsentOperations.self) { try await ann.logOut() }
        try await ann.logOut(discardingUnsent: true)
        await bob.disconnect()
        try await server.stop()
    }
}
