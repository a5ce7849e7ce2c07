import Foundation
import Roost

/// Sends one message.
@main
enum Consumer {
    static func main() async throws {
        guard let server = URL(string: "http://127.0.0.1:8080") else { return }
        let chat = Chat(url: server, user: "ann") { ProcessInfo.processInfo.environment["TOKEN"] ?? "" }
        try await chat.connect()
        try await chat.channel("general").send("hi")
    }
}
