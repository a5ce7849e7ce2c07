import Foundation
import RoostAPI
import RoostTestSupport
import Testing

/// The work of an idle server.
@Suite("Idle work")
struct IdleWorkTests {
    @Test("a server without further writes checkpoints its log into the database")
    func checkpoint() async throws {
        let server = try await TestServer()
        let database = server.directory.appending(path: "roost.sqlite").path
        func sizeBytes() throws -> Int {
            try FileManager.default.attributesOfItem(atPath: database)[.size] as? Int ?? 0
        }
        let ann = try await server.socket("ann")
        try await ann.call(CreateChannel(channel: "general"))
        let before = try sizeBytes()
        // More than a megabyte of log, and far less than makes a checkpoint due under load.
        for number in 0..<100 {
            let text = String(repeating: "x", count: 15_000)
            try await ann.call(SendMessage(channel: "general", clientId: ClientID("\(number)"), text: text))
        }
        try await Polling.value(sizeBytes) { $0 > before + 1_500_000 }
        try await server.stop()
    }
}
