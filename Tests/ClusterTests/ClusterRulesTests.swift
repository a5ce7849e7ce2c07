import Synchronization
import Testing

@testable import RoostServer

/// Notices between nodes about changed types and roles.
@Suite("Rules over nodes")
struct ClusterRulesTests {
    @Test("ST-05 R17 only a node through which rules changed says so again each time that its bus is back")
    func saidAgain() {
        let count = Mutex(0)
        let presence = ClusterPresence(node: NodeID("a"), board: PresenceBoard()) { topic, message in
            guard case .rulesChanged = message, topic == .nodes else { return }
            count.withLock { $0 += 1 }
        }
        presence.returned()
        #expect(count.withLock { $0 } == 0)
        // A failing bus loses the notice.
        presence.sayRulesChanged()
        presence.returned()
        #expect(count.withLock { $0 } == 2)
        // The bus may have failed again before any node received it.
        presence.returned()
        #expect(count.withLock { $0 } == 3)
    }
}
