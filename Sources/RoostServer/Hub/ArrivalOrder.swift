/// Elements with a value each, in the order in which they were added. Adding, finding and removing take the same time however many there are;
/// a page takes time for what it skips. Removed elements leave gaps until half of the slots are gaps.
struct ArrivalOrder<Element: Hashable, Value> {
    private var places: [Element: Int] = [:]
    private var slots: [(element: Element, value: Value)?] = []

    init() {}

    var count: Int { places.count }
    var isEmpty: Bool { places.isEmpty }

    /// Setting a new element's value appends it; nil removes it.
    subscript(element: Element) -> Value? {
        get { places[element].flatMap { slots[$0]?.value } }
        set {
            guard let newValue else { return remove(element) }
            if let place = places[element] {
                slots[place]?.value = newValue
            } else {
                places[element] = slots.count
                slots.append((element, newValue))
            }
        }
    }

    /// A part of the elements, in order.
    func elements(offset: Int = 0, limit: Int = .max) -> [Element] {
        guard offset < count, limit > 0 else { return [] }
        var (passed, found) = (0, [Element]())
        found.reserveCapacity(min(limit, count - offset))
        for case (let element, _)? in slots {
            if passed >= offset { found.append(element) }
            passed += 1
            if found.count == limit { break }
        }
        return found
    }

    /// Removes the elements whose value fulfils a condition.
    mutating func removeAll(where isOut: (Value) -> Bool) {
        let out = slots.compactMap { slot in slot.flatMap { isOut($0.value) ? $0.element : nil } }
        for element in out { remove(element) }
    }

    private mutating func remove(_ element: Element) {
        guard let place = places.removeValue(forKey: element) else { return }
        slots[place] = nil
        guard slots.count > 16, places.count * 2 < slots.count else { return }
        slots.removeAll { $0 == nil }
        for (place, slot) in slots.enumerated() { if let slot { places[slot.element] = place } }
    }
}

extension ArrivalOrder: Sendable where Element: Sendable, Value: Sendable {}
