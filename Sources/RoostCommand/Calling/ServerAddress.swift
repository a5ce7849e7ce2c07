import Foundation
import Roost
import RoostAPI

/// A server's address, as it is typed or set.
struct ServerAddress {
    let url: URL

    /// An address that no server can have.
    struct Wrong: Error {
        /// What an address must be: "must have a port from 1 to 65535."
        let requirement: String
    }

    init(_ text: String) throws(Wrong) {
        guard let url = URL(string: text), ["http", "https", "ws", "wss"].contains(url.scheme), url.host() != nil else {
            throw Wrong(requirement: "must be like http://127.0.0.1:8080 or https://chat.example.com; it is '\(text.safe())'.")
        }
        // All commands refuse what the SDK does. The address isn't repeated: there may be a password in it.
        do { try WebSocketTransport().validate(url) } catch {
            throw Wrong(requirement: String(error.message.trimmingPrefix("url ")))
        }
        self.url = url
    }
}
