import RoostAPI
import Testing

@testable import RoostServer

/// Which streams a node compares with the database next.
@Suite("Sweep")
struct SweepTests {
    @Test("a comparison of all streams that is restarted before its end still reaches every stream")
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
            compared.formUnion(sweep.next(of: [StreamID: Int](), at: now, settings) ?? [])
        }
        #expect(compared == Set(streams))
        // Streams that are no longer followed aren't compared.
        sweep.begin(streams.prefix(2))
        var last: [StreamID] = []
        for _ in 0..<3 {
            now += 20
            if last.count < 2 { last += sweep.next(of: [StreamID: Int](), at: now, settings) ?? [] }
        }
        #expect(Set(last) == Set(streams.prefix(2)))
    }

    @Test("in quiet times each stream is compared within a second plus a full round, whenever it was opened")
    func inTurn() {
        var settings = Relay.Settings()
        settings.sweepPerSecond = 10
        var sweep = Sweep()
        func stream(_ number: Int) -> StreamID { .channel(ChannelID("c\(number)")) }
        /// When each of the open streams was opened or compared.
        var knownAt: [StreamID: Relay.Time] = [:]
        var longest: Relay.Time = 0
        for second in 1...300 {
            let now = Relay.Time(second) * 1000
            let part = sweep.next(of: knownAt, at: now, settings) ?? []
            #expect(Set(part).count == part.count && part.allSatisfy { knownAt[$0] != nil })
            for compared in part { longest = max(longest, now - (knownAt.updateValue(now, forKey: compared) ?? now)) }
            sweep.follow(stream(second))
            knownAt[stream(second)] = now
            // A hundred are open at a time.
            if second > 100 { knownAt[stream(second - 100)] = nil }
            // Closed, and opened again before it was reached.
            if second > 50 { sweep.follow(stream(second - 50)) }
        }
        #expect(longest <= 11_000)
        #expect(knownAt.count == 100 && knownAt.values.allSatisfy { 300_000 - $0 <= 11_000 })
    }
}
