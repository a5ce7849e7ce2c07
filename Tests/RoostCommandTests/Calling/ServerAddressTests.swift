import Foundation
import Testing

@testable import RoostCommand

@Suite("Server addresses")
struct ServerAddressTests {
    @Test("a scheme in capital letters is accepted, as in the SDK, and another scheme is refused")
    func schemes() throws {
        let addresses = ["HTTP://127.0.0.1:8080", "Https://Chat.example.com/Roost", "WSS://chat.example.com"]
        #expect(
            try addresses.map { try ServerAddress($0).url.absoluteString }
                == ["http://127.0.0.1:8080", "https://Chat.example.com/Roost", "wss://chat.example.com"])
        let refusal = #expect(throws: ServerAddress.InvalidInput.self) { try ServerAddress("ftp://chat.example.com") }
        #expect(refusal?.requirement == "must be an address like https://chat.example.com.")
    }

    @Test("a path in an address is a proxy's prefix of all of the server's paths, its socket's too")
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
