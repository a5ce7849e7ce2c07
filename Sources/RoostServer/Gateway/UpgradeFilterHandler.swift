import Foundation
import NIOCore
import NIOHTTP1

/// Decides what becomes of a request that asks for another protocol.
///
/// A lawful request for the socket, the first of its connection, goes on to NIO's upgrade handler. From its end on nothing that comes through
/// here is HTTP any more: the bytes that the client sent behind it, and those that arrive until this handler is removed, are handed on untouched
/// and become the socket's first frames.
///
/// Any other such wish is ignored, as RFC 9110 §7.8 allows: clients that offer HTTP/2 in plain text with every request count on it, and NIO's
/// upgrade handler would drop the request. The HTTP parser stops behind a request that asks for an upgrade, whether it is given or not, and
/// behind CONNECT. So such a request is the last of its connection, and what follows it is thrown away.
final class UpgradeFilterHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    private enum State {
        /// No request came yet: only the first can become a socket.
        case fresh
        case ordinary
        /// The request that is coming is the connection's last.
        case last
        /// A lawful upgrade: what comes behind its end isn't HTTP.
        case upgrading
        case upgraded
    }

    private let front: RequestDeadlineHandler
    private var state = State.fresh

    init(front: RequestDeadlineHandler) {
        self.front = front
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // The decoder is gone, and these are bytes.
        if case .upgraded = state {
            context.fireChannelRead(data)
            return
        }
        switch unwrapInboundIn(data) {
        case .head(let head): receive(head, context)
        case .body: context.fireChannelRead(data)
        case .end:
            if case .upgrading = state { state = .upgraded }
            if case .last = state { front.discardRest() }
            context.fireChannelRead(data)
        }
    }

    private func receive(_ original: HTTPRequestHead, _ context: ChannelHandlerContext) {
        var head = original
        if case .fresh = state, Self.isLawful(head) {
            state = .upgrading
        } else if head.headers.contains(name: "upgrade") || head.method == .CONNECT {
            state = .last
            head.headers.remove(name: "upgrade")
            head.headers.replaceOrAdd(name: "connection", value: "close")
        } else {
            state = .ordinary
        }
        context.fireChannelRead(wrapInboundOut(.head(head)))
    }

    /// Whether a request opens a socket as RFC 6455 §4.1 says, where there is one.
    static func isLawful(_ head: HTTPRequestHead) -> Bool {
        let path = head.uri.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false).first
        return head.method == .GET && head.version == .http1_1 && path == GatewayChannel.socketPath[...]
            && head.headers[canonicalForm: "upgrade"].contains { $0.lowercased() == "websocket" }
            && head.headers[canonicalForm: "connection"].contains { $0.lowercased() == "upgrade" }
            // A body would stand where the socket's first frames stand.
            && !head.headers.contains(name: "transfer-encoding")
            && head.headers[canonicalForm: "content-length"].allSatisfy { $0 == "0" }
            // A socket is one user's own: in whose name each of its calls is, its token says.
            && !head.headers.contains(name: RequestHeaders.actAs)
            && head.headers["sec-websocket-version"] == ["13"] && isKey(head.headers["sec-websocket-key"])
    }

    /// Whether the key is there once, and is 16 bytes as base64.
    private static func isKey(_ values: [String]) -> Bool {
        values.count == 1 && values.allSatisfy { Data(base64Encoded: $0)?.count == 16 }
    }
}
