import Foundation
import NIOHTTP1

/// The request that turns a connection into a socket.
enum SocketRequest {
    /// Whether a request opens a socket as RFC 6455 §4.1 says, where there is one.
    static func opensSocket(_ head: HTTPRequestHead) -> Bool {
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
