import RoostAPI
import RoostTestSupport
import Testing

/// One channel takes all that the engine can do.
@Suite struct HotChannelTests {
    @Test("I18 who sends in a quiet channel waits for four batches of a hot one at most, however much is under way there")
    func quietBesideHot() async throws {
        let server = try await TestServer()
        let waits = try await HotChannel.waits(on: server, quiet: ["quiet"])
        print("Beside a hot channel: \(waits)")
        #expect(waits.quiet <= HotChannel.bound)
        // Otherwise nothing was hot.
        #expect(waits.hot > HotChannel.bound)
        try await server.stop()
    }
}
