import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

@MainActor @Suite("Store: where it is", .timeLimit(.minutes(5)))
struct StorageTests {
    private let directory = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
    private let url = URL(filePath: "/")

    private func chat() -> Chat {
        var configuration = Chat.Configuration(
            storage: .directory(directory), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = TinyServer()
        return Chat(url: url, user: "ann", configuration: configuration) { "token" }
    }

    private var folder: URL { directory.appending(component: SyncFiles.folderName(of: "ann", at: url)) }

    @Test("the default place is the app's own; another one has to be named, and so has in-memory storage")
    func places() throws {
        let standard = try #require(try Chat.Storage.standard.directory)
        #expect(standard.path.hasSuffix("/\(Bundle.main.bundleIdentifier ?? ProcessInfo.processInfo.processName)/Roost"))
        #expect(try Chat.Storage.directory(directory).directory == directory)
        #expect(try Chat.Storage.inMemory.directory == nil)
        #expect(Chat.Configuration().storage == .standard)
    }

    @Test("another process that has the files open is an error, until it ends; other users of the machine can't read them")
    func locked() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let other = try #require(try takeLock(of: folder))
        let chat = chat()
        let error = await #expect(throws: RoostError.self) { try await chat.connect() }
        #expect(error?.code == .storageInUse && error?.message.contains("Another process") == true)
        close(other)
        try await chat.connect()
        #expect(try takeLock(of: folder) == nil)
        await chat.disconnect()
    }

    @Test("a folder that the client makes is accessible to its user alone")
    func permissions() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat()
        try await chat.connect()
        let mode = try FileManager.default.attributesOfItem(atPath: folder.path)[.posixPermissions] as? Int
        #expect(mode == 0o700)
        await chat.disconnect()
    }

    @Test("two chats of one process share the files, and the last of them releases them")
    func shared() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        var first: Chat? = chat()
        var second: Chat? = chat()
        try await first?.connect()
        try await second?.connect()
        await first?.disconnect()
        first = nil
        try await second?.channel("general").sendConfirmed("hi")
        #expect(try takeLock(of: folder) == nil)
        await second?.disconnect()
        second = nil
        // The last references go with tasks that are ending.
        var free: Int32?
        try await until {
            free = try takeLock(of: folder)
            return free != nil
        }
        if let free { close(free) }
    }

    @Test("a position that another chat of the process has outdated isn't written, until it is read again")
    func begunAfresh() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        func store() throws -> Store {
            let file = directory.appending(component: "cache.sqlite")
            return try Store(url: file, user: "ann", logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        }
        let (former, later) = (Position(cursor: 500, windowStart: 0), Position(cursor: 700, windowStart: 601))
        let (first, second) = (try store(), try store())
        try await first.write([.erase(epoch: "first"), .forget("general"), .position("general", former)])
        for store in [first, second] { _ = try await store.savedState() }
        try await first.write([.forget("general"), .position("general", later)])
        try await first.write([.position("general", later), .userPosition(1)])
        let moved = Position(cursor: 701, windowStart: 0)
        await #expect(throws: OpenFiles.RestartedElsewhere.self) { try await second.write([.position("general", moved)]) }
        // Other channels, and resets by the store itself, aren't affected.
        try await second.write([.position("other", moved)])
        #expect(try await second.savedState().channels["general"] == later)
        try await second.write([.position("general", later)])

        try await second.write([.leave("general")])
        await #expect(throws: OpenFiles.RestartedElsewhere.self) { try await first.write([.position("general", later)]) }
        try await first.write([.forget("general"), .position("general", later)])
        try await first.write([.erase(epoch: "second")])
        await #expect(throws: OpenFiles.RestartedElsewhere.self) { try await second.write([.userPosition(2)]) }
        await #expect(throws: OpenFiles.RestartedElsewhere.self) { try await second.write([.position("other", moved)]) }
        try await second.write([.erase(epoch: "second"), .userPosition(2), .position("other", moved)])
        #expect(try await first.savedState() == SavedState(epoch: "second", userCursor: 2, channels: ["other": moved]))
    }
}
