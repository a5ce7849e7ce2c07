import Foundation
import RoostAPI

/// The address of a server's socket, derived from the address that the app gave.
struct Address: Hashable {
    var isSecure: Bool
    var host: String
    var port: Int
    var path: String

    /// - Parameter url: With the scheme `ws`, `wss`, `http` or `https`, and nothing after the path. Without a path, the server's default path is used.
    /// - Throws: `invalid_argument` for any other URL.
    init(_ url: URL) throws(RoostError) {
        guard let scheme = url.scheme?.lowercased(), let host = url.host(percentEncoded: false), !host.isEmpty else {
            throw .invalidArgument("url", "must be an address like https://chat.example.com")
        }
        switch scheme {
        case "ws", "http": isSecure = false
        case "wss", "https": isSecure = true
        default: throw .invalidArgument("url", "must be an address like https://chat.example.com")
        }
        self.host = host
        port = url.port ?? (isSecure ? 443 : 80)
        // A resolver would take the low 16 bits of another number and connect elsewhere. Foundation ignores a port too large for an Int, and the
        // scheme's default would be used.
        guard 1...65_535 ~= port, url.port != nil || !Self.hasPort(url) else {
            throw .invalidArgument("url", "must have a port from 1 to 65535")
        }
        guard url.query == nil, url.fragment == nil, url.user == nil, url.password == nil else {
            throw .invalidArgument("url", "must have no query, fragment, user or password")
        }
        let path = url.path(percentEncoded: true)
        self.path = path.isEmpty || path == "/" ? Self.defaultPath : path
    }

    /// Whether the URL has a number in place of the port.
    private static func hasPort(_ url: URL) -> Bool {
        url.absoluteString.contains(/^[^\/?#]*:\/\/[^\/?#]*:[0-9]+(?:[\/?#]|$)/)
    }

    /// The path of a server's socket, unless a proxy puts it elsewhere.
    static let defaultPath = "/v1/socket"

    /// Whether the host is an IP address rather than a name.
    var isNumeric: Bool {
        var address = in6_addr()
        return host.withCString { inet_pton(AF_INET, $0, &address) == 1 || inet_pton(AF_INET6, $0, &address) == 1 }
    }

    /// The URL with scheme, port and path.
    var url: URL? {
        var components = URLComponents()
        components.scheme = isSecure ? "wss" : "ws"
        // An IPv6 literal is enclosed in brackets.
        components.percentEncodedHost =
            host.contains(":") ? "[\(host)]" : host.addingPercentEncoding(withAllowedCharacters: .urlHostAllowed)
        components.port = port
        components.percentEncodedPath = path
        return components.url
    }

    var hostHeader: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return port == (isSecure ? 443 : 80) ? name : "\(name):\(port)"
    }
}
