#if Cluster
import Testing

@testable import RoostDatabase

@Suite("PostgreSQLDatabase: pauses")
struct SilencePausesTests {
    @Test("I24 after silence a connection is made at once, after more of it later and later, and after an answer at once again")
    func pauses() {
        var pauses = ConnectBackoff()
        var now = ContinuousClock.now
        /// Silence that several lanes meet at once counts once.
        func silence() -> Duration? {
            now += (pauses.remaining(at: now) ?? .zero) + .seconds(40)
            for lane in 0..<4 { pauses.noteTimeout(at: now + .milliseconds(lane * 300)) }
            return pauses.remaining(at: now)
        }
        #expect(pauses.remaining(at: now) == nil)
        #expect((1...8).map { _ in silence() } == [nil, 40, 80, 120, 120, 120, 120, 120].map { $0.map { .seconds($0) } })
        for _ in 0..<100 { _ = silence() }
        now += .seconds(119)
        #expect(pauses.remaining(at: now) == .seconds(1))
        now += .seconds(1)
        #expect(pauses.remaining(at: now) == nil)
        pauses.noteAnswer()
        #expect(silence() == nil)
    }

    @Test("I24 the first silence makes no pause, however many lanes meet it: another server may have taken over")
    func firstSilence() {
        var pauses = ConnectBackoff()
        let first = ContinuousClock.now
        // These waits had begun before the first one ended.
        for seconds in [0, 1, 20, 39] { pauses.noteTimeout(at: first + .seconds(seconds)) }
        #expect(pauses.remaining(at: first + .seconds(39)) == nil)
        // This one begins after it.
        pauses.noteTimeout(at: first + .seconds(40))
        #expect(pauses.remaining(at: first + .seconds(40)) == .seconds(40))
        // After an answer the next silence is the first again.
        pauses.noteAnswer()
        pauses.noteTimeout(at: first + .seconds(41))
        pauses.noteTimeout(at: first + .seconds(80))
        #expect(pauses.remaining(at: first + .seconds(80)) == nil)
    }

    @Test("I24 no pause is shorter than the silence before it: waits that began then are over by its end")
    func longSilence() {
        var pauses = ConnectBackoff()
        var now = ContinuousClock.now
        let found = (1...5).map { _ in
            now += (pauses.remaining(at: now) ?? .zero) + .seconds(70)
            pauses.noteTimeout(at: now, after: .seconds(70))
            return pauses.remaining(at: now)
        }
        #expect(found == [nil, 70, 80, 120, 120].map { $0.map { .seconds($0) } })
    }
}
#endif
