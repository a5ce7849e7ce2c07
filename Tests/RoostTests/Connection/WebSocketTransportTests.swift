import Foundation
import NIOCore
import NIOSSL
import Testing

@testable import Roost

/// What is specific to ``WebSocketTransport``: the rest is in ``TransportConformanceTests``.
@Suite("WebSocketTransport")
struct WebSocketTransportTests {
    @Test("a secure connection that ends is no certificate problem, even if the other side closes it without notice")
    func insecureEnd() throws {
        let url = try #require(URL(string: "wss://example.com"))
        let broken: [any Error] = [NIOSSLError.uncleanShutdown, NIOSSLError.readInInvalidTLSState, BoringSSLError.zeroReturn]
        #expect(broken.map { WebSocketTransport.reason(ofEnd: $0).cause } == [.network, .network, .network])
        let refused: [any Error] = [
            NIOSSLError.uncleanShutdown, NIOSSLError.handshakeFailed(.zeroReturn), NIOSSLError.unableToValidateCertificate,
            NIOSSLExtraError.failedToValidateHostname,
        ]
        let causes = refused.map { WebSocketTransport.reason(of: $0, url).cause }
        #expect(causes == [.network, .certificate, .certificate, .certificate])
    }

    @Test("an unknown name is distinguished from one that couldn't be looked up, as far as the system does")
    func unresolved() {
        let unknown = "the host chat.example.com isn't known, or there is no network"
        let reasons = [Int(EAI_NONAME), Int(EAI_AGAIN), nil].map {
            WebSocketTransport.reason(ofUnresolved: "chat.example.com", code: $0)
        }
        #expect(
            reasons == [
                unknown, "the host chat.example.com couldn't be looked up: no name server answers, or there is no network", unknown,
            ])
    }

    @Test("if a name can't be looked up in time, the host alone isn't blamed; an address needs no look-up")
    func timeout() throws {
        let error = ChannelError.connectTimeout(.seconds(1))
        let named = try #require(URL(string: "wss://example.com"))
        let numeric = try #require(URL(string: "ws://127.0.0.1:1"))
        #expect(
            [named, numeric].map { WebSocketTransport.reason(of: error, $0).message } == [
                "example.com didn't answer in time, or its name couldn't be looked up in time", "127.0.0.1 didn't answer in time",
            ])
    }
}
