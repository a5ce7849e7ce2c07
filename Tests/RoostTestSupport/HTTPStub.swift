import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// An HTTP server on a free loopback port that answers as a test wants: like a server in a rare moment, or like another program.
public final class HTTPStub: Sendable {
    public struct Request: Hashable, Sendable {
        /// `GET /v1/channels`
        public var line: String
        public var body: String
    }

    public struct Answer: Sendable {
        public var status: Int
        public var body: String

        public init(_ status: Int, _ body: String = "") { (self.status, self.body) = (status, body) }
    }

    public let port: Int
    private let listener: any Channel
    private let log: RequestLog

    /// Listens on a free port.
    ///
    /// - Parameter answer: Answers a request. The first one has the number 1, whatever its connection.
    public static func start(_ answer: @escaping @Sendable (_ number: Int, _ request: Request) -> Answer) async throws -> HTTPStub {
        let log = RequestLog()
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    try channel.pipeline.syncOperations.addHandler(StubHandler(log: log, answer: answer))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return HTTPStub(listener: listener, log: log)
    }

    private init(listener: any Channel, log: RequestLog) {
        self.listener = listener
        self.log = log
        port = listener.localAddress?.port ?? 0
    }

    /// The requests so far, in order.
    public var requests: [Request] { log.requests.withLock { $0 } }

    /// Stops listening.
    public func stop() async { try? await listener.close() }
}

private final class RequestLog: Sendable {
    let requests = Mutex<[HTTPStub.Request]>([])
}

private final class StubHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let log: RequestLog
    private let answer: @Sendable (Int, HTTPStub.Request) -> HTTPStub.Answer
    private var request = HTTPStub.Request(line: "", body: "")

    init(log: RequestLog, answer: @escaping @Sendable (Int, HTTPStub.Request) -> HTTPStub.Answer) {
        self.log = log
        self.answer = answer
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): request = HTTPStub.Request(line: "\(head.method.rawValue) \(head.uri)", body: "")
        case .body(let bytes): request.body += String(buffer: bytes)
        case .end: write(context)
        }
    }

    private func write(_ context: ChannelHandlerContext) {
        let asked = request
        let number = log.requests.withLock { requests in
            requests.append(asked)
            return requests.count
        }
        let made = answer(number, asked)
        let body = ByteBuffer(string: made.body)
        let headers = HTTPHeaders([("Content-Type", "application/json"), ("Content-Length", String(body.readableBytes))])
        let head = HTTPResponseHead(version: .http1_1, status: HTTPResponseStatus(statusCode: made.status), headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
}
