import Foundation
import Logging
import RoostAPI
import Synchronization
import Testing

@testable import Roost

/// Chats of an app that was launched in the background, by a push for instance, or that makes another chat there: no notification reports it.
@MainActor @Suite("Connection: a chat that is made in the background", .timeLimit(.minutes(5)))
struct BackgroundStartTests {
    private let directory = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
    private let url = URL(filePath: "/")
    private let center = NotificationCenter()
    private var folder: URL { directory.appending(component: SyncFiles.folderName(of: "ann", at: url)) }

    /// A chat that follows no system events by itself.
    private func chat(
        _ storage: Chat.Storage? = nil, at server: any Transport = TinyServer(), clock: any Clock<Duration> = ContinuousClock()
    ) -> Chat {
        let configuration = Chat.Configuration(
            storage: storage ?? .shared(directory), followsSystem: false,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, transport: server, clock: clock)
        return Chat(url: url, user: "ann", configuration: configuration) { "token" }
    }

    /// A chat that knows that its app is in the background, until the token is released.
    private func chatInBackground() async throws -> (Chat, ObservationToken) {
        let chat = chat()
        let following = chat.driver.followSystem(center) { true }
        try await until { await chat.driver.isInBackground }
        return (chat, following)
    }

    /// A chat that has asked whether its app is in the background. The answer is yes, once the continuation ends. It follows the app until the
    /// token is released.
    private func chatThatAsks() -> (Chat, ObservationToken, AsyncStream<Void>.Continuation) {
        let chat = chat()
        let (answers, answer) = AsyncStream.makeStream(of: Void.self)
        let following = chat.driver.followSystem(center) {
            for await _ in answers {}
            return true
        }
        return (chat, following, answer)
    }

    /// Puts a channel with a message into the files.
    private func fill() async throws {
        let chat = chat()
        try await chat.connect()
        await chat.disconnect()
    }

    private func post(_ name: String) { center.post(name: Notification.Name(name), object: nil) }

    /// Whether another process can take the files.
    private func isFree() throws -> Bool {
        guard let lock = try takeLock(of: folder) else { return false }
        close(lock)
        return true
    }

    // MARK: The check

    @Test(
        "the system is asked once; if the app is in the background, it is asked to wait until that is handled",
        arguments: [true, false, nil] as [Bool?])
    func asks(answer: Bool?) async throws {
        let seen = Mutex<[String]>([])
        @Sendable func note(_ text: String) { seen.withLock { $0.append(text) } }
        let hold: SystemEvents.Hold = {
            note("hold")
            return { note("release") }
        }
        let check: SystemEvents.BackgroundCheck = {
            note("check")
            return answer
        }
        let following = SystemEvents.follow(center, holding: hold, checking: check) { note("\($0)") }
        defer { following.invalidate() }
        let expected = ["check"] + (answer == true ? ["hold", "alreadyInBackground", "release"] : [])
        try await until { seen.withLock { $0.count } >= expected.count }
        await letOthersRun()
        #expect(seen.withLock { $0 } == expected)
        // There is no system to ask here.
        #expect(await SystemEvents.isInBackground() == nil)
    }

    @Test("a notification that arrives before the answer takes precedence")
    func overtaken() async throws {
        let seen = Mutex<[SystemEvents.Event]>([])
        let isAnswered = Mutex(false)
        let (answers, answer) = AsyncStream.makeStream(of: Void.self)
        let check: SystemEvents.BackgroundCheck = {
            for await _ in answers {}
            isAnswered.withLock { $0 = true }
            return true
        }
        let following = SystemEvents.follow(center, checking: check) { event in seen.withLock { $0.append(event) } }
        defer { following.invalidate() }
        // Following begins a moment later.
        try await until {
            post("UIApplicationWillEnterForegroundNotification")
            return seen.withLock { !$0.isEmpty }
        }
        answer.finish()
        try await until { isAnswered.withLock { $0 } }
        await letOthersRun()
        #expect(seen.withLock { !$0.contains(.alreadyInBackground) })
    }

    @Test("an app that becomes active is in the foreground; if it was there already, the server isn't pinged")
    func active() async throws {
        // The answer to the ping is awaited for a few seconds. On this clock they don't pass.
        let chat = chat(.inMemory, clock: ManualClock())
        try await chat.connect()
        await chat.driver.take(.active)
        await letOthersRun()
        #expect(await chat.driver.machine?.isBeingProbed == false)
        await chat.driver.take(.alreadyInBackground)
        await chat.driver.take(.active)
        #expect(await !chat.driver.isInBackground)
        try await until { await chat.driver.machine?.isBeingProbed == true }
        await chat.disconnect()
    }

    // MARK: The files

    @Test(
        "a list opens shared files, and releases them; an app that comes to the foreground takes them back",
        arguments: ["UIApplicationWillEnterForegroundNotification", "UIApplicationDidBecomeActiveNotification"])
    func list(notification: String) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        try await fill()
        let (chat, following) = try await chatInBackground()
        defer { following.invalidate() }
        let list = chat.channel("general").messages()
        try await until { list.items.map(\.text) == ["welcome"] }
        try await until { try isFree() }
        #expect(chat.driver.statuses.current == .offline)

        post(notification)
        try await until { await chat.driver.suspended == nil }
        #expect(try !isFree())
        try await chat.connect()
        try await chat.channel("general").sendConfirmed("back")
        try await until { list.items.last?.text == "back" }
        await chat.disconnect()
        #expect(try !isFree())
    }

    @Test("files that were opened before the app is known to be in the background are released then")
    func openedBefore() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        try await fill()
        let (chat, following, answer) = chatThatAsks()
        defer { following.invalidate() }
        let list = chat.channel("general").messages()
        try await until { list.items.map(\.text) == ["welcome"] }
        #expect(try !isFree())
        answer.finish()
        try await until { try isFree() }
    }

    @Test("changes of other processes are shown when the app is back, even if it never requested a connection")
    func shownWhenBack() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let (chat, following) = try await chatInBackground()
        defer { following.invalidate() }
        let list = chat.channels()
        _ = try await chat.driver.files()
        try await until { try isFree() }
        // A chat of this process stands for another's.
        try await fill()
        post("UIApplicationWillEnterForegroundNotification")
        try await until { !list.items.isEmpty }
        #expect(chat.driver.statuses.current == .offline)
    }

    @Test("a chat whose files aren't shared keeps them")
    func kept() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat(.directory(directory))
        let following = chat.driver.followSystem(center) { true }
        defer { following.invalidate() }
        try await until { await chat.driver.isInBackground }
        try await chat.channel("general").send("kept")
        await letOthersRun()
        #expect(try !isFree())
        await chat.driver.take(.background)
        #expect(try !isFree())
    }

    // MARK: What the app does there

    @Test("AM-45 an app that was launched in the background reads nothing until it is in the foreground, whatever its storage")
    func reading() async throws {
        let server = ScriptedServer { call in
            guard call.operation == "reading.start" else { return .error(.notFound("operation")) }
            return .result(UnreadCount(channelId: "general", unreadCount: 0, readSeq: 3))
        }
        let chat = chat(.inMemory, at: server)
        let following = chat.driver.followSystem(center) { true }
        defer { following.invalidate() }
        try await until { await chat.driver.isInBackground }
        try await chat.connect()
        try await chat.channel("general").startReading()
        await letOthersRun()
        #expect(await !server.operations().contains("reading.start"))

        post("UIApplicationWillEnterForegroundNotification")
        try await until { await server.operations().contains("reading.start") }
        await chat.disconnect()
    }

    @Test(
        "a connection is made in the background and lasts, even if the answer arrives meanwhile; its end releases the files",
        arguments: [true, false])
    func connected(isAnsweredFirst: Bool) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let (chat, following, answer) = chatThatAsks()
        defer { following.invalidate() }
        if isAnsweredFirst {
            answer.finish()
            try await until { await chat.driver.isInBackground }
        }
        try await chat.connect()
        answer.finish()
        try await until { await chat.driver.isInBackground }
        try await chat.channel("general").sendConfirmed("in the background")
        await letOthersRun()
        #expect(chat.driver.statuses.current == .online)
        #expect(try !isFree())
        await chat.disconnect()
        #expect(try isFree())

        // The app has disconnected.
        post("UIApplicationWillEnterForegroundNotification")
        try await until { await chat.driver.suspended == nil }
        #expect(chat.driver.statuses.current == .offline)
        #expect(try !isFree())
    }

    @Test("an attempt to connect that the app cancels in the background releases the files")
    func givenUp() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let (chat, following) = try await chatInBackground()
        defer { following.invalidate() }
        let (opened, open) = AsyncStream.makeStream(of: Void.self)
        try await chat.driver.openFiles(after: opened)
        let connecting = Task { try await chat.connect() }
        try await until { await chat.driver.preparation != nil }
        await chat.disconnect()
        open.finish()
        await #expect(throws: RoostError.self) { try await connecting.value }
        try await until { try isFree() }
    }

    @Test("messages sent in the background without a connection are kept, each time; afterwards the files are free")
    func written() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let (chat, following) = try await chatInBackground()
        defer { following.invalidate() }
        let channel = chat.channel("general")
        for text in ["first", "second"] {
            try await channel.send(text)
            #expect(try isFree())
        }
        let process = try #require(try takeLock(of: folder))
        let refusal = await #expect(throws: RoostError.self) { try await channel.send("lost?") }
        #expect(refusal?.code == .storageInUse && refusal?.message.contains("Another process") == true)
        close(process)
        try await channel.send("third")
        #expect(try await chat.driver.files().outbox.count() == 3)
        #expect(try isFree())

        post("UIApplicationWillEnterForegroundNotification")
        try await until { await chat.driver.suspended == nil }
        try await chat.connect()
        try await until { try await chat.driver.files().outbox.count() == 0 }
        await chat.disconnect()
    }

    @Test("messages sent at once in the background are kept, and can be discarded there; the files are free after each")
    func writtenAtOnce() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let (chat, following) = try await chatInBackground()
        defer { following.invalidate() }
        let channel = chat.channel("general")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<20 { group.addTask { _ = try await channel.send("\(number)") } }
            try await group.waitForAll()
        }
        #expect(try isFree())
        let list = channel.messages()
        try await until { list.items.count == 20 }
        try await until { try isFree() }
        let first = try #require(list.items.first)
        await list.discard(first)
        #expect(try isFree())
        #expect(try await chat.driver.files().outbox.count() == 19)
    }

    @Test("the end of the foreground doesn't wait for writes that begin meanwhile: they are refused, and earlier ones are kept")
    func goneWhileWriting() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let chat = chat()
        let channel = chat.channel("general")
        let kept = Mutex(0)
        let writing = (0..<4).map { _ in
            Task {
                // Until it is refused, one write starts after another.
                while (try? await channel.send("text")) != nil { kept.withLock { $0 += 1 } }
            }
        }
        try await until { kept.withLock { $0 > 8 } }
        await chat.driver.take(.background)
        #expect(try isFree())
        for task in writing { await task.value }
        await chat.driver.take(.foreground)
        #expect(try await chat.driver.files().outbox.count() == kept.withLock { $0 })
    }

    @Test("a user who can't log out in the background, because of unsent messages, leaves the files free; one who can deletes them")
    func logOut() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let (chat, following) = try await chatInBackground()
        defer { following.invalidate() }
        try await chat.channel("general").send("unsent")
        await #expect(throws: UnsentOperations.self) { try await chat.logOut() }
        #expect(try isFree())
        try await chat.logOut(discardingUnsent: true)
        #expect(!FileManager.default.fileExists(atPath: folder.path))
    }
}
