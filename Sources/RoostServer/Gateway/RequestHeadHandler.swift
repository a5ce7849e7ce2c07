import NIOCore
import NIOHTTP1
import RoostAPI

/// Checks each request's head against HTTP/1.1 before anything else sees it, and decides what happens to its connection.
///
/// A request that can't be one, or whose end different readers would find in different places, gets an answer here and is the last of its
/// connection; so does one that is too large, one that asks for an upgrade that isn't available, and CONNECT: after the last two the HTTP
/// parser stops. Data after the last request is discarded.
///
/// A valid request for the socket, the first of its connection, goes on to NIO's upgrade handler. After its end nothing that passes here is
/// HTTP any more: the bytes that arrive until this handler is removed are handed on untouched and become the socket's first frames.
final class RequestHeadHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private enum State {
        /// No request came yet: only the first can become a socket.
        case fresh
        case ordinary
        /// The request that is coming is the connection's last.
        case last
        /// Nothing more is read as a request.
        case ended
        /// A valid upgrade: bytes after its end aren't HTTP.
        case upgrading
        case upgraded
    }

    private let front: RequestDeadlineHandler
    private var state = State.fresh
    /// Whether a request's head has been handed on and its end hasn't.
    private var isInsideRequest = false
    /// Requests handed on whose answers have not been written.
    private var unanswered = 0
    /// Whether an answer's head has been written and its end hasn't.
    private var isAnswering = false
    /// The refusal of the last request, sent once those before it are answered.
    private var refusal: Problem?
    /// Whether the refusal answers a request that was handed on, and broke off after its head.
    private var isRefusalOfOpenRequest = false
    /// Whether the request that comes, or came last, asks for a head alone.
    private var isHead = false
    /// Whether the refused request does: its answer has no body.
    private var isRefusalOfHead = false
    /// Whether a client waits for `100 Continue`, which follows once the requests before are answered.
    private var awaitsContinue = false
    private var isOutputClosed = false

    private let limits: GatewayChannel.Configuration
    private let metrics: ServerMetrics
    private let origins: AllowedOrigins
    /// The origin of the request that is refused; nil if there is none, or if it can't be read.
    private var refusedOrigin: String?

    /// - Parameter limits: Those that the parser has, to be told.
    init(
        front: RequestDeadlineHandler, limits: GatewayChannel.Configuration, metrics: ServerMetrics,
        origins: AllowedOrigins = .none
    ) {
        self.front = front
        self.limits = limits
        self.metrics = metrics
        self.origins = origins
    }

    // MARK: Requests

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // The decoder is gone, and these are bytes.
        if case .upgraded = state {
            context.fireChannelRead(data)
            return
        }
        if case .ended = state { return }
        switch unwrapInboundIn(data) {
        case .head(let head): receive(head, context)
        case .body: context.fireChannelRead(data)
        case .end:
            isInsideRequest = false
            awaitsContinue = false
            front.requestArrived()
            if case .upgrading = state { state = .upgraded }
            if case .last = state { end() }
            context.fireChannelRead(data)
        }
    }

    private func receive(_ original: HTTPRequestHead, _ context: ChannelHandlerContext) {
        var head = original
        isHead = head.method == .HEAD
        do throws(RequestRules.Refusal) {
            try RequestRules.check(&head)
        } catch {
            refusedOrigin = head.headers.first(name: "origin")
            refuse(error.problem, isHead: isHead, context)
            return
        }
        if case .fresh = state, SocketRequest.opensSocket(head) {
            state = .upgrading
        } else if head.headers.contains(name: "upgrade") || head.method == .CONNECT || !head.isKeepAlive || head.version != .http1_1
        {
            state = .last
            head.headers.remove(name: "upgrade")
            // The HTTP server compares the whole value.
            head.headers.replaceOrAdd(name: "connection", value: "close")
        } else {
            state = .ordinary
        }
        isInsideRequest = true
        unanswered += 1
        awaitsContinue = head.headers.contains(name: "expect")
        context.fireChannelRead(wrapInboundOut(.head(head)))
        letContinue(context)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let mistake = error as? HTTPParserError else {
            context.fireErrorCaught(error)
            return
        }
        // Outside of a request, these bytes have no method.
        refuse(Problem(RoostError(.invalidArgument, message(for: mistake))), isHead: isHead && isInsideRequest, context)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed = event { breakOff(context) }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        breakOff(context)
        context.fireChannelInactive()
    }

    /// Ends a request whose end didn't come with an error: whoever reads its body would take what has come for all of it, and carry out
    /// another request than the client's.
    ///
    /// Not before the client can't send any more, though the request may have been refused earlier: who reads the body closes the connection
    /// behind the error, and the client would be reset before it has its answer.
    private func breakOff(_ context: ChannelHandlerContext) {
        guard isInsideRequest else { return }
        isInsideRequest = false
        context.fireErrorCaught(HTTPParserError.invalidEOFState)
    }

    private func message(for mistake: HTTPParserError) -> String {
        // Past its list of methods the parser can't tell a request from anything else.
        guard mistake == .headerOverflow else { return "This is not an HTTP request, or its method is unknown." }
        // It counts the target as one of the headers, and doesn't tell which was too large: 414 or 431 could be wrong.
        return
            "The request's target or its headers are too large: the target and each header have at most \(limits.headerFieldSizeBytesMax) bytes, all of them together \(limits.headerListSizeBytesMax), and there are at most \(limits.headerCountMax) headers."
    }

    private func end() {
        state = .ended
        awaitsContinue = false
        front.discardRest()
    }

    private func refuse(_ problem: Problem, isHead: Bool, _ context: ChannelHandlerContext) {
        switch state {
        case .ended, .upgraded: return
        case .fresh, .ordinary, .last, .upgrading: break
        }
        end()
        metrics.refused(OperationName.none, problem.code)
        refusal = problem
        isRefusalOfHead = isHead
        isRefusalOfOpenRequest = isInsideRequest
        finish(context)
    }

    /// Tells a client to send its body. The answers before this one come first.
    private func letContinue(_ context: ChannelHandlerContext) {
        guard awaitsContinue, unanswered == 1, !isAnswering else { return }
        awaitsContinue = false
        front.isInterim = true
        context.writeAndFlush(wrapOutboundOut(.head(.init(version: .http1_1, status: .continue))), promise: nil)
        front.isInterim = false
    }

    // MARK: Answers

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if case .upgraded = state {
            context.write(data, promise: promise)
            return
        }
        guard !isOutputClosed else {
            promise?.fail(ChannelError.outputClosed)
            return
        }
        switch unwrapOutboundIn(data) {
        case .head(var head):
            isAnswering = true
            // Of a request that is answered before its end nothing more is read: nobody wants its body.
            let isEarly = isInsideRequest && unanswered <= 1 && head.status.code >= 200
            if isEarly || head.headers[canonicalForm: "connection"].contains("close") { end() }
            // With several requests under way, only the last answer ends the connection.
            if case .ended = state, unanswered <= 1, refusal == nil || isRefusalOfOpenRequest {
                head.headers.endConnection()
            }
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .body:
            context.write(data, promise: promise)
        case .end:
            isAnswering = false
            unanswered = max(0, unanswered - 1)
            // The request that broke off has had its answer.
            if isRefusalOfOpenRequest, unanswered == 0 { refusal = nil }
            let isLast = if case .ended = state, unanswered == 0, refusal == nil { true } else { false }
            let written = isLast ? promise ?? context.eventLoop.makePromise() : promise
            context.write(data, promise: written)
            // Of the unanswered requests, the one that is still arriving isn't worked on.
            front.answered(isWorking: unanswered > (isInsideRequest ? 1 : 0))
            if isLast, let written {
                closeOutput(context, after: written.futureResult)
            } else {
                letContinue(context)
                finish(context)
            }
        }
    }

    /// Writes the refusal of the last request when its turn has come.
    private func finish(_ context: ChannelHandlerContext) {
        guard case .ended = state, let problem = refusal, !isAnswering else { return }
        guard unanswered == (isRefusalOfOpenRequest ? 1 : 0) else {
            // The request that broke off was answered before it did.
            if unanswered == 0 { closeOutput(context, after: context.eventLoop.makeSucceededVoidFuture()) }
            return
        }
        refusal = nil
        let body = context.channel.allocator.buffer(bytes: problem.json)
        var headers: HTTPHeaders = [
            "content-type": Problem.mediaType, "content-length": "\(body.readableBytes)", "connection": "close",
        ]
        for field in origins.fields(origin: refusedOrigin) { headers.add(name: field.name, value: field.value) }
        let status = HTTPResponseStatus(statusCode: problem.status)
        context.write(wrapOutboundOut(.head(.init(version: .http1_1, status: status, headers: headers))), promise: nil)
        if !isRefusalOfHead { context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil) }
        closeOutput(context, after: context.writeAndFlush(wrapOutboundOut(.end(nil))))
    }

    /// Ends the server's half of the connection. The client may still be sending: if both halves were closed at once, its kernel would
    /// discard the answer.
    private func closeOutput(
        _ context: ChannelHandlerContext, after written: EventLoopFuture<Void>, promise: EventLoopPromise<Void>? = nil
    ) {
        isOutputClosed = true
        let (bound, front) = (
            NIOLoopBound(context, eventLoop: context.eventLoop), NIOLoopBound(front, eventLoop: context.eventLoop)
        )
        written.whenComplete { _ in
            bound.value.close(mode: .output, promise: promise)
            front.value.linger()
        }
    }

    /// Ends the server's half of the connection behind everything that has been written. If the client has ended its own half, NIO closes
    /// both at once, and drops what waits for a client that reads slowly. One that reads nothing is closed by the deadline all the same.
    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if case .upgraded = state { return context.close(mode: mode, promise: promise) }
        guard mode == .output else { return context.close(mode: mode, promise: promise) }
        guard !isOutputClosed else {
            promise?.fail(ChannelError.outputClosed)
            return
        }
        end()
        closeOutput(context, after: front.flushed() ?? context.eventLoop.makeSucceededVoidFuture(), promise: promise)
    }
}

extension HTTPHeaders {
    /// Says of an answer that its connection ends with it. One that names the protocol for an upgrade goes on doing so.
    mutating func endConnection() {
        let namesUpgrade = self[canonicalForm: "connection"].contains { $0.lowercased() == "upgrade" }
        replaceOrAdd(name: "connection", value: namesUpgrade ? "close, Upgrade" : "close")
    }
}
