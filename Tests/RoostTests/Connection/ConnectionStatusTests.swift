import Foundation
import Logging
import NIOCore
import NIOPosix
import RoostAPI
import Testing

@testable import Roost

@MainActor @Suite("Connection: what the app is told", .timeLimit(.minutes(5)))
struct ConnectionStatusTests {
    private struct NoBackend: Error, CustomStringConvertible {
        var description: String { "the backend is away" }
    }

    private func chat(
        _ url: String, _ transport: any Transport = WebSocketTransport(),
        token: @escaping @Sendable () throws -> String = { "token" }
    ) throws -> Chat {
        var configuration = Chat.Configuration(
            storage: .inMemory, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        configuration.transport = transport
        return Chat(url: try #require(URL(string: url)), user: "ann", configuration: configuration) { try token() }
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
        "An address that can't be one is refused at once, and nothing is tried",
        arguments: ["chat", "ftp://chat.example.com", "https://"])
    func address(url: String) async throws {
        let chat = try chat(url)
        let error = await #expect(throws: RoostError.self) { try await chat.connect() }
        #expect(error?.code == .invalidArgument && error?.field == "url")
        for await status in chat.connection.updates where status == error.map(ConnectionStatus.failed) { break }
    }

    @Test("A client that waits says why: the app's token provider, the network, or what answered instead of a server")
    func reasons() async throws {
        let provider = try chat("http://127.0.0.1:1", TinyServer()) { throw NoBackend() }
        #expect(await reason(of: provider) == WaitingReason(.tokenProvider, "the token provider failed: the backend is away"))
        let nobody = await reason(of: try chat("http://127.0.0.1:1"))
        #expect(nobody == WaitingReason(.network, "nothing answers at 127.0.0.1, port 1: Connection refused"))
        #expect("\(nobody.map { "\($0)" } ?? "")" == nobody?.message)

        // A program that has a page for everybody.
        let other = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup).childChannelInitializer { channel in
            channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(NotFoundPage()) }
        }.bind(host: "127.0.0.1", port: 0).get()
        let port = other.localAddress?.port ?? 0
        let page = await reason(of: try chat("http://127.0.0.1:\(port)"))
        #expect(page?.cause == .upgrade, "\(page.map { "\($0)" } ?? "")")
        let plain = await reason(of: try chat("https://127.0.0.1:\(port)"))
        #expect(plain?.cause == .certificate, "\(plain.map { "\($0)" } ?? "")")
        try await other.close()

        let overloaded = await reason(
            of: try chat("http://127.0.0.1:1", TurningAway(RoostError(.overloaded, "Too many connections."))))
        #expect(overloaded == WaitingReason(.server, "the server takes no connection: Too many connections."))
    }

    @Test("Connecting ends after its timeout with the reason, and goes on behind it")
    func timeout() async throws {
        let chat = try chat("http://127.0.0.1:1", TinyServer()) { throw NoBackend() }
        let error = await #expect(throws: RoostError.self) { try await chat.connect(timeout: .milliseconds(50)) }
        #expect(error?.code == .notConnected && error?.message.contains("0.05 seconds") == true)
        #expect(error?.message.hasSuffix(": the token provider failed: the backend is away.") == true)
        #expect(chat.driver.statuses.current.isUnderWay)
        await chat.disconnect()
        let quick = try self.chat("http://127.0.0.1:1", TinyServer())
        try await quick.connect(timeout: .seconds(30))
        #expect(quick.driver.statuses.current == .online)
        await quick.disconnect()
    }

    @Test("An error reads as its code and message, and shows its message to a person")
    func errors() {
        let error = RoostError.notFound("channel")
        #expect("\(error)" == "not_found: There is no such channel.")
        #expect(error.localizedDescription == "There is no such channel.")
    }

    @Test("A moment is the same in Foundation, to the millisecond, and has ends")
    func dates() {
        let moment = Timestamp(milliseconds: 1_772_368_205_250)
        #expect(Timestamp(moment.date) == moment)
        #expect(Timestamp(Date(timeIntervalSince1970: 1.9999)) == Timestamp(milliseconds: 1999))
        #expect(Timestamp(Date(timeIntervalSince1970: 1e300)) == Timestamp(milliseconds: .max))
        #expect(Timestamp(Date(timeIntervalSince1970: -1e300)) == Timestamp(milliseconds: .min))
        #expect(moment.adding(.milliseconds(1500)) == Timestamp(milliseconds: 1_772_368_206_750))
    }
}

/// Answers whatever comes with a page.
private final class NotFoundPage: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let page = ByteBuffer(string: "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        context.writeAndFlush(Self.wrapOutboundOut(page), promise: nil)
    }
}

/// A server that answers every token with an error.
private struct TurningAway: Transport {
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
