import NIOCore
import NIOHTTP1
import RoostAPI

/// Checks each request's head against HTTP/1.1 before anything else sees it, and decides what happens to its connection.
///
/// A request that is invalid or too large, or whose end different readers would find in different places, is answered here and is its
/// connection's last. A request for an upgrade that isn't available and CONNECT are the last too, because the HTTP parser stops after them.
/// Data after the last request is discarded.
///
/// A valid request for the socket, if it is its connection's first, is passed on to NIO's upgrade handler. What follows isn't HTTP: bytes
/// that arrive until this handler is removed are passed on untouched and become the socket's first frames.
final class RequestHeadHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private enum State {
        /// No request has arrived yet: only the first can become a socket.
        case fresh
        case ordinary
        /// The request that is arriving is the connection's last.
        case last
        /// Nothing more is read as a request.
        case ended
        /// A valid upgrade: bytes after its end aren't HTTP.
        case upgrading
        case upgraded
    }

    private let front: RequestDeadlineHandler
    private var state = State.fresh
    /// Whether a request's head has been passed on and its end hasn't.
    private var isInsideRequest = false
    /// Requests passed on whose answers haven't been written.
    private var unanswered = 0
    /// Whether an answer's head has been written and its end hasn't.
    private var isAnswering = false
    /// The last request, if it is refused, until those before it are answered.
    private var refused: RefusedRequest?
    /// Whether the refused request, even if it is answered by now, was passed on and broke off after its head.
    private var isRefusalOfOpenRequest = false
    /// Whether the current request, or the last one, is a HEAD request.
    private var isHead = false
    /// Whether a client waits for `100 Continue`, which is sent once the earlier requests are answered.
    private var awaitsContinue = false
    private var isOutputClosed = false

    private let limits: GatewayChannel.Configuration
    private let metrics: ServerMetrics
    private let origins: AllowedOrigins

    /// - Parameter limits: The parser's limits, for error messages.
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
        // The decoder has been removed, and this is bytes.
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
            let origin = head.headers.first(name: "origin")
            return refuse(RefusedRequest(problem: error.problem, origin: origin, isHead: isHead), context)
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
        sendContinue(context)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let mistake = error as? HTTPParserError else {
            context.fireErrorCaught(error)
            return
        }
        // Outside a request, these bytes have no method.
        let problem = Problem(RoostError(.invalidArgument, message(for: mistake)))
        refuse(RefusedRequest(problem: problem, origin: nil, isHead: isHead && isInsideRequest), context)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed = event { breakOff(context) }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        breakOff(context)
        context.fireChannelInactive()
    }

    /// Fails a request that was cut off: its handler would take the part of the body that has arrived for all of it, and carry out a
    /// different request than the client's.
    ///
    /// Only once the client can send nothing more, though the request may have been refused earlier: the error makes the handler close the
    /// connection, and the client would be reset before it has its answer.
    private func breakOff(_ context: ChannelHandlerContext) {
        guard isInsideRequest else { return }
        isInsideRequest = false
        context.fireErrorCaught(HTTPParserError.invalidEOFState)
    }

    private func message(for mistake: HTTPParserError) -> String {
        // The parser can't tell a request with a method it doesn't know from anything else.
        guard mistake == .headerOverflow else { return "This is not an HTTP request, or its method is unknown." }
        // The parser counts the target as one of the headers and doesn't say which was too large: 414 or 431 could be wrong.
        return
            "The request's target or its headers are too large: the target and each header have at most \(limits.headerFieldSizeBytesMax) bytes, all of them together \(limits.headerListSizeBytesMax), and there are at most \(limits.headerCountMax) headers."
    }

    private func end() {
        state = .ended
        awaitsContinue = false
        front.discardRest()
    }

    private func refuse(_ request: RefusedRequest, _ context: ChannelHandlerContext) {
        switch state {
        case .ended, .upgraded: return
        case .fresh, .ordinary, .last, .upgrading: break
        }
        end()
        metrics.refused(OperationName.none, request.problem.code)
        refused = request
        isRefusalOfOpenRequest = isInsideRequest
        finish(context)
    }

    /// Tells a client to send its body, after the answers to earlier requests.
    private func sendContinue(_ context: ChannelHandlerContext) {
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
            // The rest of a request that is answered before its end isn't read: its body isn't needed.
            let isEarly = isInsideRequest && unanswered <= 1 && head.status.code >= 200
            if isEarly || head.headers[canonicalForm: "connection"].contains("close") { end() }
            // With several requests under way, only the last answer ends the connection.
            if case .ended = state, unanswered <= 1, refused == nil || isRefusalOfOpenRequest {
                head.headers.endConnection()
            }
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .body:
            context.write(data, promise: promise)
        case .end:
            isAnswering = false
            unanswered = max(0, unanswered - 1)
            // The request that broke off already has its answer.
            if isRefusalOfOpenRequest, unanswered == 0 { refused = nil }
            let isLast = if case .ended = state, unanswered == 0, refused == nil { true } else { false }
            let written = isLast ? promise ?? context.eventLoop.makePromise() : promise
            context.write(data, promise: written)
            // An unanswered request that is still arriving isn't being worked on.
            front.answered(isWorking: unanswered > (isInsideRequest ? 1 : 0))
            if isLast, let written {
                closeOutput(context, after: written.futureResult)
            } else {
                sendContinue(context)
                finish(context)
            }
        }
    }

    /// Writes the refusal of the last request once the earlier ones are answered.
    private func finish(_ context: ChannelHandlerContext) {
        guard case .ended = state, let refused, !isAnswering else { return }
        guard unanswered == (isRefusalOfOpenRequest ? 1 : 0) else {
            // The request that broke off was answered before it did.
            if unanswered == 0 { closeOutput(context, after: context.eventLoop.makeSucceededVoidFuture()) }
            return
        }
        self.refused = nil
        for part in refused.parts(in: context.channel.allocator, origins: origins) {
            context.write(wrapOutboundOut(part), promise: nil)
        }
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

    /// Ends the server's half of the connection once everything written before is flushed. If the client has ended its own half, NIO would
    /// close both at once and drop what is queued for a slow reader. A client that reads nothing is still closed by the deadline.
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
    /// Marks an answer as its connection's last. An answer that names `Upgrade` keeps naming it.
    mutating func endConnection() {
        let namesUpgrade = self[canonicalForm: "connection"].contains { $0.lowercased() == "upgrade" }
        replaceOrAdd(name: "connection", value: namesUpgrade ? "close, Upgrade" : "close")
    }
}
