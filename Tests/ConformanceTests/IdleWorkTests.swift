import Foundation
import RoostAPI
import RoostTestSupport
import Testing

/// What a server does while nobody waits for it.
@Suite("Idle work")
struct IdleWorkTests {
    @Test("a server that nobody writes to any more writes its log into the database")
    func checkpoint() async throws {
        let server = try await TestServer()
        let database = server.directory.appending(path: "roost.sqlite").path
        func sizeBytes() throws -> Int {
            try FileManager.default.attributesOfItem(atPath: database)[.size] as? Int ?? 0
        }
        let ann = try await server.socket("ann")
        try await ann.call(CreateChannel(channel: "general"))
        let before = try sizeBytes()
        // More than a megabyte of log, and far less than is due while others wait.
        for number in 0..<100 {
            let text = String(repeating: "x", count: 15_000)
            try await ann.call(SendMessage(channel: "general", clientId: ClientID("\(number)"), text: text))
        }
        try await Polling.value(sizeBytes) { $0 > before + 1_500_000 }
        try await server.stop()
    }
}
