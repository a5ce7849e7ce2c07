import Foundation
import NIOHTTP1
import RoostAPI

/// The request that turns a connection into a socket.
enum SocketRequest {
    /// Returns whether a request is a valid handshake (RFC 6455 §4.1) for the socket's path.
    static func opensSocket(_ head: HTTPRequestHead) -> Bool {
        let path = head.uri.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false).first
        return head.method == .GET && head.version == .http1_1 && path == GatewayChannel.socketPath[...]
            && head.headers[canonicalForm: "upgrade"].contains { $0.lowercased() == "websocket" }
            && head.headers[canonicalForm: "connection"].contains { $0.lowercased() == "upgrade" }
            // A body would be taken for the socket's first frames.
            && !head.headers.contains(name: "transfer-encoding")
            && head.headers[canonicalForm: "content-length"].allSatisfy { $0 == "0" }
            && !hasHeaderOfOperation(head) && hasValidDevice(head)
            && head.headers["sec-websocket-version"] == ["13"] && isKey(head.headers["sec-websocket-key"])
    }

    private static func hasHeaderOfOperation(_ head: HTTPRequestHead) -> Bool {
        RequestHeaders.notOfSocket.contains { head.headers.contains(name: $0.name) }
    }

    private static func hasValidDevice(_ head: HTTPRequestHead) -> Bool {
        do throws(RoostError) {
            _ = try DeviceHeaders.device(in: head.headers)
            return true
        } catch {
            return false
        }
    }

    /// Whether there is exactly one key, of 16 bytes in base64.
    private static func isKey(_ values: [String]) -> Bool {
        values.count == 1 && values.allSatisfy { Data(base64Encoded: $0)?.count == 16 }
    }
}
