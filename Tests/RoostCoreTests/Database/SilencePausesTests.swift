#if Cluster
import Testing

@testable import RoostDatabase

@Suite("PostgreSQLDatabase: pauses")
struct SilencePausesTests {
    @Test("I24 after silence a connection is made at once, after more of it later and later, and after an answer at once again")
    func pauses() {
        var pauses = SilencePauses()
        var now = ContinuousClock.now
        func silence() -> Duration? {
            pauses.noteSilence(at: now)
            return pauses.remaining(at: now)
        }
        #expect(pauses.remaining(at: now) == nil)
        #expect((1...8).map { _ in silence() } == [nil, 40, 80, 160, 320, 600, 600, 600].map { $0.map { .seconds($0) } })
        for _ in 0..<100 { _ = silence() }
        now += .seconds(599)
        #expect(pauses.remaining(at: now) == .seconds(1))
        now += .seconds(1)
        #expect(pauses.remaining(at: now) == nil)
        pauses.noteAnswer()
        #expect(silence() == nil)
    }
}
#endif
