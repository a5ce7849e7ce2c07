import Foundation
import GRDB
import Logging
import RoostAPI
import Synchronization
import Testing

@testable import Roost

@MainActor @Suite("Connection: what happens to the app", .serialized, .timeLimit(.minutes(5)))
struct SystemEventTests {
    private let directory = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
    private let url = URL(filePath: "/")

    private final class Seen: Sendable {
        private let events = Mutex<[SystemEvents.Event]>([])
        var all: [SystemEvents.Event] { events.withLock { $0 } }
        func put(_ event: SystemEvents.Event) { events.withLock { $0.append(event) } }
    }

    @Test("the notifications of Apple's systems are delivered in order, until the token is released")
    func notifications() async throws {
        let (center, seen) = (NotificationCenter(), Seen())
        func post(_ name: String) { center.post(name: Notification.Name(name), object: nil) }
        var token: ObservationToken? = SystemEvents.follow(center) { seen.put($0) }
        // Following begins a moment later.
        try await until {
            post("UIApplicationWillEnterForegroundNotification")
            return !seen.all.isEmpty
        }
        post("UIApplicationDidEnterBackgroundNotification")
        post("WKApplicationWillEnterForegroundNotification")
        try await until { seen.all.contains(.background) && seen.all.last == .foreground }
        #expect(seen.all.suffix(3) == [.foreground, .background, .foreground])
        #expect(token?.isInvalidated == false)
        token = nil
        await letOthersRun()
        let before = seen.all
        post("UIApplicationDidEnterBackgroundNotification")
        await letOthersRun()
        #expect(seen.all == before)
    }

    @Test("the system is asked to wait when the app goes to the background, before anything else, until that is handled")
    func holding() async throws {
        let center = NotificationCenter()
        let seen = Mutex<[String]>([])
        @Sendable func note(_ text: String) { seen.withLock { $0.append(text) } }
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let hold: SystemEvents.Hold = {
            note("hold")
            return { note("release") }
        }
        let token = SystemEvents.follow(center, holding: hold) { event in
            note("\(event)")
            if event == .background { for await _ in gate {} }
        }
        try await until {
            center.post(name: Notification.Name("UIApplicationWillEnterForegroundNotification"), object: nil)
            return seen.withLock { !$0.isEmpty }
        }
        center.post(name: Notification.Name("UIApplicationDidEnterBackgroundNotification"), object: nil)
        // Requested by the notification itself.
        #expect(seen.withLock { $0.contains("hold") })
        try await until { seen.withLock { $0.last == "background" } }
        await letOthersRun()
        #expect(seen.withLock { !$0.contains("release") })
        open.finish()
        try await until { seen.withLock { $0.last == "release" } }
        #expect(seen.withLock { $0.filter { $0 != "foreground" } } == ["hold", "background", "release"])
        token.invalidate()
        // If the system doesn't suspend apps, it isn't asked.
        SystemEvents.hold()()
    }

    @Test("a chat follows its app's events unless it is configured not to", arguments: [true, false])
    func followsSystem(follows: Bool) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        // The other chats of this process get it too. It changes nothing for those that aren't in the background.
        func activate(_ chat: Chat) async throws {
            try await until {
                NotificationCenter.default.post(name: Notification.Name("UIApplicationDidBecomeActiveNotification"), object: nil)
                return await !chat.driver.isInBackground
            }
        }
        var configuration = Chat.Configuration(
            storage: .directory(directory), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = TinyServer()
        #expect(configuration.followsSystem)
        configuration.followsSystem = follows
        let chat = Chat(url: url, user: "ann", configuration: configuration) { "token" }
        // One that follows in any case shows that the notifications arrive.
        let other = self.chat(.inMemory)
        for chat in [chat, other] {
            try await chat.connect()
            await chat.driver.take(.background)
        }
        try await activate(other)
        if follows { try await activate(chat) } else { await letOthersRun() }
        #expect(await chat.driver.isInBackground == !follows)
        if follows { try await until { chat.driver.statuses.current == .online } }
        #expect(chat.driver.statuses.current == (follows ? .online : .offline))
        for chat in [chat, other] { await chat.disconnect() }
    }

    @Test("a change of network is reported; the first report and the loss of one aren't")
    func networks() {
        var changes = PathChanges()
        let reports: [[String]?] = [["wifi"], ["wifi"], nil, ["wifi"], ["cell"], ["cell", "wifi"], nil, nil]
        #expect(reports.map { changes.isNews($0) } == [false, false, false, true, true, true, false, false])
        var offline = PathChanges()
        #expect([nil, ["cell"]].map { offline.isNews($0) } == [false, true])
    }

    // MARK: In the background

    private func chat(_ storage: Chat.Storage, token: @escaping @Sendable () async throws -> String = { "token" }) -> Chat {
        var configuration = Chat.Configuration(
            storage: storage, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = TinyServer()
        return Chat(url: url, user: "ann", configuration: configuration, token: token)
    }

    private var folder: URL { directory.appending(component: SyncFiles.folderName(of: "ann", at: url)) }

    @Test("in the background a client releases shared files, and is online again in the foreground")
    func shared() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat(.shared(directory))
        try await chat.connect()
        let list = chat.channel("general").messages()
        try await list.loaded()
        #expect(try takeLock(of: folder) == nil)

        await chat.driver.take(.background)
        let lock = try #require(try takeLock(of: folder))
        close(lock)
        try await until { chat.connection.status == .offline }
        // Existing rows can be read, and an operation that couldn't be kept is refused.
        #expect(
            try await StoredChat(user: "ann", at: url, in: .shared(directory)).messages(in: "general").map(\.text) == ["welcome"])
        let refusal = await #expect(throws: RoostError.self) { try await chat.channel("general").send("lost?") }
        #expect(refusal?.code == .storageInUse)

        await chat.driver.take(.foreground)
        for await status in chat.connection.updates where status == .online { break }
        try await chat.channel("general").sendConfirmed("back")
        for await update in list.updates where update.items.last?.text == "back" { break }
        #expect(list.items.map(\.text) == ["welcome", "back"])
        await chat.disconnect()
    }

    @Test("in the background the app's own databases are written as usual, even those that GRDB's notifications suspend")
    func others() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat(.shared(directory))
        try await chat.connect()
        var configuration = GRDB.Configuration()
        configuration.observesSuspensionNotifications = true
        let own = try DatabaseQueue(path: directory.appending(component: "own.sqlite").path, configuration: configuration)
        await chat.driver.take(.background)
        try await own.write { try $0.execute(sql: "CREATE TABLE notes (text TEXT)") }
        await chat.driver.take(.foreground)
        try await until { chat.connection.status == .online }
        await chat.disconnect()
    }

    @Test(
        "an app that goes to the background while the files are being opened is online when it returns",
        arguments: [true, false])
    func opening(isAwaited: Bool) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat(.shared(directory))
        let (opened, open) = AsyncStream.makeStream(of: Void.self)
        try await chat.driver.openFiles(after: opened)
        let connecting = isAwaited ? Task { try await chat.connect() } : nil
        if !isAwaited { chat.start() }
        try await until { await chat.driver.preparation != nil }
        let background = Task { await chat.driver.take(.background) }
        await letOthersRun()
        open.finish()
        await background.value
        let lock = try #require(try takeLock(of: folder))
        close(lock)
        #expect(chat.driver.statuses.current == .offline)
        _ = await connecting?.result

        await chat.driver.take(.foreground)
        try await until { chat.driver.statuses.current == .online }
        try await until { await chat.driver.pendingStarts == 0 }
        await chat.disconnect()
    }

    @Test("an app that disconnects in the background isn't connected when it returns")
    func disconnected() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat(.shared(directory))
        try await chat.connect()
        await chat.driver.take(.background)
        await chat.disconnect()
        await chat.driver.take(.foreground)
        #expect(chat.driver.statuses.current == .offline)
        #expect(await chat.driver.machine?.connection == 1)
        try await chat.connect()
        await chat.disconnect()
    }

    @Test(
        "a connection that is made in the background takes the files, and its end releases them again", arguments: [true, false])
    func connectedInBackground(isFirst: Bool) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat(.shared(directory))
        if !isFirst { try await chat.connect() }
        await chat.driver.take(.background)
        try await chat.connect()
        #expect(try takeLock(of: folder) == nil)
        await chat.disconnect()
        close(try #require(try takeLock(of: folder)))
        try await chat.connect()
        try await chat.channel("general").sendConfirmed("in the background")
        await chat.disconnect()
        close(try #require(try takeLock(of: folder)))
        // The app has disconnected.
        await chat.driver.take(.foreground)
        #expect(chat.driver.statuses.current == .offline)
        try await chat.connect()
        await chat.disconnect()
        #expect(try takeLock(of: folder) == nil)
    }

    @Test("a wait for a connection fails when the app goes to the background; the connection is made when the app is back")
    func waiting() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let (answers, answer) = AsyncStream.makeStream(of: Void.self)
        var configuration = Chat.Configuration(
            storage: .shared(directory), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = TinyServer()
        let chat = Chat(url: url, user: "ann", configuration: configuration) {
            for await _ in answers {}
            return "token"
        }
        let connecting = Task { try await chat.connect() }
        try await until { chat.driver.statuses.current == .connecting }
        await chat.driver.take(.background)
        let error = await #expect(throws: RoostError.self) { try await connecting.value }
        #expect(error?.code == .notConnected && error?.message == "The app went to the background.")
        await chat.driver.take(.foreground)
        answer.finish()
        try await until { chat.driver.statuses.current == .online }
        await chat.disconnect()
    }

    @Test("files that are unreadable when the app is back are read with the next attempt to connect; until then that is the status")
    func unreadable() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat(.shared(directory))
        try await chat.connect()
        await chat.driver.take(.background)
        try await self.chat(.shared(directory)).channel("general").send("left here")
        let outbox = try DatabaseQueue(path: folder.appending(component: "outbox.sqlite").path)
        try await outbox.write { try $0.execute(sql: "ALTER TABLE operations RENAME TO hidden") }
        await chat.driver.take(.foreground)
        guard case .failed(let error) = chat.driver.statuses.current else { throw RoostError(.internalError, "It isn't told.") }
        #expect(error.code == .storageFailed)
        let refusal = await #expect(throws: RoostError.self) { try await chat.connect() }
        #expect(refusal?.code == .storageFailed)
        try await until { await chat.driver.pendingStarts == 0 }
        try await outbox.write { try $0.execute(sql: "ALTER TABLE hidden RENAME TO operations") }
        try await chat.connect()
        try await until { try await chat.driver.files().outbox.count() == 0 }
        await chat.disconnect()
    }

    @Test("what another chat left in the files while the app was in the background is shown and sent when it returns")
    func left() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat(.shared(directory))
        try await chat.connect()
        let list = chat.channel("general").messages()
        try await list.loaded()
        await chat.driver.take(.background)
        // A chat of this process stands for another process's.
        try await self.chat(.shared(directory)).channel("general").send("left here")
        await chat.driver.take(.foreground)
        for await update in list.updates where update.items.last?.text == "left here" && update.items.last?.state == .sent { break }
        #expect(list.items.map(\.text) == ["welcome", "left here"])
        // The event arrives before the answer.
        try await until { try await chat.driver.files().outbox.count() == 0 }
        await chat.disconnect()
    }

    @Test("if another process has the files when the app returns, that is the status, until the app connects again")
    func taken() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat(.shared(directory))
        try await chat.connect()
        await chat.driver.take(.background)
        let lock = try #require(try takeLock(of: folder))
        await chat.driver.take(.foreground)
        guard case .failed(let error) = chat.driver.statuses.current else { throw RoostError(.internalError, "It isn't told.") }
        #expect(error.code == .storageInUse)
        let refusal = await #expect(throws: RoostError.self) { try await chat.connect() }
        #expect(refusal?.code == .storageInUse)
        // A chat that is disconnected then is offline, without a failure.
        await chat.disconnect()
        #expect(chat.driver.statuses.current == .offline)
        close(lock)
        try await chat.connect()
        try await chat.channel("general").sendConfirmed("hi")
        await chat.disconnect()
    }

    @Test("a chat that starts while another of the process has given way locks the files, unless another process has them")
    func newcomer() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat(.shared(directory))
        try await chat.connect()
        await chat.driver.take(.background)
        let process = try #require(try takeLock(of: folder))
        var other: Chat? = self.chat(.shared(directory))
        let error = await #expect(throws: RoostError.self) { try await other?.connect() }
        #expect(error?.code == .storageInUse && error?.message.contains("Another process") == true)
        close(process)
        try await other?.connect()
        #expect(try takeLock(of: folder) == nil)
        await other?.disconnect()
        other = nil
        // A chat that has given way still has, once the other's last references have gone with tasks that are ending.
        var lock: Int32?
        try await until {
            lock = try takeLock(of: folder)
            return lock != nil
        }
        close(try #require(lock))
        try await chat.connect()
        #expect(try takeLock(of: folder) == nil)
        await chat.disconnect()
    }

    @Test("in the background a user logs out, unless another process has the files: then nothing is deleted")
    func logOut() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat(.shared(directory))
        try await chat.connect()
        await chat.driver.take(.background)
        let process = try #require(try takeLock(of: folder))
        let error = await #expect(throws: RoostError.self) { try await chat.logOut() }
        #expect(error?.code == .storageInUse && error?.message.contains("Another process") == true)
        #expect(FileManager.default.fileExists(atPath: folder.appending(component: "outbox.sqlite").path))
        close(process)
        try await chat.logOut()
        #expect(!FileManager.default.fileExists(atPath: folder.path))
    }

    @Test("the status of a session that has ended is the same when the app is back, and shared files are released meanwhile")
    func endedSession() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let ended = RoostError(.unauthenticated, "The session has expired.")
        let chat = chat(.shared(directory)) { throw ended }
        await #expect(throws: ended) { try await chat.connect() }
        for await status in chat.connection.updates where status == .failed(ended) { break }
        await chat.driver.take(.background)
        #expect(chat.driver.statuses.current == .failed(ended))
        close(try #require(try takeLock(of: folder)))
        await chat.driver.take(.foreground)
        #expect(chat.driver.statuses.current == .failed(ended))
    }

    @Test("files that another process deleted and made again meanwhile are no longer written; a new chat has the new ones")
    func madeAgain() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat(.shared(directory))
        try await chat.connect()
        await chat.driver.take(.background)
        try FileManager.default.removeItem(at: directory)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        close(try #require(try takeLock(of: folder)))
        await chat.driver.take(.foreground)
        guard case .failed(let error) = chat.driver.statuses.current else { throw RoostError(.internalError, "It isn't told.") }
        #expect(error.code == .storageGone && error.message.contains("has deleted"))
        await #expect(throws: error) { try await chat.connect() }
        let refusal = await #expect(throws: RoostError.self) { try await chat.channel("general").send("lost?") }
        #expect(refusal?.code == .storageGone && refusal?.message.contains("has deleted") == true)

        let next = self.chat(.shared(directory))
        try await next.connect()
        #expect(try takeLock(of: folder) == nil)
        try await next.channel("general").sendConfirmed("kept")
        await next.disconnect()
    }

    @Test("an app that returns while its files are being released writes them only once it has locked them")
    func backAtOnce() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let files = try await chat(.shared(directory)).driver.files()
        for _ in 0..<1000 {
            let suspending = Task.detached { await files.suspend() }
            try files.resume()
            await suspending.value
            let isWritten = (try? await files.outbox.apply([])) != nil
            let lock = try takeLock(of: folder)
            if let lock { close(lock) }
            #expect(isWritten == (lock == nil))
            try files.resume()
        }
    }

    @Test("a damaged cache isn't replaced in the background, where another process may have the files, but once the app is back")
    func damaged() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat(.shared(directory))
        try await chat.connect()
        let store = try await chat.driver.files().store
        let setAside = folder.appending(component: "cache.sqlite.damaged-1").path
        let damage = DatabaseError(resultCode: .SQLITE_CORRUPT)
        await chat.driver.take(.background)
        let refusal = await #expect(throws: RoostError.self) { try await store.recover(from: damage) }
        #expect(refusal?.code == .storageInUse)
        #expect(!FileManager.default.fileExists(atPath: setAside))
        await chat.driver.take(.foreground)
        try await until { chat.driver.statuses.current == .online }
        #expect(try await store.recover(from: damage))
        #expect(FileManager.default.fileExists(atPath: setAside))
        await chat.disconnect()
    }

    @Test("files that aren't shared are kept in the background, and an app that wasn't connected isn't in the foreground")
    func kept() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let own = chat(.directory(directory))
        try await own.connect()
        await own.driver.take(.background)
        #expect(own.driver.statuses.current == .offline)
        #expect(try takeLock(of: folder) == nil)
        await own.disconnect()
        await own.driver.take(.foreground)
        await own.driver.take(.otherNetwork)
        #expect(own.driver.statuses.current == .offline)
    }
}
