import Dispatch
import Foundation
import GRDB
import Logging
import RoostAPI
import Testing

@testable import Roost

@Suite("Store: readers next to the writer", .timeLimit(.minutes(5)))
struct ReaderTests {
    private let folder = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
    private static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    @Test("a read of a file doesn't wait for a transaction, and gets all of the state before it, or the one after its commit")
    func beside() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let store = try Store(url: folder.appending(component: "cache.sqlite"), user: "ann", logger: Self.logger)
        try await store.write([.users([UserSummary(userId: "bob", displayName: "Bob", version: 1)])])
        let (begun, hasBegun) = AsyncStream.makeStream(of: Void.self)
        let mayEnd = DispatchSemaphore(value: 0)
        let writing = Task {
            try await store.change { database in
                _ = try database.save([UserSummary(userId: "bob", displayName: "Robert", version: 2)])
                hasBegun.finish()
                mayEnd.wait()
            }
        }
        for await _ in begun {}
        #expect(try await store.read { try $0.summary(of: "bob").name } == "Bob")
        mayEnd.signal()
        try await writing.value
        #expect(try await store.read { try $0.summary(of: "bob").name } == "Robert")
    }

    @Test("the connection that writes has a cache of 8 MB, and those that read SQLite's default of 2")
    func pageCaches() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let store = try Store(url: folder.appending(component: "cache.sqlite"), user: "ann", logger: Self.logger)
        try await store.change { database in
            let writing: Int? = try database.value("PRAGMA cache_size")
            #expect(writing == -8000)
        }
        let reading: Int? = try await store.read { try $0.value("PRAGMA cache_size") }
        #expect(reading == -2000)
    }

    @Test(
        "files that are released during more reads than there are threads for tasks wait for the readers and hold up nothing else")
    func detachFile() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let mayEnd = DispatchSemaphore(value: 0)
        let bob = UserSummary(userId: "bob", displayName: "Bob", version: 1)
        let isKnown = { @Sendable (store: Store) in try await store.read { try $0.summary(of: "bob") } == bob }
        try await withThrowingTaskGroup(of: Void.self) { group in
            var stores: [Store] = []
            for number in 0...ProcessInfo.processInfo.activeProcessorCount {
                let store = try Store(
                    url: folder.appending(components: "\(number)", "cache.sqlite"), user: "ann", logger: Self.logger)
                try await store.write([.users([bob])])
                let (begun, hasBegun) = AsyncStream.makeStream(of: Void.self)
                group.addTask {
                    let read = try await store.read { database in
                        hasBegun.finish()
                        mayEnd.wait()
                        return try database.summary(of: "bob")
                    }
                    #expect(read == bob)
                }
                for await _ in begun {}
                group.addTask { try await store.detachFile() }
                stores.append(store)
            }
            do {
                // The group waits for the readers, even if the test fails.
                defer { for _ in stores { mayEnd.signal() } }
                for store in stores { try await until { try await !isKnown(store) } }
            }
            try await group.waitForAll()
        }
    }

    @Test("the next page of a resume is requested before the received one is stored")
    func ahead() async throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        var configuration = Chat.Configuration(storage: .directory(folder), logger: Self.logger)
        let server = PagedServer()
        configuration.transport = server
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        let store = try await chat.driver.files().store
        try await store.write([.erase(epoch: "first")])
        let (begun, hasBegun) = AsyncStream.makeStream(of: Void.self)
        let mayEnd = DispatchSemaphore(value: 0)
        let writing = Task {
            try await store.change { _ in
                hasBegun.finish()
                mayEnd.wait()
            }
        }
        for await _ in begun {}
        // Nothing can be stored now, but the second request is sent.
        chat.start()
        await server.second.wait()
        mayEnd.signal()
        try await writing.value
        try await chat.connect()
        #expect(try await store.read { try ChannelQuery(hidden: .all).places(in: $0).count } == 2)
        await chat.disconnect()
    }
}

/// Answers a resume in two pages, each with a channel.
private actor PagedServer: Transport {
    private struct Call: Decodable {
        var call: Int64
    }

    let second = Gate()
    private var count = 0

    func run(
        url: URL, outgoing: AsyncStream<TransportCommand>, receive: @escaping @Sendable (TransportEvent) async -> Void
    ) async {
        await receive(.opened)
        for await command in outgoing {
            guard case .message(let bytes) = command else { continue }
            guard let call = try? JSONDecoder().decode(Call.self, from: Data(bytes)) else {
                await send(Self.welcome, receive)
                continue
            }
            count += 1
            if count == 2 { second.open() }
            let channel = ChannelID("c\(count)")
            let changes = Changes(
                stream: .channel(channel), rows: Self.rows(of: channel), seq: 1, hasMore: false, isFresh: true)
            let page = Resumption(
                user: Changes(stream: .user("ann"), rows: Rows(), seq: 0, hasMore: false), channels: [changes], hasMore: count == 1)
            await send(Reply(reply: call.call, result: page), receive)
        }
        await receive(.closed(code: nil, reason: ""))
    }

    private func send(_ frame: some Encodable, _ receive: @Sendable (TransportEvent) async -> Void) async {
        if let bytes = try? JSONWriter.bytes(of: frame) { await receive(.message(bytes)) }
    }

    private struct Reply: Encodable {
        var reply: Int64
        var result: Resumption
    }

    private static func rows(of id: ChannelID) -> Rows {
        let at = Timestamp(milliseconds: 1)
        let channel = Channel(
            channelId: id, type: .community, counters: ChannelCounters(seq: 1, memberCount: 1, messageCount: 0, lastActivity: at),
            createdBy: "bob", createdAt: at, updatedAt: at)
        let membership = Membership(
            channelId: id, role: .member, state: .member, joinedAt: at, joinedSeq: 1, readSeq: 0, readCount: 0, channelSeq: 1,
            userSeq: 0)
        return Rows(channel: channel, [membership])
    }

    private static let welcome = WelcomeFrame(
        welcome: .init(
            user: "ann", role: .user, connection: 1, server: "server", epoch: "first", version: "0.1.0",
            now: Timestamp(milliseconds: 0),
            tokenExpiresAt: Timestamp(milliseconds: 0), pingIntervalSeconds: 30))
}

/// Opens once.
private final class Gate: Sendable {
    private let opened: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    init() { (opened, continuation) = AsyncStream.makeStream(of: Void.self) }

    func open() { continuation.finish() }
    func wait() async { for await _ in opened {} }
}
