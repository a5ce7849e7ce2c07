import Roost
import RoostAPI
import Testing

@testable import Roost

@Suite("Live: differences of lists", .timeLimit(.minutes(5)))
struct ListUpdateTests {
    private struct Item: Identifiable, Hashable {
        var id: Int
        var text: String
    }

    @Test(
        "AM-30 R08 a difference applied to the old list gives the new list, and names what moved",
        arguments: 0..<8 as Range<UInt64>)
    func random(seed: UInt64) {
        var chance = SeededChance(seed: seed)
        var old: [Item] = []
        for _ in 0..<2500 {
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

    @Test(
        "AM-30 R08 a difference known from what changed is one between the two lists, and leaves unchanged items in place",
        arguments: 0..<8 as Range<UInt64>)
    func known(seed: UInt64) {
        var chance = SeededChance(seed: seed)
        var old: [Item] = []
        var lastID = 0
        for step in 0..<2500 {
            var new = old
            var touched: Set<Int> = []
            for _ in 0..<Int.random(in: 0...5, using: &chance) {
                if new.isEmpty || Int.random(in: 0..<4, using: &chance) == 0 {
                    lastID += 1
                    touched.insert(lastID)
                    new.insert(Item(id: lastID, text: "new"), at: Int.random(in: 0...new.count, using: &chance))
                    continue
                }
                var item = new.remove(at: Int.random(in: 0..<new.count, using: &chance))
                touched.insert(item.id)
                if new.count > 30 || Int.random(in: 0..<5, using: &chance) == 0 { continue }
                item.text = "\(Int.random(in: 0..<3, using: &chance))"
                new.insert(item, at: Int.random(in: 0...new.count, using: &chance))
            }
            let changed = touched.map { id in
                (old: old.firstIndex { $0.id == id }, new: new.firstIndex { $0.id == id })
            }
            let update = ListUpdate(from: old, to: new, changed: changed)
            #expect(update.applied(to: old) == new, "seed \(seed), step \(step)")
            #expect(update.isEmpty == (old == new), "seed \(seed), step \(step)")
            let moved = Set(update.moved.map { new[$0.to].id })
            #expect(moved.isSubset(of: touched), "seed \(seed), step \(step)")
            // For a single changed item, there is no better difference.
            if touched.count == 1 { #expect(update.moved == ListUpdate(from: old, to: new).moved || update.moved.count == 1) }
            old = new
        }
    }

    @Test("AM-30 a slow reader of updates skips states and no change; a quick one gets the known difference")
    @MainActor func slowReader() async {
        let observers = ListObservers<Item>()
        var slow = observers.updates(of: observers, startingWith: []).makeAsyncIterator()
        var quick = observers.updates(of: observers, startingWith: []).makeAsyncIterator()
        _ = (await slow.next(), await quick.next())
        let lists = (0...3).map { count in (0..<count).map { Item(id: $0, text: "") } }
        for (before, after) in zip(lists, lists.dropFirst()) {
            observers.notify(after, after: before)
            #expect(await quick.next()?.inserted == [before.count])
        }
        #expect(await slow.next()?.inserted == [0, 1, 2])
    }

    @Test("AM-30 a row that moves to the top is one move, and the others stay")
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
    /// Applies an update as a list view does: removes, inserts, reloads.
    func applied(to old: [Item]) -> [Item] {
        var shown = old
        for index in (removed + moved.map(\.from)).sorted(by: >) { shown.remove(at: index) }
        let carried = Dictionary(uniqueKeysWithValues: moved.map { ($0.to, old[$0.from]) })
        for index in (inserted + moved.map(\.to)).sorted() { shown.insert(carried[index] ?? items[index], at: index) }
        for index in updated { shown[index] = items[index] }
        return shown
    }
}

/// Random numbers that a seed repeats (SplitMix).
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
