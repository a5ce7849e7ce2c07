/// Waits for something without notifications: asks again until the answer is the right one.
public enum Polling {
    /// - Throws: ``Missed`` once the deadline has passed, and what `ask` throws.
    @discardableResult
    public static func value<Value>(
        within deadline: Duration = .seconds(45), _ ask: () async throws -> Value, until isRight: (Value) throws -> Bool
    ) async throws -> Value {
        let end = ContinuousClock.now + deadline
        while true {
            let value = try await ask()
            if try isRight(value) { return value }
            guard ContinuousClock.now < end else { throw Missed("the right answer; the last was \(value)") }
            try await Task.sleep(for: .milliseconds(10))
        }
    }
}
