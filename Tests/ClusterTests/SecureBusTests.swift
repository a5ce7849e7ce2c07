#if Cluster
import Foundation
import Logging
import NIOCore
import NIOPosix
import RoostTestSupport
import Testing

@testable import RoostServer

/// The bus over TLS. An attacker between a node and NATS, who answers with their own certificate, must not get the password.
@Suite struct SecureBusTests {
    private struct Finding: Decodable {
        let check: String
        let found: String
    }

    /// The finding of `roost doctor` about a bus, to which it connects as a node does. It runs as a process, since libnats reads from the environment
    /// which certificates it trusts.
    private func finding(of bus: String, trusting certificate: URL? = nil) async throws -> String? {
        let directory = TemporaryDirectory.make()
        let run = try await CommandRun.roost(
            arguments: ["doctor", "--json", "--data", directory.path, "--url", "http://127.0.0.1:1", "--bus", bus],
            environment: certificate.map { ["SSL_CERT_FILE": $0.path] } ?? [:])
        return try JSONDecoder().decode([Finding].self, from: Data(run.output.utf8)).first { $0.check == "bus" }?.found
    }

    @Test(
        "a node connects to NATS only if its certificate is trusted and for the host of the address",
        arguments: TrustedServer.all)
    func certificates(trusted: TrustedServer) async throws {
        let directory = TemporaryDirectory.make()
        let (certificate, key) = try trusted.certificate.write(to: directory)
        let (stranger, _) = try TestCertificate.other.write(to: directory)
        let server = try await NATSServer.start(
            arguments: ["--user", "ann", "--pass", "secret", "--tls", "--tlscert", certificate.path, "--tlskey", key.path])
        func address(_ host: String) -> String { "\(host):\(server.port)" }
        func bus(_ host: String) -> String { "tls://ann:secret@\(address(host))" }

        #expect(try await finding(of: bus(trusted.host), trusting: certificate) == "it answers")
        // The same server and the same trust, with the other host.
        let other = trusted.host == "localhost" ? "127.0.0.1" : "localhost"
        #expect(try await finding(of: bus(other), trusting: certificate) == "NATS at \(address(other)): SSL Error")
        for certificate in [stranger, nil] {
            let found = try await finding(of: bus(trusted.host), trusting: certificate)
            #expect(found == "NATS at \(address(trusted.host)): SSL Error")
        }
        await server.stop()
    }

    @Test("a node configured for TLS doesn't use a server without it")
    func withoutTLS() async throws {
        let server = try await NATSServer.start()
        #expect(try refusal(of: server.port) == "NATS at 127.0.0.1:\(server.port): Secure Connection not available")
        await server.stop()
    }

    @Test("over TLS a node doesn't connect to servers named by another server, which names them before it has shown a certificate")
    func namedServers() async throws {
        let named = try await Impostor.start()
        let first = try await Impostor.start(naming: named.port)
        #expect(try refusal(of: first.port) == "NATS at 127.0.0.1:\(first.port): SSL Error")
        #expect(first.isReached.isSet && !named.isReached.isSet)
        try await first.stop()
        try await named.stop()
    }

    /// Why a bus doesn't start.
    private func refusal(of port: Int) throws -> String? {
        let log = LogLines()
        let bus = try NATSBus(url: "tls://ann:secret@127.0.0.1:\(port)", logger: Logger(label: "bus") { _ in log.handler })
        let failure = #expect(throws: BusFailure.self) { try bus.start { _ in } }
        bus.stop()
        return failure?.message
    }
}

/// A server that claims to be NATS with TLS, and has no certificate.
private struct Impostor {
    let isReached: Flag
    private let listener: any NIOCore.Channel

    var port: Int { listener.localAddress?.port ?? 0 }

    /// - Parameter other: The port of another server, which it names as part of its cluster.
    static func start(naming other: Int? = nil) async throws -> Impostor {
        let isReached = Flag()
        let others = other.map { "\"127.0.0.1:\($0)\"" } ?? ""
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                isReached.set()
                return channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Greeting(others: others))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return Impostor(isReached: isReached, listener: listener)
    }

    func stop() async throws { try await listener.close() }

    /// Greets as NATS does, and ends the connection when TLS should begin.
    private final class Greeting: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        private let others: String

        init(others: String) { self.others = others }

        func channelActive(context: ChannelHandlerContext) {
            let fields = #""server_id":"N","version":"2.9.10","proto":1,"max_payload":1048576,"tls_required":true"#
            let greeting = "INFO {\(fields),\"connect_urls\":[\(others)]}\r\n"
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: greeting)), promise: nil)
            context.fireChannelActive()
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { context.close(promise: nil) }
    }
}
#endif
