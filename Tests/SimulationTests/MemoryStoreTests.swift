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
        var windows: [ChannelID: MessageWindow] = [:]
        for writes in transactions {
            model.apply(writes)
            try await store.write(writes)
            for channel in Set(writes.compactMap(\.channel)) {
                windows[channel] = try await read(channel, in: store, after: windows[channel] ?? Self.empty)
            }
        }
        #expect(try await store.savedState() == model.saved)
        let listed = try await store.read { try ChannelQuery(hidden: .all).places(in: $0).map(\.id) }
        #expect(Set(listed) == Set(model.joined))
        for (channel, row) in model.channels {
            let view = try await store.read { try $0.channelView(channel) }
            let all = (model.messages[channel] ?? [:]).values.sorted { $0.seq < $1.seq }
            for window in [windows[channel] ?? Self.empty, Self.empty] {
                #expect(try await read(channel, in: store, after: window).rows.compactMap(\.item.message) == all)
            }
            #expect(view?.channel == row)
            // A deleted channel is shown without members.
            let membership = model.memberships[channel]
            let role = membership?.state == .member ? membership?.role : nil
            if row.deletedAt == nil { #expect(view?.membership == membership) }
            #expect(view?.ownCapabilities == (row.deletedAt == nil ? model.capabilities[channel]?.now(as: role) ?? [] : []))
        }
    }

    private static let empty = MessageWindow(pageSize: 1000)

    private func read(_ channel: ChannelID, in store: Store, after window: MessageWindow) async throws -> MessageWindow {
        try await store.read { database in
            var window = window
            try window.read(.stay, of: channel, in: database)
            return window
        }
    }

    private func writes(seed: UInt64) throws -> [[StoreWrite]] {
        let simulation = try Simulation(seed: seed)
        _ = try simulation.run()
        return simulation.firstClientWrites
    }
}
