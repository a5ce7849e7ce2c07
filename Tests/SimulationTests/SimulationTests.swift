import RoostTestSupport
import Testing

@Suite("Simulation")
struct SimulationTests {
    @Test("I1-I9 hold in random histories of crashes, cuts and delays", arguments: Seeds.first(200))
    func invariants(seed: UInt64) throws {
        let outcome = try Simulation(seed: seed).run()
        #expect(outcome.verdicts.isEmpty, "\(outcome.failure)")
        print("STAT \(seed) \(outcome.steps) \(outcome.stored)")
    }

    /// Two findings stand behind what is known here: `IDGenerator(after:)` gives ids a second time when the server starts twice while its
    /// clock is behind, and `Membership.isAhead(of:)` takes a membership that began before the last one by the clock for an old one.
    @Test("I1-I9 hold while the clock of the server is set back and forth by up to a day", arguments: Seeds.first(40))
    func clock(seed: UInt64) throws {
        var profile = Simulation.Profile(seed: seed)
        profile.setsClock = true
        let outcome = try Simulation(seed: seed, profile: profile).run()
        withKnownIssue("order comes from the clock", isIntermittent: true) {
            #expect(outcome.verdicts.isEmpty, "\(outcome.failure)")
        }
    }

    @Test("A seed gives the same history each time", arguments: Seeds.first(3))
    func replay(seed: UInt64) throws {
        #expect(try Simulation(seed: seed).run().hash == Simulation(seed: seed).run().hash)
    }
}
