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
    ///
    /// - Parameters:
    ///   - owner: The live object. It lives as long as somebody reads, so that a loop over the updates of an object that nobody else holds goes on.
    ///   - value: What comes first.
    ///   - count: How many of the newest wait for a slow reader.
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
            // A callback may have ended another observation: each is looked up when its turn comes.
            guard let observer = observers[number], let token = observer.token, !token.isInvalidated else { continue }
            observer.callback(value)
        }
    }
}
