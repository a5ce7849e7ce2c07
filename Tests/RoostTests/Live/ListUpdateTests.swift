import Roost
import Testing

@testable import Roost

@Suite("Live: differences of lists")
struct ListUpdateTests {
    private struct Item: Identifiable, Hashable {
        var id: Int
        var text: String
    }

    @Test(
        "AM-30 R08 A difference applied to the list before gives the list after, and names what moved",
        arguments: 0..<8 as Range<UInt64>)
    func random(seed: UInt64) {
        var chance = SeededChance(seed: seed)
        var old: [Item] = []
        for _ in 0..<300 {
            var new = old
            for _ in 0..<Int.random(in: 0...4, using: &chance) {
                switch Int.random(in: 0..<4, using: &chance) {
                case 0:
                    let id = Int.random(in: 0..<40, using: &chance)
                    if !new.contains(where: { $0.id == id }) {
                        new.insert(Item(id: id, text: "new"), at: Int.random(in: 0...new.count, using: &chance))
                    }
                case 1 where !new.isEmpty: new.remove(at: Int.random(in: 0..<new.count, using: &chance))
                case 2 where !new.isEmpty:
                    let item = new.remove(at: Int.random(in: 0..<new.count, using: &chance))
                    new.insert(item, at: Int.random(in: 0...new.count, using: &chance))
                case 3 where !new.isEmpty:
                    new[Int.random(in: 0..<new.count, using: &chance)].text = "\(Int.random(in: 0..<9, using: &chance))"
                default: break
                }
            }
            let update = ListUpdate(from: old, to: new)
            #expect(update.applied(to: old) == new, "seed \(seed)")
            #expect(update.isEmpty == (old == new))
            old = new
        }
    }

    @Test("AM-30 One row that comes to the top is one move, and the others stay")
    func oneMove() {
        let old = (0..<1000).map { Item(id: $0, text: "") }
        var new = old
        new.insert(new.remove(at: 700), at: 0)
        let update = ListUpdate(from: old, to: new)
        #expect(update.moved == [.init(from: 700, to: 0)])
        #expect([update.inserted, update.removed, update.updated] == [[], [], []])
    }
}

extension ListUpdate {
    /// Applies an update like a list view: removes, inserts, reloads.
    func applied(to old: [Item]) -> [Item] {
        var shown = old
        for index in (removed + moved.map(\.from)).sorted(by: >) { shown.remove(at: index) }
        let carried = Dictionary(uniqueKeysWithValues: moved.map { ($0.to, old[$0.from]) })
        for index in (inserted + moved.map(\.to)).sorted() { shown.insert(carried[index] ?? items[index], at: index) }
        for index in updated { shown[index] = items[index] }
        return shown
    }
}

/// Chance that a seed repeats (SplitMix).
struct SeededChance: RandomNumberGenerator, Sendable {
    private var state: UInt64
    init(seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 &+ 1 }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
