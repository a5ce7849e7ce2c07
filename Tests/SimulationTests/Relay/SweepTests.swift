import RoostAPI
import Testing

@testable import RoostServer

/// Which streams a node compares with the database next.
@Suite("Sweep")
struct SweepTests {
    @Test("I15 a comparison of all that is begun again before its end comes to every stream all the same")
    func begunAgain() {
        let streams = (0..<20).map { StreamID.channel(ChannelID("c\($0)")) }
        var settings = Relay.Settings()
        settings.sweepAtOnce = 3
        var sweep = Sweep()
        var compared: Set<StreamID> = []
        var now: Relay.Time = 0
        for _ in 0..<10 {
            sweep.begin(streams)
            now += 1000
            compared.formUnion(sweep.next(of: streams, at: now, settings) ?? [])
        }
        #expect(compared == Set(streams))
        // What isn't followed any more isn't compared.
        sweep.begin(streams.prefix(2))
        var last: [StreamID] = []
        for _ in 0..<3 {
            now += 20
            if last.count < 2 { last += sweep.next(of: streams.prefix(2), at: now, settings) ?? [] }
        }
        #expect(Set(last) == Set(streams.prefix(2)))
    }
}
