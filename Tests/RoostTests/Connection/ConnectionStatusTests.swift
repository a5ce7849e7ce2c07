import Foundation
import Logging
import NIOCore
import NIOPosix
import RoostAPI
import Testing

@testable import Roost

@MainActor @Suite("Connection: what is reported to the app", .timeLimit(.minutes(5)))
struct ConnectionStatusTests {
    private struct NoBackend: Error, CustomStringConvertible {
        var description: String { "the backend is away" }
    }

    private func chat(
        _ url: String, _ transport: any Transport = WebSocketTransport(), clock: (any Clock<Duration>)? = nil,
        token: @escaping @Sendable () async throws -> String = { "token" }
    ) throws -> Chat {
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = transport
        if let clock { configuration.clock = clock }
        return Chat(url: try #require(URL(string: url)), user: "ann", configuration: configuration) { try await token() }
    }

    /// The first reason for which a client waits.
    private func reason(of chat: Chat) async -> WaitingReason? {
        chat.start()
        for await status in chat.connection.updates {
            guard case .waiting(let until, let reason) = status else { continue }
            #expect(until > Timestamp(milliseconds: 1_700_000_000_000) && until < Timestamp(Date(timeIntervalSinceNow: 60)))
            await chat.disconnect()
            return reason
        }
        return nil
    }

    @Test(
        "an address that can't be one is refused at once, and nothing is tried",
        arguments: [
            "chat", "ftp://chat.example.com", "https://", "http://127.0.0.1:73616", "http://127.0.0.1:0",
            "https://chat.example.com?tenant=1", "https://chat.example.com/#chat", "https://ann@chat.example.com",
        ])
    func address(url: String) async throws {
        let chat = try chat(url)
        let error = await #expect(throws: RoostError.self) { try await chat.connect() }
        #expect(error?.code == .invalidArgument && error?.field == "url")
        for await status in chat.connection.updates where status == error.map(ConnectionStatus.failed) { break }
    }

    @Test("a client that waits reports why: the app's token provider, the network, or what answered instead of a server")
    func reasons() async throws {
        let provider = try chat("http://127.0.0.1:1", TinyServer()) { throw NoBackend() }
        #expect(await reason(of: provider) == WaitingReason(.tokenProvider, "the token provider failed: the backend is away"))
        let nobody = await reason(of: try chat("http://127.0.0.1:1"))
        #expect(nobody == WaitingReason(.network, "nothing answers at 127.0.0.1, port 1: Connection refused"))
        #expect("\(nobody.map { "\($0)" } ?? "")" == nobody?.message)

        // Programs with one page for every request. The last two are networks that want the user to sign in first.
        let redirect = "302 Found\r\nLocation: http://portal.example/login"
        for (status, cause, words) in [
            ("404 Not Found", .upgrade, "the server didn't accept a WebSocket here (404)"),
            ("503 Service Unavailable", .server, "the server accepts no connections at the moment (503)"),
            (redirect, .upgrade, "the server didn't accept a WebSocket here (302)"),
            ("200 OK", .upgrade, "the server didn't accept a WebSocket here (200)"),
        ] as [(String, WaitingReason.Cause, String)] {
            let other = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup).childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(OnePage(status: status)) }
            }.bind(host: "127.0.0.1", port: 0).get()
            let port = other.localAddress?.port ?? 0
            #expect(await reason(of: try chat("http://127.0.0.1:\(port)")) == WaitingReason(cause, words))
            let plain = await reason(of: try chat("https://127.0.0.1:\(port)"))
            #expect(plain?.cause == .certificate, "\(plain.map { "\($0)" } ?? "")")
            // An app may allow messages of any size.
            let transport = WebSocketTransport(configuration: .init(messageSizeBytesMax: .max))
            #expect(await reason(of: try chat("http://127.0.0.1:\(port)", transport)) == WaitingReason(cause, words))
            try await other.close()
        }

        let overloaded = await reason(
            of: try chat("http://127.0.0.1:1", TurningAway(RoostError(.overloaded, "Too many connections."))))
        #expect(overloaded == WaitingReason(.server, "the server doesn't accept the connection: Too many connections."))
    }

    @Test("if the user's session in the app has ended, the token provider's error is the status, until the app connects again")
    func sessionEnded() async throws {
        let ended = RoostError(.unauthenticated, "The session has expired.")
        let turn = Turn()
        let chat = try chat("http://127.0.0.1:1", TinyServer()) {
            if turn.next() == 0 { throw ended }
            return "token"
        }
        await #expect(throws: ended) { try await chat.connect() }
        for await status in chat.connection.updates where status == .failed(ended) { break }
        chat.nudge()
        await letOthersRun()
        // Nothing has asked it meanwhile.
        #expect(turn.next() == 1)
        try await chat.connect()
        #expect(chat.driver.statuses.current == .online)
        await chat.disconnect()
    }

    @Test("a client whose server's name is unknown says so, in words for the resolver's result")
    func unknownHost() async throws {
        let reason = await reason(of: try chat("http://no-such-host.invalid"))
        #expect(reason?.cause == .network)
        // Without a network the resolver reports that the name is unknown, that no server answers, or nothing for so long that the attempt ends.
        let possible = [Int(EAI_NONAME), Int(EAI_AGAIN)].map {
            WebSocketTransport.reason(ofUnresolved: "no-such-host.invalid", code: $0)
        }
        let slow = "no-such-host.invalid didn't answer in time, or its name couldn't be looked up in time"
        #expect(reason.map { (possible + [slow]).contains($0.message) } == true, "\(reason.map { "\($0)" } ?? "")")
    }

    @Test("connecting ends after its timeout with the reason, and continues in the background")
    func timeout() async throws {
        let clock = ManualClock()
        let chat = try chat("http://127.0.0.1:1", TinyServer(), clock: clock) { throw NoBackend() }
        let connecting = Task { try await chat.connect(timeout: .milliseconds(50)) }
        // By then the reason is known, and the time can pass once a task waits for it.
        for await case .waiting in chat.connection.updates { break }
        try await until { clock.ends.contains(.milliseconds(50)) }
        clock.advance(by: .milliseconds(50))
        let error = await #expect(throws: RoostError.self) { try await connecting.value }
        #expect(error?.code == .notConnected && error?.message.contains("0.05 seconds") == true)
        #expect(error?.message.hasSuffix(": the token provider failed: the backend is away.") == true)
        #expect(chat.driver.statuses.current.isActive)

        // The next attempt is under way, and its provider has no answer yet.
        let (answers, answer) = AsyncStream.makeStream(of: Void.self)
        let (turn, clockOfTries) = (Turn(), ManualClock())
        let trying = try self.chat("http://127.0.0.1:1", TinyServer(), clock: clockOfTries) {
            if turn.next() > 0 { for await _ in answers {} }
            throw NoBackend()
        }
        let once = Task { try await trying.connect(timeout: .seconds(2)) }
        for await case .waiting in trying.connection.updates { break }
        // The wait is reported before it begins.
        try await until { clockOfTries.ends.contains(.seconds(2)) && clockOfTries.ends.contains { $0 < .seconds(1) } }
        // Longer than any first pause, and then what is left.
        clockOfTries.advance(by: .seconds(1))
        try await until { trying.driver.statuses.current == .connecting }
        clockOfTries.advance(by: .seconds(1))
        let second = await #expect(throws: RoostError.self) { try await once.value }
        #expect(second?.message.hasSuffix(": the token provider failed: the backend is away.") == true)
        answer.finish()
        await trying.disconnect()
        await chat.disconnect()
        let quick = try self.chat("http://127.0.0.1:1", TinyServer())
        try await quick.connect(timeout: .seconds(30))
        #expect(quick.driver.statuses.current == .online)
        await quick.disconnect()
    }

    @Test("the timeout includes opening the files, and the client connects once they are open")
    func timeoutOfFiles() async throws {
        let clock = ManualClock()
        let chat = try chat("http://127.0.0.1:1", TinyServer(), clock: clock)
        let (opened, open) = AsyncStream.makeStream(of: Void.self)
        try await chat.driver.openFiles(after: opened)
        let connecting = Task { try await chat.connect(timeout: .seconds(2)) }
        try await until { clock.ends.contains(.seconds(2)) }
        clock.advance(by: .seconds(2))
        let error = await #expect(throws: RoostError.self) { try await connecting.value }
        #expect(error?.code == .notConnected && error?.message.contains("2.0 seconds") == true)
        let cancelled = Task { try await chat.connect() }
        await letOthersRun()
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        open.finish()
        try await until { chat.driver.statuses.current == .online }
        try await until { await chat.driver.pendingStarts == 0 }
        await chat.disconnect()
    }

    /// Lets each connection but the first begin only when the test allows it.
    private struct Gated: Transport {
        let server: ScriptedServer
        let gate: AsyncStream<Void>
        let turn = Turn()

        func run(
            url: URL, outgoing: AsyncStream<TransportCommand>, receive: @escaping @Sendable (TransportEvent) async -> Void
        ) async {
            if turn.next() > 0 { for await _ in gate {} }
            await server.run(url: url, outgoing: outgoing, receive: receive)
        }
    }

    @Test("an app that observes the connection sees its loss, the wait, the next attempt, and its return")
    func sequence() async throws {
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let server = ScriptedServer { _ in .lost }
        // Its clock stands still, and with it every wait.
        let configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            transport: Gated(server: server, gate: gate), clock: ManualClock())
        let chat = Chat(url: URL(filePath: "/"), user: "ann", configuration: configuration) { "token" }
        try await chat.connect()
        var reported: [String] = []
        let token = chat.connection.observe { status in
            switch status {
            case .waiting(_, let reason): reported.append("waiting: \(reason)")
            default: reported.append("\(status)")
            }
        }
        #expect(reported == ["online"])
        await #expect(throws: RoostError.self) { try await chat.call(GetUser(user: "ann")) }
        try await until { reported.count == 2 }
        #expect(reported.last == "waiting: the server closed the connection: 1006 lost")
        #expect(!chat.connection.isOnline)
        chat.nudge()
        try await until { reported.count == 3 }
        open.finish()
        try await until { reported.count == 4 }
        #expect(Array(reported.suffix(2)) == ["connecting", "online"])
        #expect(chat.connection.isOnline)
        token.invalidate()
        await chat.disconnect()
        #expect(reported.count == 4)
    }

    @Test("SB-65 R39 connections that are remade while the app is busy are reported to its observers and to readers of its updates")
    func reconnectedMeanwhile() async throws {
        let chat = try await ScriptedServer { _ in .nothing }.connected()
        let connection = chat.connection
        var reported: [ConnectionStatus] = []
        let token = connection.observe { reported.append($0) }
        var updates = connection.updates.makeAsyncIterator()
        // All of it happens before the main actor has time for it.
        for status in [.connecting, .online, .connecting, .online] as [ConnectionStatus] { chat.driver.statuses.send(status) }
        try await until { reported.count == 5 }
        #expect(reported == [.online, .connecting, .online, .connecting, .online])
        for status in reported { #expect(await updates.next() == status) }

        // However long it is busy, it gets the last ones, and nothing piles up.
        for _ in 1...1000 { for status in [.connecting, .online] as [ConnectionStatus] { chat.driver.statuses.send(status) } }
        try await until { reported.count > 5 }
        #expect(reported.count == 5 + Broadcast<ConnectionStatus>.rememberedMax && reported.last == .online)
        token.invalidate()
        await chat.disconnect()
    }

    @Test("an error reads as its code and message, and shows its message to a person")
    func errors() {
        let error = RoostError.notFound("channel")
        #expect("\(error)" == "not_found: There is no such channel.")
        #expect(error.localizedDescription == "There is no such channel.")
    }

    @Test("a moment is the same in Foundation, to the millisecond, and has ends")
    func dates() {
        let moment = Timestamp(milliseconds: 1_772_368_205_250)
        #expect(Timestamp(moment.date) == moment)
        #expect(Timestamp(Date(timeIntervalSince1970: 1.9999)) == Timestamp(milliseconds: 1999))
        #expect(Timestamp(Date(timeIntervalSince1970: 1e300)) == Timestamp(milliseconds: .max))
        #expect(Timestamp(Date(timeIntervalSince1970: -1e300)) == Timestamp(milliseconds: .min))
        #expect(moment.adding(.milliseconds(1500)) == Timestamp(milliseconds: 1_772_368_206_750))
    }
}

/// Answers every request with a page, as a proxy or a network's login page does.
private final class OnePage: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer
    private let status: String

    /// - Parameter status: The code and the reason. Further headers may follow on lines of their own.
    init(status: String) { self.status = status }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let page = "<!DOCTYPE html><title>Welcome</title><form action=\"/login\"><input name=\"code\"></form>"
        let headers = "Content-Type: text/html\r\nContent-Length: \(page.utf8.count)\r\nConnection: close"
        let answer = ByteBuffer(string: "HTTP/1.1 \(status)\r\n\(headers)\r\n\r\n\(page)")
        context.writeAndFlush(Self.wrapOutboundOut(answer), promise: nil)
    }
}

/// A server that answers every token with an error.
struct TurningAway: Transport {
    let error: RoostError
    init(_ error: RoostError) { self.error = error }

    private struct Frame: Encodable { var error: RoostError }

    func run(url: URL, outgoing: AsyncStream<TransportCommand>, receive: @escaping @Sendable (TransportEvent) async -> Void) async {
        await receive(.opened)
        for await _ in outgoing {
            if let bytes = try? JSONWriter.bytes(of: Frame(error: error)) { await receive(.message(bytes)) }
        }
        await receive(.closed(code: nil, reason: ""))
    }
}
