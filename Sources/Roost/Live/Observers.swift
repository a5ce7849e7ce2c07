/// The callbacks and sequences that follow one live object.
@MainActor
final class Observers<Value: Sendable> {
    private struct Observer {
        weak var token: ObservationToken?
        var callback: @MainActor (Value) -> Void
    }

    private var observers: [Int: Observer] = [:]
    private var lastNumber = 0

    var isEmpty: Bool { observers.isEmpty }

    /// Calls back with the value, and with each later one, until the token is invalidated or released.
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

    /// Values as a sequence. Slow readers get the newest value, not every one in between.
    ///
    /// - Parameters:
    ///   - owner: The live object. It is kept alive while the sequence is read, so a loop over the updates of an object without other references
    ///     continues.
    ///   - value: The first value.
    ///   - count: How many of the newest values are buffered for a slow reader.
    func values(of owner: some AnyObject & Sendable, startingWith value: Value?, keeping count: Int = 1) -> AsyncStream<Value> {
        let (stream, continuation) = AsyncStream.makeStream(of: Value.self, bufferingPolicy: .bufferingNewest(count))
        let token = add(startingWith: value) { value in
            withExtendedLifetime(owner) { _ = continuation.yield(value) }
        }
        continuation.onTermination = { _ in token.invalidate() }
        return stream
    }

    func notify(_ value: Value) {
        for number in observers.keys.sorted() {
            // A callback may have ended another observation, so each one is looked up in its turn.
            guard let observer = observers[number], let token = observer.token, !token.isInvalidated else { continue }
            observer.callback(value)
        }
    }
}
