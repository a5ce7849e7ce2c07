import NIOCore
import NIOHTTP1

/// Makes an ordinary request of one that asks for an upgrade which isn't given: another protocol, another path, another version of WebSocket.
///
/// RFC 9110 §7.8 lets a server ignore such a wish, and clients that offer HTTP/2 in plain text with every request count on it. NIO's upgrade
/// handler would drop the request instead of handing it on.
final class UpgradeFilterHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard case .head(var head) = unwrapInboundIn(data), head.headers.contains(name: "upgrade"), !Self.isLawful(head) else {
            context.fireChannelRead(data)
            return
        }
        head.headers.remove(name: "upgrade")
        let options = head.headers[canonicalForm: "connection"].filter { $0.lowercased() != "upgrade" }
        head.headers.replaceOrAdd(name: "connection", value: options.isEmpty ? "keep-alive" : options.joined(separator: ", "))
        context.fireChannelRead(wrapInboundOut(.head(head)))
    }

    /// Whether a request opens a socket as RFC 6455 §4.1 says, where there is one.
    static func isLawful(_ head: HTTPRequestHead) -> Bool {
        let path = head.uri.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false).first
        return head.method == .GET && path == GatewayChannel.socketPath[...]
            && head.headers[canonicalForm: "upgrade"].contains { $0.lowercased() == "websocket" }
            && head.headers[canonicalForm: "connection"].contains { $0.lowercased() == "upgrade" }
            // A socket is one user's own: in whose name each of its calls is, its token says.
            && !head.headers.contains(name: RequestHeaders.actAs)
            && head.headers["sec-websocket-version"] == ["13"] && head.headers["sec-websocket-key"].count == 1
    }
}
