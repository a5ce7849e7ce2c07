import Synchronization
import Testing

@testable import RoostServer

/// What nodes tell one another of changed types and roles.
@Suite("Rules over nodes")
struct ClusterRulesTests {
    @Test("ST-05 R17 a node through which rules changed says so again each time that its bus is back, and any other doesn't")
    func saidAgain() {
        let count = Mutex(0)
        let presence = ClusterPresence(node: NodeID("a"), board: PresenceBoard()) { topic, message in
            guard case .rulesChanged = message, topic == .nodes else { return }
            count.withLock { $0 += 1 }
        }
        presence.returned()
        #expect(count.withLock { $0 } == 0)
        // A bus that fails loses it.
        presence.sayRulesChanged()
        presence.returned()
        #expect(count.withLock { $0 } == 2)
        // The bus may have failed again before anybody heard it.
        presence.returned()
        #expect(count.withLock { $0 } == 3)
    }
}
