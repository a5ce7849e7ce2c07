/// The callbacks and sequences that follow one live object.
@MainActor
final class Observers<Value: Sendable> {
    private struct Observer {
        weak var token: ObservationToken?
        var callback: @MainActor (Value) -> Void
    }

    private var observers: [Int: Observer] = [:]
    private var lastNumber = 0

    /// Calls back with the value, and with each that is notified, until the token is invalidated or released.
    func add(startingWith value: Value?, _ callback: @escaping @MainActor (Value) -> Void) -> ObservationToken {
        lastNumber += 1
        let number = lastNumber
        let token = ObservationToken { [weak self] in
            Task { @MainActor in self?.observers[number] = nil }
        }
        observers[number] = Observer(token: token, callback: callback)
        if let value { callback(value) }
        return token
    }

    /// Values as a sequence. Slow readers get the newest and not each one in between.
    func values(startingWith value: Value?) -> AsyncStream<Value> {
        let (stream, continuation) = AsyncStream.makeStream(of: Value.self, bufferingPolicy: .bufferingNewest(1))
        let token = add(startingWith: value) { continuation.yield($0) }
        continuation.onTermination = { _ in token.invalidate() }
        return stream
    }

    func notify(_ value: Value) {
        for number in observers.keys.sorted() {
            // A callback may have ended another observation: each is looked up when its turn comes.
            guard let observer = observers[number], let token = observer.token, !token.isInvalidated else { continue }
            observer.callback(value)
        }
    }
}

extension Observers {
    /// The updates of a list, each with the difference to the one before; the first inserts everything.
    func updates<Item>(startingWith items: [Item]?) -> ListUpdates<Item> where Value == [Item] {
        ListUpdates(snapshots: values(startingWith: items))
    }

    /// Calls back with a list and its difference, until the token is invalidated or released.
    func addDifferences<Item>(
        startingWith items: [Item]?, _ callback: @escaping @MainActor (ListUpdate<Item>) -> Void
    ) -> ObservationToken where Value == [Item] {
        var last: [Item] = []
        return add(startingWith: items) { items in
            let update = ListUpdate(from: last, to: items)
            last = items
            callback(update)
        }
    }
}
