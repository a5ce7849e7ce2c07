import Logging
import RoostAPI
import RoostTestSupport
import Testing

@testable import Roost
@testable import RoostClientModel

@Suite("The model of the store in simulations")
struct MemoryStoreTests {
    @Test("It holds what the store holds after the same writes", arguments: Seeds.first(3))
    func agreement(seed: UInt64) async throws {
        let transactions = try writes(seed: seed)
        let store = try Store(url: nil, user: "ann", logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        var model = MemoryStore(user: "ann")
        // A list reads on from the messages that it has.
        var known: [ChannelID: [CachedMessage]] = [:]
        for writes in transactions {
            model.apply(writes)
            try await store.write(writes)
            for channel in Set(writes.compactMap(\.channel)) {
                let before = known[channel] ?? []
                known[channel] = try await store.read { try $0.messages(of: channel, limit: 1000, known: before).rows }
            }
        }
        #expect(try await store.savedState() == model.saved)
        let listed = try await store.read { try ChannelQuery(hidden: .all).places(in: $0).map(\.id) }
        #expect(Set(listed) == Set(model.joined))
        for (channel, row) in model.channels {
            let view = try await store.read { try $0.channelView(channel) }
            let (before, all) = (known[channel] ?? [], (model.messages[channel] ?? [:]).values.sorted { $0.seq < $1.seq })
            for known in [[], before, before.filter { $0.seq.isMultiple(of: 2) }] {
                let cached = try await store.read { try $0.messages(of: channel, limit: 1000, known: known) }
                #expect(cached.rows.compactMap(\.item.message) == all)
            }
            #expect(view?.channel == row)
            // A deleted channel is shown without members.
            let membership = model.memberships[channel]
            let role = membership?.state == .member ? membership?.role : nil
            if row.deletedAt == nil { #expect(view?.membership == membership) }
            #expect(view?.ownCapabilities == (row.deletedAt == nil ? model.capabilities[channel]?.now(as: role) ?? [] : []))
        }
    }

    private func writes(seed: UInt64) throws -> [[StoreWrite]] {
        let simulation = try Simulation(seed: seed)
        _ = try simulation.run()
        return simulation.firstClientWrites
    }
}
