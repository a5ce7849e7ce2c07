import RoostAPI
import RoostTestSupport
import Testing

@Suite("Simulation")
struct SimulationTests {
    @Test("I1-I9 I12 hold in random histories of crashes, cuts and delays", arguments: Seeds.first(200))
    func invariants(seed: UInt64) throws {
        let outcome = try Simulation(seed: seed).run()
        #expect(outcome.verdicts.isEmpty, "\(outcome.failure)")
    }

    @Test("I1-I9 I12 hold while the server's clock is set back and forth by up to a day", arguments: Seeds.first(40))
    func clock(seed: UInt64) throws {
        var profile = Simulation.Profile(seed: seed)
        profile.setsClock = true
        let outcome = try Simulation(seed: seed, profile: profile).run()
        #expect(outcome.verdicts.isEmpty, "\(outcome.failure)")
    }

    @Test("I22 a lost answer undoes nothing that another device has done since", arguments: Seeds.first(40))
    func onlyOnce(seed: UInt64) throws {
        var profile = Simulation.Profile(seed: seed)
        profile.editsMostly = true
        profile.actions = 300
        profile.channelsMax = 1
        let outcome = try Simulation(seed: seed, profile: profile).run()
        #expect(outcome.verdicts.isEmpty, "\(outcome.failure)")
    }

    @Test("a seed gives the same history each time", arguments: Seeds.first(3))
    func replay(seed: UInt64) throws {
        #expect(try Simulation(seed: seed).run().hash == Simulation(seed: seed).run().hash)
    }

    @Test(
        "the histories contain invitations, roles, hiding, preferences, marks as unread, receipts, signed-out devices and shared writes"
    )
    func memberships() throws {
        var kinds: Set<Event.Kind> = []
        var (receiptCount, signOutCount, waitedCount) = (0, 0, 0)
        for seed in 1...60 as ClosedRange<UInt64> {
            let simulation = try Simulation(seed: seed)
            _ = try simulation.run()
            kinds.formUnion(simulation.eventKinds)
            waitedCount += simulation.server.waitedCount
            receiptCount += simulation.checker.takenReports.values.reduce(0) { $0 + $1.values.reduce(0) { $0 + $1.count } }
            signOutCount += simulation.checker.signOuts.values.reduce(0) { $0 + $1.count }
        }
        let expected: Set<Event.Kind> = [
            .invitationAccepted, .memberRoleChanged, .channelHidden, .preferencesUpdated, .messageDeletedForMe,
            .readingUnmarked,
        ]
        #expect(expected.subtracting(kinds) == [])
        #expect(receiptCount > 50 && signOutCount > 20, "\(receiptCount) receipts, \(signOutCount) devices signed out")
        #expect(waitedCount > 50, "output waited \(waitedCount) times")
    }
}
