import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

@MainActor @Suite("Store: logging out", .timeLimit(.minutes(5)))
struct LogOutTests {
    private let directory = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
    private let url = URL(filePath: "/")

    private var folder: URL { directory.appending(component: SyncFiles.folderName(of: "ann", at: url)) }
    private var isThere: Bool { FileManager.default.fileExists(atPath: folder.path) }

    private func chat(
        _ storage: Chat.Storage? = nil, _ transport: any Transport = TinyServer(), clock: any Clock<Duration> = ContinuousClock()
    ) -> Chat {
        var configuration = Chat.Configuration(
            storage: storage ?? .directory(directory), followsSystem: false,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = transport
        configuration.clock = clock
        return Chat(url: url, user: "ann", configuration: configuration) { "token" }
    }

    @Test(
        "logging out deletes the files and empties what is shown; the chat is over, and another one starts with nothing",
        arguments: [true, false])
    func files(isInMemory: Bool) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat(isInMemory ? .inMemory : nil)
        try await chat.connect()
        let (list, messages) = (chat.channels(), chat.channel("general").messages())
        try await chat.channel("general").sendConfirmed("hi")
        try await until { !list.items.isEmpty && messages.items.count == 2 }
        #expect(isThere == !isInMemory)

        try await chat.logOut()
        #expect(!isThere)
        try await until { list.items.isEmpty && messages.items.isEmpty }
        try await until { chat.connection.status == .offline }
        let refused: [() async throws -> Void] = [
            { try await chat.connect() },
            { _ = try await chat.call(GetMe()) },
            { try await chat.channel("general").send("late") },
            { try await chat.channel("general").sendConfirmed("later") },
        ]
        for call in refused {
            let error = await #expect(throws: RoostError.self) { try await call() }
            #expect(error?.code == .unauthenticated)
        }
        // Again, and whatever else an app may still do.
        try await chat.logOut()
        await chat.disconnect()
        #expect(!isThere)

        let next = self.chat(isInMemory ? .inMemory : nil)
        #expect(try await next.driver.files().store.savedState() == SavedState())
        try await next.connect()
        #expect(isThere == !isInMemory)
        await next.disconnect()
    }

    @Test(
        "unsent messages prevent a log-out, after which the user continues, unless they are to be discarded",
        arguments: [true, false])
    func unsent(isDiscarding: Bool) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat()
        for text in ["one", "two"] { try await chat.channel("general").send(text) }
        let error = await #expect(throws: UnsentOperations.self) { try await chat.logOut() }
        #expect(error?.count == 2)
        #expect(error?.localizedDescription == "2 messages and changes haven't reached the server, and would be deleted.")
        #expect(isThere)
        if isDiscarding {
            try await chat.logOut(discardingUnsent: true)
        } else {
            try await chat.connect()
            try await chat.channel("general").sendConfirmed("three")
            try await chat.logOut()
        }
        #expect(!isThere)
    }

    @Test("waits that are pending at a log-out end with an error")
    func waiting() async throws {
        let chat = chat(.inMemory, ScriptedServer { _ in .nothing })
        try await chat.connect()
        let call = Task { try await chat.call(GetMe()) }
        let send = Task { try await chat.channel("general").sendConfirmed("hi") }
        try await until { await !chat.driver.replies.isEmpty }
        try await until { try await !chat.driver.files().outbox.items().isEmpty }
        try await chat.logOut(discardingUnsent: true)
        let ended = await #expect(throws: RoostError.self) { try await call.value }
        #expect(ended?.code == .notConnected)
        let unsent = await #expect(throws: RoostError.self) { try await send.value }
        #expect(unsent?.code == .unauthenticated)
    }

    @Test("while another chat or another process has the files, a log-out is refused, and nothing changes")
    func shared() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat()
        try await chat.connect()
        var other: Chat? = self.chat()
        try await other?.connect()
        let error = await #expect(throws: RoostError.self) { try await chat.logOut() }
        #expect(error?.code == .storageInUse && error?.message.contains("Another chat of this process") == true)
        try await chat.channel("general").sendConfirmed("still here")
        await other?.disconnect()
        other = nil
        // The other's last references go with tasks that are ending.
        try await until { try await !chat.driver.files().isShared }
        // The other one has fetched everything again, so this one had to start from what is stored, and may be sending again.
        try await until { try await chat.driver.files().outbox.count() == 0 }
        try await chat.logOut()
        #expect(!isThere)

        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let process = try #require(try takeLock(of: folder))
        for erase in [{ try await Chat.erase("ann", at: url, in: .directory(directory)) }, { try await self.chat().logOut() }] {
            let error = await #expect(throws: RoostError.self) { try await erase() }
            #expect(error?.code == .storageInUse && error?.message.contains("Another process") == true)
        }
        #expect(isThere)
        close(process)
    }

    @Test(
        "while another process can add unsent operations they aren't counted; a refused log-out then leaves the files as free as before"
    )
    func extensionAtWork() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat(.shared(directory))
        try await chat.channel("general").send("unsent")
        await chat.driver.take(.background)
        let process = try #require(try takeLock(of: folder))
        let error = await #expect(throws: RoostError.self) { try await chat.logOut() }
        #expect(error?.code == .storageInUse && error?.message.contains("Another process") == true)
        close(process)
        await #expect(throws: UnsentOperations(count: 1)) { try await chat.logOut() }
        close(try #require(try takeLock(of: folder)))

        // Back in the foreground, another process still has them.
        let other = try #require(try takeLock(of: folder))
        await chat.driver.take(.foreground)
        close(other)
        await #expect(throws: UnsentOperations(count: 1)) { try await chat.logOut() }
        close(try #require(try takeLock(of: folder)))
        try await chat.logOut(discardingUnsent: true)
        #expect(!isThere)
    }

    @Test("the files of a user whose chat isn't open are deleted by name, and no other user's")
    func erase() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        var chat: Chat? = chat()
        try await chat?.channel("general").send("unsent")
        let storage = Chat.Storage.directory(directory)
        let error = await #expect(throws: RoostError.self) { try await Chat.erase("ann", at: url, in: storage) }
        #expect(error?.code == .storageInUse && isThere)
        chat = nil
        try await Chat.erase("bob", at: url, in: storage)
        try await Chat.erase("ann", at: URL(filePath: "/other"), in: .inMemory)
        #expect(isThere)
        // The chat's last references go with tasks that are ending.
        try await until {
            try? await Chat.erase("ann", at: url, in: storage)
            return !isThere
        }
        try await Chat.erase("ann", at: url, in: storage)
        // There is no folder that could be locked.
        try Data().write(to: folder)
        let failure = await #expect(throws: RoostError.self) { try await Chat.erase("ann", at: url, in: storage) }
        #expect(failure?.code == .storageNotDeleted && isThere)
    }

    @Test("a log-out that has ended the chat and can't delete its files says so by the code, and another one deletes them")
    func notDeleted() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let clock = ManualClock()
        let chat = chat(nil, ScriptedServer { _ in .nothing }, clock: clock)
        try await chat.connect()
        // The server doesn't answer when the device is signed out, after the check that nothing else has the files.
        let logOut = Task { try await chat.logOut(signingOutDevice: true) }
        try await until { await chat.driver.isLoggingOut }
        var other: FolderLock? = try FolderLock(folder)
        #expect(other?.isShared == true)
        try await until { clock.ends.contains(.seconds(5)) }
        clock.advance(by: .seconds(5))
        let error = await #expect(throws: RoostError.self) { try await logOut.value }
        #expect(error?.code == .storageNotDeleted && error?.message.contains("Another chat of this process") == true)
        #expect(isThere)
        let ended = await #expect(throws: RoostError.self) { try await chat.connect() }
        #expect(ended?.code == .unauthenticated)
        other = nil
        try await chat.logOut()
        #expect(!isThere)
    }

    @Test("a user whose folder the app has deleted itself logs out, and starts with nothing, each time")
    func deletedByApp() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat()
        try await chat.connect()
        await chat.driver.rest()
        try FileManager.default.removeItem(at: directory)
        try await chat.logOut()
        try await chat.logOut()
        let next = self.chat()
        try await next.connect()
        try await next.channel("general").sendConfirmed("hi")
        try await next.logOut()
        #expect(!isThere)
    }

    @Test("a folder that was deleted and made again gets a new lock, independent of the former one")
    func madeAgain() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let first = try FolderLock(folder)
        let folder = folder
        try await first.deleteFolder {
            // A new chat would have files that vanish.
            let error = #expect(throws: RoostError.self) { try FolderLock(folder) }
            #expect(error?.message.contains("is deleting") == true)
        }
        #expect(!isThere)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let second = try FolderLock(folder)
        #expect(try takeLock(of: folder) == nil)
        // A released one holds nothing.
        try await first.deleteFolder()
        #expect(isThere && !second.isShared)
    }

    @Test("a folder that another process deletes after it was made here, and before it is locked, is made again")
    func deletedBeforeLocking() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        try StoreFolder.make(folder)
        try FileManager.default.removeItem(at: folder)
        let lock = try FolderLock(folder)
        #expect(isThere)
        #expect(try takeLock(of: folder) == nil)
        try await lock.deleteFolder()
        #expect(!isThere)
        // A lock file that can't be created for another reason is reported.
        try StoreFolder.make(folder)
        try FileManager.default.createSymbolicLink(
            at: folder.appending(component: "lock"), withDestinationURL: directory.appending(components: "nowhere", "lock"))
        #expect(throws: POSIXError.self) { try FolderLock(folder) }
    }

    @Test("a folder is another process's once everything of this process that has it has given way, and not before")
    func severalGiveWay() throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let first = try FolderLock(folder)
        var second: FolderLock? = try FolderLock(folder)
        first.giveWay()
        first.giveWay()
        #expect(try takeLock(of: folder) == nil)
        second?.giveWay()
        close(try #require(try takeLock(of: folder)))
        try second?.takeBack()
        #expect(try takeLock(of: folder) == nil)
        // A released one no longer needs it.
        second = nil
        close(try #require(try takeLock(of: folder)))
        try first.takeBack()
        #expect(try takeLock(of: folder) == nil)
    }

    @Test("a folder that another process made in the place of a deleted one isn't taken for it, nor deleted with it")
    func anothersFolder() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let first = try FolderLock(folder)
        first.giveWay()
        try first.takeBack()
        first.giveWay()
        try FileManager.default.removeItem(at: folder)
        #expect(throws: RoostError.self) { try first.takeBack() }
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        close(try #require(try takeLock(of: folder)))
        let error = #expect(throws: RoostError.self) { try first.takeBack() }
        #expect(error?.code == .storageGone && error?.message.contains("has deleted") == true)

        let second = try FolderLock(folder)
        #expect(try takeLock(of: folder) == nil)
        #expect(!first.isShared && !second.isShared)
        try await first.deleteFolder()
        #expect(isThere)
        try second.takeBack()
        try await second.deleteFolder()
        #expect(!isThere)
    }
}
