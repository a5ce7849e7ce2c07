import RoostAPI
import RoostTestSupport
import Testing

/// One channel takes all of the engine's capacity.
@Suite struct HotChannelTests {
    @Test("I18 a sender in a quiet channel waits for four batches of a hot one at most, however many calls the hot one has queued")
    func quietBesideHot() async throws {
        let server = try await TestServer()
        let waits = try await HotChannel.waits(on: server, quiet: ["quiet"])
        print("Waits next to a hot channel: \(waits)")
        #expect(waits.quiet <= HotChannel.bound)
        // Otherwise the channel wasn't hot.
        #expect(waits.hot > HotChannel.bound)
        try await server.stop()
    }
}
