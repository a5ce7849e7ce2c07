import Foundation
import RoostAPI
import RoostTestSupport
import Testing

@testable import Roost

/// The SDK's connections over TLS. An attacker between a client and its server, who answers with their own certificate, is sent nothing.
@Suite struct SecureConnectionTests {
    @Test(
        "a client sends nothing to a server whose certificate is untrusted, expired or for another host, and says what is wrong",
        arguments: UntrustedServer.all)
    func untrusted(server: UntrustedServer) async throws {
        let proxy = try await TLSProxy.start(server.certificate, target: try await TestServer.shared().port)
        let transport = WebSocketTransport(trusting: try server.trusted.map { try $0.parsed })
        let url = try #require(URL(string: "https://\(server.host):\(proxy.port)"))
        // If there were a connection, this would be sent, and the connection would end.
        let (commands, outgoing) = AsyncStream.makeStream(of: TransportCommand.self)
        outgoing.yield(.message(Array("a token".utf8)))
        outgoing.finish()
        let received = Mailbox<TransportEvent>()
        await transport.run(url: url, outgoing: commands) { received.put($0) }
        received.close()

        let (first, second) = (await received.next(), await received.next())
        // TLS doesn't say why a certificate isn't trusted.
        let name = server.fault == .host ? "failedToValidateHostname" : "CERTIFICATE_VERIFY_FAILED"
        if case .closed(nil, let reason, .certificate)? = first {
            let start = "can't make a secure connection to \(server.host): "
            #expect(reason.hasPrefix(start) && reason.contains(name), "\(reason)")
        } else {
            Issue.record("The connection wasn't refused for its certificate: \(first.map { "\($0)" } ?? "nothing was reported")")
        }
        #expect(second == nil)
        #expect(try await proxy.receivedSizeBytes() == 0)
        await proxy.stop()
    }

    @Test(
        "a client connects to a server whose certificate is trusted and for the host, and its token arrives",
        arguments: TrustedServer.all)
    @MainActor func trusted(server: TrustedServer) async throws {
        let real = try await TestServer.shared()
        let proxy = try await TLSProxy.start(server.certificate, target: real.port)
        var configuration = Chat.Configuration.tested()
        configuration.transport = WebSocketTransport(trusting: [try server.certificate.parsed])
        let url = try #require(URL(string: "https://\(server.host):\(proxy.port)"))
        let ann = Chat(url: url, user: "ann", configuration: configuration) { try await real.token("ann") }
        try await ann.connect()
        #expect(try await ann.call(GetMe()).userId == "ann")
        await ann.disconnect()
        #expect(try await proxy.receivedSizeBytes() > 0)
        await proxy.stop()
    }
}
