import Foundation
import Logging
import RoostAPI
import Synchronization
import Testing

@testable import Roost

@Suite("Sync: the order of calls", .timeLimit(.minutes(5)))
struct CallOrderTests {
    @Test("R24 while a message waits for confirmation, other calls continue, whatever the channel")
    func confirmation() async throws {
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = TinyServer()
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        let waiting = Task { try await chat.channel("general").sendConfirmed("1") }
        let list = await chat.outbox
        try await until { await !list.entries.isEmpty }
        try await chat.channel("general").send("2")
        await #expect(throws: RoostError.self) { try await chat.call(GetMe()) }
        try await until { await list.entries.count == 2 }
        waiting.cancel()
        _ = await waiting.result
    }

    @Test("calls are sent in the order of their turns, whichever is ready first, and also past failing ones")
    func order() async {
        let order = CallOrder()
        let (sent, continuation) = AsyncStream.makeStream(of: Int.self)
        var turns = (0..<200).map { (number: $0, turn: order.take()) }
        await withTaskGroup(of: Void.self) { group in
            while let (number, turn) = turns.popLast() {
                group.addTask {
                    if number.isMultiple(of: 3) { await letOthersRun(1) }
                    guard (try? await turn.comes()) != nil else { return }
                    // A failing one never passes its turn on, but releases it.
                    guard !number.isMultiple(of: 7) else { return }
                    continuation.yield(number)
                    turn.pass()
                }
            }
        }
        continuation.finish()
        var numbers: [Int] = []
        for await number in sent { numbers.append(number) }
        #expect(numbers == (0..<200).filter { !$0.isMultiple(of: 7) })
    }

    @Test("a call that is cancelled while it waits for its turn ends at once, and later ones still wait for earlier ones")
    func cancelled() async throws {
        let order = CallOrder()
        let first = order.take()
        var later = (0..<20_000).map { _ in order.take() }
        let last = order.take()
        var cancelledCount = 0
        for turn in later {
            let waiting = Task { try await turn.comes() }
            waiting.cancel()
            do { try await waiting.value } catch is CancellationError { cancelledCount += 1 }
            turn.pass()
        }
        #expect(cancelledCount == later.count)
        // Turns that were passed on are released.
        later = []
        let hasCome = Mutex(false)
        let waiting = Task {
            try await last.comes()
            hasCome.withLock { $0 = true }
        }
        await letOthersRun()
        #expect(!hasCome.withLock { $0 })
        first.pass()
        try await waiting.value
    }

    @Test("calls that wait for their turn can be cancelled, but a message is kept")
    func cancelledCalls() async throws {
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = TinyServer()
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        let held = chat.driver.order.take()
        let call = Task { try await chat.call(GetMe()) }
        let message = Task { try await chat.channel("general").send("kept") }
        await letOthersRun()
        call.cancel()
        message.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        held.pass()
        _ = try await message.value
        #expect(try await chat.driver.files().outbox.count() == 1)
    }

    @MainActor @Test("AM-45 a channel that is marked as unread right after all channels are marked as read stays unread")
    func unreadAfterAllRead() async throws {
        let server = ScriptedServer { _ in .nothing }
        await server.resume(with: [fresh()])
        let chat = try await server.connected()
        await chat.disconnect()
        let channel = chat.channel("general")
        let calls = [Task { try await chat.markAllRead() }, Task { try await channel.markUnread(from: 3) }]
        for call in calls { try await call.value }
        let marks: [OutboxOperation] = [
            .read(MarkRead(channel: "general", seq: 3)), .unread(MarkUnread(channel: "general", seq: 3)),
        ]
        #expect(try await chat.driver.files().outbox.items().map(\.operation) == marks)
    }

    @MainActor @Test("ST-01 ST-09 ST-10 a channel that is unwatched right after the chat has asked to watch it isn't watched")
    func unwatchAfterWatch() async throws {
        let server = ScriptedServer { _ in .error(.notFound("operation")) }
        let chat = try await server.connectedInGeneral()
        let channel = chat.channel("general")
        let watches: [(name: String, call: @MainActor () async throws -> Void)] = [
            (QueryAndWatchChannels.name, { _ = try await chat.watch(QueryChannels(limit: 1)) }),
            (WatchChannel.name, { _ = try await chat.watch("general", creating: CreateChannel()) }),
        ]
        for (name, watch) in watches {
            // The wrong order doesn't occur each time.
            for _ in 0..<10 {
                let held = chat.driver.order.take()
                let calls = [Task { try await watch() }, Task { try await channel.unwatch() }]
                await letOthersRun()
                held.pass()
                for call in calls { _ = await call.result }
                let sent = await server.operations().filter { [name, UnwatchChannel.name].contains($0) }
                #expect(sent.suffix(2) == [name, UnwatchChannel.name])
            }
        }
        await chat.disconnect()
    }

    @MainActor @Test("AM-45 reading starts and ends with its screen, even if that is gone before their turn")
    func cancelledReading() async throws {
        let chat = try await ScriptedServer { _ in .error(.notFound("operation")) }.connectedInGeneral()
        let channel = chat.channel("general")
        try await until { channel.membership?.readSeq == 3 }
        await chat.disconnect()
        func isRead() async -> Bool { await chat.driver.machine?.reading.keys.contains("general") == true }
        for begins in [true, false] {
            let held = chat.driver.order.take()
            let call = Task { if begins { try await channel.startReading() } else { try await channel.stopReading() } }
            await letOthersRun()
            call.cancel()
            held.pass()
            _ = await call.result
            // A cancelled caller returns at once, before the machine has handled its request.
            try await until { await isRead() == begins }
        }
    }

    @Test("AM-45 EM-35 a call's reads of the store are done even if the call is cancelled")
    func cancelledReads() async throws {
        let chat = try await ScriptedServer { _ in .nothing }.connectedInGeneral()
        let store = try await chat.driver.files().store
        try await until { try await store.read { try $0.membership(of: "general")?.readSeq } == 3 }
        let draft = ChannelDraft(channelId: "general", text: "hi", updatedAt: Timestamp(milliseconds: 0), userSeq: 2)
        try await store.write([.rows(Rows([draft]), of: .user("ann"))])
        func cancelled<Value: Sendable>(_ work: @escaping @Sendable () async -> Value) async -> Value {
            await Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return await work()
            }.value
        }
        let driver = chat.driver
        #expect(await cancelled { await driver.serverReadSeq(of: "general") } == 3)
        _ = await cancelled { try? await driver.enqueue(sending: SendMessage(channel: "general", clientId: "c1", text: "hi")) }
        // The draft that was sent is removed.
        #expect(try await store.read { try $0.draft(of: "general") } == nil)
        await chat.disconnect()
    }

    @MainActor @Test("if this device's files can't be opened, a list of messages doesn't hold up other calls: they say so")
    func filesAway() async throws {
        let directory = URL.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        // A file is in the place of the directory.
        try Data().write(to: directory)
        var configuration = Chat.Configuration(
            storage: .directory(directory), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = TinyServer()
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        let channel = chat.channel("general")
        let list = channel.messages()
        var refusals: [RoostError] = []
        let calls = [
            Task { _ = try await channel.send("hi") }, Task { try await channel.markRead() }, Task { _ = try await chat.me() },
        ]
        let waiting = calls.map { call in
            Task { do { try await call.value } catch let error as RoostError { refusals.append(error) } }
        }
        try await until { refusals.count == calls.count }
        #expect(refusals.allSatisfy { $0.code == .storageFailed } && list.phase.error?.code == .storageFailed)
        for task in waiting { try await task.value }

        try FileManager.default.removeItem(at: directory)
        try await chat.connect()
        try await until { list.phase == .loaded }
        try await channel.sendConfirmed("hi")
        try await until { list.items.map(\.text) == ["welcome", "hi"] }
        await chat.disconnect()
    }
}
