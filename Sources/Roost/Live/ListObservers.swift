/// A list as its observers get it.
struct ListState<Item: Identifiable & Hashable & Sendable>: Sendable where Item.ID: Sendable {
    /// Counts the lists of one live object.
    var number: Int
    /// The list, with the difference from the one before.
    var update: ListUpdate<Item>
}

/// The callbacks and sequences that follow one live list. The difference of two lists is computed once for all of them.
@MainActor
final class ListObservers<Item: Identifiable & Hashable & Sendable> where Item.ID: Sendable {
    private let observers = Observers<ListState<Item>>()
    private var number = 0

    /// The updates of the list, each with the difference from the one before; the first inserts everything.
    ///
    /// - Parameter owner: The live list. It is kept alive while the sequence is read.
    func updates(of owner: some AnyObject & Sendable, startingWith items: [Item]?) -> ListUpdates<Item> {
        ListUpdates(states: observers.values(of: owner, startingWith: state(items)))
    }

    /// Calls back with the list and its difference, until the token is invalidated or released.
    func add(startingWith items: [Item]?, _ callback: @escaping @MainActor (ListUpdate<Item>) -> Void) -> ObservationToken {
        observers.add(startingWith: state(items)) { callback($0.update) }
    }

    private func state(_ items: [Item]?) -> ListState<Item>? {
        items.map { ListState(number: number, update: ListUpdate(from: [], to: $0)) }
    }

    /// - Parameter difference: The difference if it is known; otherwise it is computed.
    func notify(_ items: [Item], after before: [Item], _ difference: ListUpdate<Item>? = nil) {
        number += 1
        guard !observers.isEmpty else { return }
        observers.notify(ListState(number: number, update: difference ?? ListUpdate(from: before, to: items)))
    }
}
