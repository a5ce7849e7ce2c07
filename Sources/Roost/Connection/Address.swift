import Foundation
import NIOCore

/// The address of a server's socket, derived from the address that the app gave.
struct Address: Hashable {
    var isSecure: Bool
    var host: String
    var port: Int
    var path: String

    struct InvalidURL: Error, CustomStringConvertible {
        var url: URL
        var description: String { "\(url) isn't an address like https://chat.example.com" }
    }

    /// - Parameter url: With the scheme `ws`, `wss`, `http` or `https`. Without a path, the server's usual one is meant.
    init(_ url: URL) throws {
        guard let scheme = url.scheme?.lowercased(), let host = url.host(percentEncoded: false), !host.isEmpty else {
            throw InvalidURL(url: url)
        }
        switch scheme {
        case "ws", "http": isSecure = false
        case "wss", "https": isSecure = true
        default: throw InvalidURL(url: url)
        }
        self.host = host
        port = url.port ?? (isSecure ? 443 : 80)
        let path = url.path(percentEncoded: true)
        self.path = path.isEmpty || path == "/" ? "/v1/socket" : path
    }

    /// Whether the host is an IP address rather than a name.
    var isNumeric: Bool { (try? SocketAddress(ipAddress: host, port: port)) != nil }

    var hostHeader: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return port == (isSecure ? 443 : 80) ? name : "\(name):\(port)"
    }
}
