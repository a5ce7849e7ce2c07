import Foundation
import NIOCore
import NIOHTTP1
import RoostAPI

/// The server that calls are sent to, and the token to use.
struct CallServer {
    let isSecure: Bool
    let host: String
    let port: Int
    /// A proxy's prefix for the server's paths.
    private let prefix: String
    private let token: String
    /// The user on whose behalf a backend calls (SB-12).
    private let actsAs: UserID?
    /// The command that starts the server, for the message that it isn't running.
    var startCommand = "roost serve"

    /// - Parameter url: With the scheme `http` or `https`, or as a chat accepts it: `ws`, `wss`, with the socket's path at its end.
    init(_ url: URL, token: String, actsAs: UserID?) {
        isSecure = url.scheme == "https" || url.scheme == "wss"
        host = url.host(percentEncoded: false) ?? ""
        port = url.port ?? (isSecure ? 443 : 80)
        prefix = ServerAddress.prefix(of: url)
        self.token = token
        self.actsAs = actsAs
    }

    /// The address in its usual notation.
    var address: String { "\(isSecure ? "https" : "http")://\(hostHeader)\(prefix)" }

    /// Whether the host is an IP address rather than a name.
    var isNumeric: Bool { (try? SocketAddress(ipAddress: host, port: port)) != nil }

    private var hostHeader: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return port == (isSecure ? 443 : 80) ? name : "\(name):\(port)"
    }

    func parts(of request: CallRequest) -> [HTTPClientRequestPart] {
        var headers = HTTPHeaders([("Host", hostHeader), ("Authorization", "Bearer \(token)")])
        if let actsAs { headers.add(name: "Roost-Act-As", value: CallRequest.encoded(actsAs.rawValue)) }
        if let body = request.body {
            headers.add(name: "Content-Type", value: "application/json")
            headers.add(name: "Content-Length", value: String(body.count))
        }
        let head = HTTPRequestHead(
            version: .http1_1, method: HTTPMethod(rawValue: request.method), uri: prefix + request.target, headers: headers)
        return [.head(head)] + (request.body.map { [.body(.byteBuffer(ByteBuffer(bytes: $0)))] } ?? []) + [.end(nil)]
    }
}
