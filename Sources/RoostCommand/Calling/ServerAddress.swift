import Foundation
import Roost
import RoostAPI

/// A server's address, as typed or set.
struct ServerAddress {
    /// With its scheme in lower case: programs ask which one it is.
    let url: URL

    /// An address that no server can have.
    struct InvalidInput: Error {
        /// What an address must be: "must have a port from 1 to 65535."
        let requirement: String
    }

    init(_ text: String) throws(InvalidInput) {
        let scheme = text.prefix { $0 != ":" }
        guard let url = URL(string: scheme.lowercased() + String(text[scheme.endIndex...])), url.host() != nil else {
            throw InvalidInput(
                requirement: "must be like http://127.0.0.1:8080 or https://chat.example.com; it is '\(text.safe())'.")
        }
        // All commands refuse the same addresses as the SDK. The address isn't repeated, since it may contain a password.
        do { try WebSocketTransport().validate(url) } catch {
            throw InvalidInput(requirement: String(error.message.trimmingPrefix("url ")))
        }
        self.url = url
    }

    /// The prefix that a proxy adds to all paths of the server: the path of its address, without the socket's own at the end. Empty if there is none.
    static func prefix(of url: URL) -> String {
        let path = withoutSlashesAtEnd(url.path(percentEncoded: true))
        return path.hasSuffix(socketPath) ? withoutSlashesAtEnd(String(path.dropLast(socketPath.count))) : path
    }

    /// The address of the server's socket, below the prefix. The SDK takes any path to be the socket's own.
    var socket: URL {
        guard !["", "/"].contains(url.path(percentEncoded: true)) else { return url }
        var components = URLComponents(url: url, resolvingAgainstBaseURL: false)
        components?.percentEncodedPath = Self.prefix(of: url) + Self.socketPath
        return components?.url ?? url
    }

    private static let socketPath = "/v1/socket"

    private static func withoutSlashesAtEnd(_ path: String) -> String { String(path.reversed().drop { $0 == "/" }.reversed()) }
}
