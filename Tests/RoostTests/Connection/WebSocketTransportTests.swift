import Foundation
import NIOSSL
import Testing

@testable import Roost

/// What ``WebSocketTransport`` has of its own: the rest is in ``TransportConformanceTests``.
@Suite("WebSocketTransport")
struct WebSocketTransportTests {
    @Test("A secure connection that ends is no problem of a certificate, also where the other side closes it without saying so")
    func insecureEnd() throws {
        let url = try #require(URL(string: "wss://example.com"))
        let broken: [any Error] = [NIOSSLError.uncleanShutdown, NIOSSLError.readInInvalidTLSState, BoringSSLError.zeroReturn]
        #expect(broken.map { WebSocketTransport.reason(ofEnd: $0).cause } == [.network, .network, .network])
        let refused: [any Error] = [
            NIOSSLError.uncleanShutdown, NIOSSLError.handshakeFailed(.zeroReturn), NIOSSLError.unableToValidateCertificate,
        ]
        #expect(refused.map { WebSocketTransport.reason(of: $0, url).cause } == [.network, .certificate, .certificate])
    }
}
