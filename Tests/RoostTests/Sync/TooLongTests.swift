import Foundation
import Logging
import RoostAPI
import Testing

@testable import Roost

/// Operations that are longer than the transport can send.
@Suite("Sync: messages that the transport can't send", .timeLimit(.minutes(5)))
struct TooLongTests {
    private static let channel = Harness.channel
    /// 60,000 bytes of text alone.
    private let text = String(repeating: "語", count: 20_000)

    private static let sizeBytesMax = 65_536

    private static var limited: Sync.Settings {
        var settings = Sync.Settings()
        settings.outgoingSizeBytesMax = Self.sizeBytesMax
        return settings
    }

    private func long(_ clientId: ClientID) -> OutboxOperation {
        .send(SendMessage(channel: Self.channel, clientId: clientId, text: text, data: String(repeating: "d", count: 6000)))
    }

    private func failures(_ client: Harness) async throws -> [RoostError?] { try await client.outbox.items().map(\.failure) }

    @Test("R08 I4 a message too long for the transport is refused with its size and the limit, and later ones are sent")
    func behind() async throws {
        var client = try await Harness(settings: Self.limited)
        try await client.connectWithChannel()
        try await client.feed(.stop)
        client.forgetCalls()
        try await client.enqueue(long("c1"))
        try await client.enqueue(long("c2"))
        try await client.send("behind", clientId: "c3")
        _ = client.take()
        try await client.connect()
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
        #expect(client.inFlight == "c3" && client.calls.values.sorted() == ["message.send"])
        let outputs = client.take()
        #expect(!outputs.contains(.close) && client.sync.phase == .online)
        let errors = outputs.compactMap { if case .settled(_, .failure(let error)) = $0 { error } else { nil } }
        #expect(errors.count == 2 && errors[0] == errors[1])
        let error = try #require(errors.first)
        #expect(error.code == .limitExceeded && error.limit == 65_536 && error.message.contains("message.send"))
        #expect(error.message.contains("65536") && error.message.wholeNumbers.contains { $0 > 66_000 })
        #expect(try await failures(client) == [error, error, nil])
        let sent = message(4, "behind", by: "ann", clientId: "c3")
        try await client.answer("message.send", with: sent)
        try await client.receive(alone(sent))
        #expect(try await client.texts() == ["one", "two", "behind", "\(text)…", "\(text)…"])
        // The next connection doesn't retry it.
        try await client.feed(.transport(client.sync.connection, .closed(code: 1006, reason: "")))
        try await client.connect()
        try await client.answer("stream.resume", with: Resumption(user: changes(user: 1), channels: [], hasMore: false))
        #expect(client.calls.isEmpty && client.sync.phase == .online)
    }

    @Test("R08 with a transport that can send it, a message that was too long is sent once when it is retried")
    func retried() async throws {
        var client = try await Harness(settings: Self.limited)
        try await client.connectWithChannel()
        try await client.enqueue(long("c1"))
        let row = OutboxRow.message(MessageKey(channel: Self.channel, clientId: "c1"))
        try await client.feed(.retry(row))
        #expect(client.calls.isEmpty && client.sync.phase == .online)
        #expect(try await failures(client).map { $0?.code } == [.limitExceeded])
        client = try await Harness(store: client.store, outbox: client.outbox)
        try await client.connectWithChannel()
        #expect(client.calls.isEmpty)
        try await client.feed(.retry(row))
        #expect(client.inFlight == "c1" && client.calls.values.sorted() == ["message.send"])
    }

    @Test("R08 an edit that is too long is refused alone, and no longer shown")
    func edit() async throws {
        var client = try await Harness(settings: Self.limited)
        try await client.connectWithChannel()
        let metadata = JSONValue.object(["k": .string(String(repeating: "m", count: 90_000))])
        try await client.enqueue(
            .edit(EditMessage(channel: Self.channel, message: MessageID(rawValue: 3), text: "edited", metadata: metadata)))
        #expect(try await failures(client).map { $0?.code } == [.limitExceeded])
        #expect(try await client.view()?.lastMessage?.text == "two")
        try await client.enqueue(.hide(HideChannel(channel: Self.channel)))
        #expect(client.calls.values.sorted() == ["channel.hide"])
    }

    /// A transport that can send less at once than the server accepts.
    private struct Limited: Transport {
        let server: ScriptedServer
        var outgoingSizeBytesMax: Int { sizeBytesMax }

        func run(
            url: URL, outgoing: AsyncStream<TransportCommand>, receive: @escaping @Sendable (TransportEvent) async -> Void
        ) async {
            await server.run(url: url, outgoing: outgoing, receive: receive)
        }
    }

    @Test("a call that is too long throws, and the connection continues")
    func call() async throws {
        let server = ScriptedServer { _ in .result(Done()) }
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        #expect(configuration.transport.outgoingSizeBytesMax == Limits.messageSizeBytes)
        configuration.transport = Limited(server: server)
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        try await chat.connect()
        let metadata = JSONValue.object(["k": .string(String(repeating: "m", count: 90_000))])
        let error = await #expect(throws: RoostError.self) {
            _ = try await chat.call(UpdateChannel(channel: "general", metadata: metadata))
        }
        #expect(error?.code == .limitExceeded && error?.limit == Int64(Self.sizeBytesMax))
        #expect(error?.message.contains("channel.update") == true)
        _ = try await chat.call(UnwatchChannel(channel: "general"))
        await chat.disconnect()
    }
}

extension String {
    fileprivate var wholeNumbers: [Int] { split { !$0.isNumber }.compactMap { Int($0) } }
}
