import Foundation
import RoostAPI
import Testing

@testable import RoostCommand

@Suite struct PlainWordsTests {
    @Test(
        "libraries' errors about TLS and the system are reported in plain words",
        arguments: [
            (
                "can't make a secure connection to a.example: handshakeFailed(NIOSSL.BoringSSLError.sslError([Error: 268435581 error:1000007d:SSL routines:OPENSSL_internal:CERTIFICATE_VERIFY_FAILED at /work/x.cc:298]))",
                "can't make a secure connection to a.example: this machine doesn't trust its certificate, or it has expired (or this machine's clock is wrong)"
            ),
            (
                "handshakeFailed(NIOSSL.BoringSSLError.sslError([Error: 268435703 error:100000f7:SSL routines:OPENSSL_internal:WRONG_VERSION_NUMBER at /x]))",
                "it doesn't speak TLS; perhaps the address should begin with http, not https"
            ),
            ("read(descriptor:pointer:size:): Connection reset by peer) (errno: 104)", "Connection reset by peer"),
            ("Inappropriate operation for state", "the connection was closed"),
            (
                "nothing answers at a.example, port 1: Connection refused",
                "nothing answers at a.example, port 1: Connection refused"
            ),
        ])
    func descriptions(text: String, words: String) {
        #expect(PlainWords.cleaned(text) == words)
    }

    @Test("an unreadable answer is reported by its field, and the system's errors in the system's words")
    func errors() {
        let shape = #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(Page<MemberEntry>.self, from: Data(#"{"items":[{}]}"#.utf8))
        }
        #expect(shape.map { PlainWords.reason(of: $0) } == "items.0.member is missing")
        let file = #expect(throws: (any Error).self) { try Data(contentsOf: URL(filePath: "/nowhere/file")) }
        #expect(file.map { "\(Failure($0))" } == "No such file or directory")
        #expect("\(Failure(Failure("as it was")))" == "as it was")
    }
}
