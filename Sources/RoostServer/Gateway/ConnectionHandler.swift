import NIOCore
import NIOHTTP1
import RoostAPI

/// The state of an HTTP connection between its requests and answers, and what shutdown does to it.
///
/// A state machine without I/O.
struct ConnectionState: Equatable {
    /// Requests that began to arrive and aren't fully answered.
    private(set) var inFlight = 0
    /// Whether any request has arrived. A new connection's first request may be on its way: it is answered even during shutdown.
    private var isUsed = false
    /// Whether the requests under way are the last.
    private(set) var isEnding: Bool
    /// Whether the last answer was written completely.
    private(set) var isOver = false

    /// - Parameter isEnding: Whether the connection is for one request only.
    init(isEnding: Bool = false) { self.isEnding = isEnding }

    mutating func requestBegan() {
        isUsed = true
        inFlight += 1
    }

    /// - Returns: Whether the answer must say that the connection ends. If more requests are under way, only the last answer says so: a
    ///   client assumes that requests after such an answer weren't carried out.
    func answerBegan() -> Bool { isEnding && inFlight <= 1 }

    /// - Returns: Whether the connection is closed once this is written.
    mutating func answerEnded() -> Bool {
        inFlight = max(0, inFlight - 1)
        isOver = isEnding && inFlight == 0
        return isOver
    }

    /// The server is shutting down.
    ///
    /// - Returns: Whether to close the connection after what has been written, because it waits for another request.
    mutating func drain() -> Bool {
        isEnding = true
        return isUsed && inFlight == 0
    }
}

/// Ends an HTTP connection gracefully during shutdown, and refuses requests that a connection at a limit may not make.
///
/// A request under way is answered with `Connection: close`. A reserve connection answers only health checks. No socket begins during
/// shutdown, or for an address that is at its connection limit.
final class ConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private static let healthPaths: Set<String> = ["/livez", "/readyz"]

    private let ticket: ConnectionTicket
    private let origins: AllowedOrigins
    private var state: ConnectionState
    private var isRefused = false
    /// The refused request, until those before it are answered.
    private var refused: RefusedRequest?
    private var upgrade = Upgrade.none

    /// Data after the end of an upgrade request is raw bytes.
    private enum Upgrade { case none, began, ended }

    init(ticket: ConnectionTicket, origins: AllowedOrigins = .none) {
        self.ticket = ticket
        self.origins = origins
        // A connection accepted during shutdown is answered once.
        state = ConnectionState(isEnding: ticket.isReserve || ticket.connections.isDraining)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if isRefused { return }
        guard upgrade != .ended else { return context.fireChannelRead(data) }
        switch unwrapInboundIn(data) {
        case .head(let head):
            state.requestBegan()
            // The rules on heads leave this header only on valid requests.
            if head.headers.contains(name: "upgrade") { upgrade = .began }
            if let error = refusal(of: head) {
                isRefused = true
                ticket.connections.refusedRequest(error)
                refused = RefusedRequest(
                    problem: Problem(error), origin: head.headers.first(name: "origin"), isHead: head.method == .HEAD)
                return refuse(context)
            }
        case .body: break
        case .end:
            if upgrade == .began { upgrade = .ended }
        }
        context.fireChannelRead(data)
    }

    private func refusal(of head: HTTPRequestHead) -> RoostError? {
        let path = head.uri.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false).first.map(String.init) ?? ""
        if ticket.isReserve, !Self.healthPaths.contains(path) { return .tooManyConnections }
        guard upgrade == .began else { return nil }
        if ticket.connections.isDraining {
            return RoostError(.unavailable, "The server is shutting down.", retryAfterMilliseconds: 1000)
        }
        do {
            try ticket.forwarded(for: head.headers["x-forwarded-for"])
            return nil
        } catch {
            return error
        }
    }

    /// Answers a refused request once the earlier ones are answered, and closes.
    private func refuse(_ context: ChannelHandlerContext) {
        guard let refused, state.inFlight == 1 else { return }
        self.refused = nil
        for part in refused.parts(in: context.channel.allocator, origins: origins) {
            context.write(wrapOutboundOut(part), promise: nil)
        }
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        // Requests after this one get no answer.
        context.close(mode: .output, promise: nil)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(var head) where head.status != .continue && head.status != .switchingProtocols:
            ticket.answerBegan()
            if state.answerBegan() { head.headers.endConnection() }
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .end:
            let isOver = state.answerEnded()
            context.write(data, promise: promise)
            ticket.answerEnded()
            // An answer that began before the shutdown hasn't said that it is the last.
            if isOver { context.close(mode: .output, promise: nil) } else { refuse(context) }
        default:
            context.write(data, promise: promise)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ChannelShouldQuiesceEvent, state.drain() {
            // The rest of an answer to a slow reader is sent first.
            context.close(mode: .output, promise: nil)
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }
}
