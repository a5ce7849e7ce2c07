import Foundation
import Testing

@testable import RoostCommand

@Suite("A path in a server's address")
struct ServerAddressTests {
    @Test("is a proxy's prefix of all of the server's paths, its socket's too")
    func prefix() throws {
        let addresses = [
            "http://127.0.0.1:8080", "https://chat.example.com/", "wss://chat.example.com/v1/socket", "https://example.com/roost",
            "https://example.com/roost/", "wss://example.com/a/b%20c/v1/socket",
        ]
        let found = try addresses.map { text in
            let address = try ServerAddress(text)
            return [ServerAddress.prefix(of: address.url), address.socket.absoluteString]
        }
        #expect(
            found == [
                ["", "http://127.0.0.1:8080"], ["", "https://chat.example.com/"], ["", "wss://chat.example.com/v1/socket"],
                ["/roost", "https://example.com/roost/v1/socket"], ["/roost", "https://example.com/roost/v1/socket"],
                ["/a/b%20c", "wss://example.com/a/b%20c/v1/socket"],
            ])
    }
}
