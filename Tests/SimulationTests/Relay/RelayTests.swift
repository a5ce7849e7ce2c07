import Foundation
import RoostAPI
import RoostCore
import RoostTestSupport
import Testing

@testable import RoostServer

/// The order that a node makes of its own commits and the bus's events.
@Suite("Relay")
struct RelayTests {
    static let seeds = Seeds.first(120)

    @Test("I3 I6 I9 I10 whatever bus, database and nodes do, clients see one order without gaps", arguments: seeds)
    func simulation(seed: UInt64) {
        let world = RelayWorld(seed: seed)
        world.live(steps: 1500)
        if !world.faultsFound.isEmpty { for line in world.trace { print(line) } }
        #expect(world.faultsFound == [], "ROOST_TEST_SEED=\(seed)")
        #expect(world.eventCount > 100)
    }

    @Test("I3 I6 I9 I10 for watchers too, and those who stop", arguments: seeds)
    func simulationWithWatchers(seed: UInt64) {
        let world = RelayWorld(seed: seed, faults: .init(hasWatchers: true))
        world.live(steps: 1000)
        if !world.faultsFound.isEmpty { for line in world.trace { print(line) } }
        #expect(world.faultsFound == [], "ROOST_TEST_SEED=\(seed)")
    }

    @Test("I3 I6 I9 I10 without a bus too, when all commits of other nodes are found by comparing", arguments: seeds)
    func simulationWithoutBus(seed: UInt64) {
        let world = RelayWorld(seed: seed, faults: .init(lossPercent: 100))
        world.live(steps: 1000)
        if !world.faultsFound.isEmpty { for line in world.trace { print(line) } }
        #expect(world.faultsFound == [], "ROOST_TEST_SEED=\(seed)")
    }

    @Test("I3 on a faultless bus nothing is fetched in vain", arguments: seeds.prefix(10))
    func calm(seed: UInt64) {
        let world = RelayWorld(
            seed: seed,
            faults: .init(
                lossPercent: 0, repeatPercent: 0, delayMax: 2, crashEvery: .max, busOutageEvery: .max, databaseOutageEvery: .max))
        world.live(steps: 800)
        #expect(world.faultsFound == [], "ROOST_TEST_SEED=\(seed)")
    }
}
