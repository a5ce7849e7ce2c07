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
            now += pauses.remaining(at: now) ?? .zero
            pauses.noteTimeout(at: now)
            let pause = pauses.remaining(at: now)
            if pause != nil { for _ in 0..<3 { pauses.noteTimeout(at: now) } }
            return pause
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

    @Test("I24 no pause is shorter than the silence before it: waits that began then are over by its end")
    func longSilence() {
        var pauses = ConnectBackoff()
        var now = ContinuousClock.now
        let found = (1...5).map { _ in
            now += pauses.remaining(at: now) ?? .zero
            pauses.noteTimeout(at: now, after: .seconds(70))
            return pauses.remaining(at: now)
        }
        #expect(found == [nil, 70, 80, 120, 120].map { $0.map { .seconds($0) } })
    }
}
#endif
