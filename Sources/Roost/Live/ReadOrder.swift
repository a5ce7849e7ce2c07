/// Keeps a live object from showing an older state after a newer one, where two reads of the store overlap.
struct ReadOrder {
    private var lastBegun = 0
    private var lastShown = 0

    mutating func begin() -> Int {
        lastBegun += 1
        return lastBegun
    }

    /// Returns whether a read's result may be shown: not if one that began later is already shown.
    mutating func end(_ number: Int) -> Bool {
        guard number > lastShown else { return false }
        lastShown = number
        return true
    }
}
