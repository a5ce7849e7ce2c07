import Foundation
import Roost
import RoostAPI
import RoostTestSupport
import RoostTesting
import Testing

@MainActor @Suite("RoostTesting: a server for an app's tests", .timeLimit(.minutes(5)))
struct RoostTestServerTests {
    /// The texts of a list once they are as expected.
    private func wait(for list: MessageList, _ isAsExpected: @escaping ([MessageItem]) -> Bool) async -> [MessageItem] {
        for await update in list.updates where isAsExpected(update.items) { return update.items }
        return []
    }

    @Test("two users talk, and unread messages are counted")
    func talk() async throws {
        let server = try await RoostTestServer()
        let (ann, bob) = (server.chat(as: "ann"), server.chat(as: "bob"))
        try await ann.connect()
        try await bob.connect()
        let room = try await ann.createChannel("room", displayName: "Room")
        let bobsRoom = try await bob.joinChannel("room")
        try await room.send("hi")
        let seen = await wait(for: bobsRoom.messages()) { !$0.isEmpty }
        #expect(seen.map(\.text) == ["hi"])
        for await total in bob.unread.updates where total.unreadCount == 1 { break }
        await ann.disconnect()
        await bob.disconnect()
        try await server.stop()
    }

    @Test("while the server is away a message waits, and it is sent when the server comes back with its data")
    func outage() async throws {
        let server = try await RoostTestServer()
        let ann = server.chat(as: "ann")
        try await ann.connect()
        let room = try await ann.createChannel("room")
        let list = room.messages()
        try await room.sendConfirmed("before")
        try await server.startOutage()
        try await server.startOutage()
        for await status in ann.connection.updates where status != .online { break }
        try await room.send("after")
        let waiting = await wait(for: list) { $0.count == 2 }
        #expect(waiting.map(\.state) == [.sent, .pending])
        try await server.endOutage()
        try await server.endOutage()
        let sent = await wait(for: list) { $0.allSatisfy { $0.state == .sent } }
        #expect(sent.map(\.text) == ["before", "after"])
        await ann.disconnect()
        try await server.stop()
    }

    @Test("a server whose start is cancelled starts all the same, and is stopped like any other")
    func cancelledStart() async throws {
        let started = Mailbox<Result<RoostTestServer, any Error>>()
        let start = Task { try await RoostTestServer() }
        start.cancel()
        Task { started.put(await start.result) }
        let result = await started.next(within: .seconds(60))
        let server = try #require(result).get()
        try await server.call(CreateChannel(channel: "room"), as: "ann")
        try await server.stop()
    }

    @Test("an operation is called as a backend does; refusals are thrown; a token may have expired")
    func backend() async throws {
        let server = try await RoostTestServer()
        let bob = try await server.call(UpsertUser(user: "bob", displayName: "Bob"), as: "backend", role: .admin)
        #expect(bob.displayName == "Bob")
        let refusal = await #expect(throws: RoostError.self) {
            try await server.call(UpsertUser(user: "bob", displayName: "Robert"), as: "ann")
        }
        #expect(refusal?.code == .notPermitted)
        let url = server.url
        let late = Chat(url: url, user: "ann", configuration: .init(storage: .inMemory)) {
            try await server.token(for: "ann", lifetime: .zero)
        }
        let expired = await #expect(throws: RoostError.self) { try await late.connect() }
        #expect(expired?.code == .tokenExpired)
        await late.disconnect()
        try await server.stop()
        try await server.stop()
    }

    @Test(
        "if the server's tokens may be valid for less than an hour, so are those of its chats; one that is valid for longer is refused"
    )
    func shortTokens() async throws {
        let server = try await RoostTestServer(options: AppOptions(tokenLifetimeSecondsMax: 60))
        let ann = server.chat(as: "ann")
        try await ann.connect(timeout: .seconds(30))
        await ann.disconnect()
        let long = Chat(url: server.url, user: "ann", configuration: .init(storage: .inMemory)) {
            try await server.token(for: "ann", lifetime: .seconds(61))
        }
        let refusal = await #expect(throws: RoostError.self) { try await long.connect(timeout: .seconds(30)) }
        #expect(refusal?.code == .unauthenticated)
        await long.disconnect()
        try await server.stop()
    }

    @Test("a test advances the time, for the server and its chats: a silence ends, and waiting messages are sent")
    func time() async throws {
        let server = try await RoostTestServer()
        let (ann, bob) = (server.chat(as: "ann"), server.chat(as: "bob"))
        for chat in [ann, bob] { try await chat.connect() }
        let room = try await ann.createChannel("room", users: ["bob"])
        try await room.silence(for: .seconds(3600))
        let bobsRoom = bob.channel("room")
        for await view in bobsRoom.updates where view?.channel.isMuted == true { break }
        let list = bobsRoom.messages()
        try await bobsRoom.send("at last")
        _ = await wait(for: list) { if case .waiting = $0.last?.state { true } else { false } }

        let before = server.now
        server.advance(by: .seconds(-5))
        server.advance(by: .seconds(3601))
        for await view in bobsRoom.updates where view?.channel.isMuted == false { break }
        let sent = await wait(for: list) { $0.last?.state == .sent }
        #expect(sent.first.map { $0.createdAt.milliseconds - before.milliseconds >= 3_600_000 } == true)
        try await server.startOutage()
        try await server.endOutage()
        #expect(try await server.call(GetChannel(channel: "room"), as: "bob").lastMessage?.text == "at last")
        #expect(server.now.milliseconds - before.milliseconds >= 3_601_000)
        for chat in [ann, bob] { await chat.disconnect() }
        try await server.stop()
    }

    @Test(
        "a chat that an app's own code makes with the server's configuration follows the test's clock too, and has the given storage"
    )
    func ownChat() async throws {
        let server = try await RoostTestServer()
        let ann = server.chat(as: "ann")
        let bob = Chat(url: server.url, user: "bob", configuration: server.configuration()) { try await server.token(for: "bob") }
        for chat in [ann, bob] { try await chat.connect() }
        let room = try await ann.createChannel("room", users: ["bob"])
        try await room.silence(for: .seconds(3600))
        let bobsRoom = bob.channel("room")
        for await view in bobsRoom.updates where view?.channel.isMuted == true { break }
        let list = bobsRoom.messages()
        try await bobsRoom.send("at last")
        _ = await wait(for: list) { if case .waiting = $0.last?.state { true } else { false } }
        server.advance(by: .seconds(3601))
        let sent = await wait(for: list) { $0.last?.state == .sent }
        #expect(sent.map(\.text) == ["at last"])
        #expect(server.configuration().storage == .inMemory)
        #expect(server.configuration(storage: .standard).storage == .standard)
        for chat in [ann, bob] { await chat.disconnect() }
        try await server.stop()
    }

    @Test("a change whose answer was lost more than 7 days ago is reported as of unknown outcome, and isn't made twice")
    func oldKey() async throws {
        let server = try await RoostTestServer()
        let directory = FileManager.default.temporaryDirectory.appending(component: "roost-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        try await server.call(CreateChannel(channel: "room"), as: "ann")
        try await server.call(JoinChannel(channel: "room"), as: "bob")
        do {
            let deaf = Chat(
                url: server.url, user: "bob",
                configuration: .init(storage: .directory(directory), transport: DeafTransport(operation: "channel.hide"))
            ) { try await server.token(for: "bob") }
            try await deaf.connect()
            try await deaf.channel("room").hide()
            try await eventually("a hidden channel") {
                try await server.call(GetChannel(channel: "room"), as: "bob").membership?.hiddenState != .unhidden
            }
            await deaf.disconnect()
        }
        try await server.call(UnhideChannel(channel: "room"), as: "bob")
        server.advance(by: .seconds(8 * 86_400))
        let bob = server.chat(as: "bob", storage: .directory(directory))
        try await bob.connect()
        var state: LiveOutbox.Entry.State?
        for await entries in bob.outbox.updates {
            state = entries.first?.state
            if case .failed = state { break }
        }
        guard case .failed(let error) = state else { return }
        #expect(error.code == .keyExpired)
        #expect(bob.channel("room").hiddenState == .unhidden)
        await bob.disconnect()
        try await server.stop()
    }
}

/// A transport that drops the answers to an operation.
private struct DeafTransport: Transport {
    let operation: String

    func run(
        url: URL, outgoing: AsyncStream<TransportCommand>, receive: @escaping @Sendable (TransportEvent) async -> Void
    ) async {
        let (commands, forwarded) = AsyncStream.makeStream(of: TransportCommand.self)
        let lost = Lost()
        async let forwarding: Void = {
            for await command in outgoing {
                if case .message(let bytes) = command { await lost.note(bytes, of: operation) }
                forwarded.yield(command)
            }
            forwarded.finish()
        }()
        await WebSocketTransport().run(url: url, outgoing: commands) { event in
            if case .message(let bytes) = event, await lost.contains(bytes) { return }
            await receive(event)
        }
        await forwarding
    }

    private actor Lost {
        private struct Frame: Decodable {
            var call: Int64?
            var operation: String?
            var reply: Int64?
        }

        private var numbers: Set<Int64> = []

        func note(_ bytes: [UInt8], of operation: String) {
            guard let frame = try? JSONDecoder().decode(Frame.self, from: Data(bytes)), frame.operation == operation else { return }
            if let call = frame.call { numbers.insert(call) }
        }

        func contains(_ bytes: [UInt8]) -> Bool {
            (try? JSONDecoder().decode(Frame.self, from: Data(bytes)))?.reply.map(numbers.contains) ?? false
        }
    }
}
