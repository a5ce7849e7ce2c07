import NIOCore
import NIOHTTP1
import RoostAPI
import Testing

@testable import RoostServer

@Suite("Requests refused before the HTTP server")
struct RefusedRequestTests {
    @Test("§8.9 an answer has the headers of any refusal: its media type, Retry-After, and WWW-Authenticate with a 401")
    func headers() {
        let problem = Problem(RoostError(.unauthenticated, "There is no token.", retryAfterMilliseconds: 1_001))
        let request = RefusedRequest(problem: problem, origin: nil, isHead: false)
        guard case .head(let head)? = request.parts(in: ByteBufferAllocator(), origins: .none).first else {
            Issue.record("The answer has no head.")
            return
        }
        let values = ["content-type", "retry-after", "www-authenticate"].map { head.headers.first(name: $0) }
        #expect(values == ["application/problem+json", "2", "Bearer"])
        #expect(head.status.code == 401)
    }
}
