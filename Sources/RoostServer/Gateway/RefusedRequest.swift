import HTTPTypes
import NIOCore
import NIOHTTP1

/// A request that a connection's handlers refuse, before the HTTP server sees it. Its answer is the connection's last.
struct RefusedRequest {
    let problem: Problem
    /// Its origin; nil if there is none or it can't be read.
    let origin: String?
    /// Whether it is a HEAD request: its answer has no body.
    let isHead: Bool

    /// The head and the body of its answer. The end follows.
    func parts(in allocator: ByteBufferAllocator, origins: AllowedOrigins) -> [HTTPServerResponsePart] {
        let body = allocator.buffer(bytes: problem.json)
        var headers: HTTPHeaders = ["content-length": "\(body.readableBytes)", "connection": "close"]
        for field in problem.headers { headers.add(name: field.name.canonicalName, value: field.value) }
        for field in origins.fields(origin: origin) { headers.add(name: field.name, value: field.value) }
        let status = HTTPResponseStatus(statusCode: problem.status)
        let head = HTTPServerResponsePart.head(.init(version: .http1_1, status: status, headers: headers))
        return isHead ? [head] : [head, .body(.byteBuffer(body))]
    }
}
