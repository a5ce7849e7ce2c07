import RoostAPI
import Testing

@testable import Roost

@Suite("Channels: the order of a list")
struct ChannelOrderTests {
    @Test("AM-30 ST-09 an order in which channels move equals sorting, and reports their former places", arguments: 0..<10)
    func moves(seed: UInt64) {
        var chance = SeededChance(seed: seed)
        let isReversed = seed % 2 == 1
        var order = ChannelOrder(isReversed: isReversed)
        var places: [ChannelID: ChannelPlace] = [:]
        for step in 0..<500 {
            let id = ChannelID("c\(Int.random(in: 0..<30, using: &chance))")
            let before = order.places.map(\.id)
            // Few distinct times, so some moves end where they began.
            let time = Int64.random(in: 0..<20, using: &chance)
            let place = Int.random(in: 0..<8, using: &chance) == 0 ? nil : ChannelPlace(id: id, time: time, unreadCount: 1)
            let (from, to) = order.set(place, for: id)
            places[id] = place
            let sorted = places.values.sorted { isReversed ? $1.isBefore($0) : $0.isBefore($1) }.map(\.id)
            #expect(order.places.map(\.id) == sorted && order.unreadCount == sorted.count, "step \(step)")
            #expect(from == before.firstIndex(of: id) && to == sorted.firstIndex(of: id), "step \(step)")
        }
    }
}
