import Foundation
import RoostAPI
import RoostTestSupport
import Testing

@testable import RoostCommand

/// The command line's calls over TLS, as `roost call` makes them: the counterpart of the SDK's ``SecureConnectionTests``.
@Suite struct SecureCallTests {
    @Test(
        "a call sends nothing to a server whose certificate is untrusted, expired or for another host, and says what may be wrong",
        arguments: UntrustedServer.all)
    func untrusted(server: UntrustedServer) async throws {
        let real = try await TestServer.shared()
        let proxy = try await TLSProxy.start(server.certificate, target: real.port)
        let called = try await callServer(server.host, proxy, at: real)
        let certificates = try server.trusted.map { try $0.parsed }
        let failure = await #expect(throws: Failure.self) {
            try await CallConnection.run(called, trusting: certificates) { connection in
                _ = try await connection.call(GetMe())
            }
        }
        let reason =
            switch server.fault {
            case .signature, .expiry:
                "this machine doesn't trust its certificate, or it has expired (or this machine's clock is wrong)"
            case .host: "its certificate is for another host"
            }
        #expect(failure?.description == "Can't make a secure connection to \(called.address): \(reason).")
        #expect(try await proxy.receivedSizeBytes() == 0)
        await proxy.stop()
    }

    @Test("a server whose certificate is trusted and for the host answers a call", arguments: TrustedServer.all)
    func trusted(server: TrustedServer) async throws {
        let real = try await TestServer.shared()
        let proxy = try await TLSProxy.start(server.certificate, target: real.port)
        let called = try await callServer(server.host, proxy, at: real)
        let certificates = [try server.certificate.parsed]
        var user: UserID?
        try await CallConnection.run(called, trusting: certificates) { connection in
            user = try await connection.call(GetMe()).userId
        }
        #expect(user == "ann")
        #expect(try await proxy.receivedSizeBytes() > 0)
        await proxy.stop()
    }

    private func callServer(_ host: String, _ proxy: TLSProxy, at server: TestServer) async throws -> CallServer {
        let url = try #require(URL(string: "https://\(host):\(proxy.port)"))
        return CallServer(url, token: try await server.token("ann"), actsAs: nil)
    }
}
