import Dispatch
import Synchronization

/// Runs blocking work with a time limit.
enum Deadline {
    /// Runs the body on another thread.
    ///
    /// - Returns: Its result; nil if it takes longer. The body then continues, and its result is dropped.
    static func run<Value: Sendable>(
        atMost time: Duration, _ body: @escaping @Sendable () throws -> Value
    ) async -> Result<Value, any Error>? {
        await withCheckedContinuation { continuation in
            let waiting = Waiting(continuation)
            DispatchQueue.global().async { waiting.end(Result(catching: body)) }
            let nanoseconds = Int(clamping: Int64((time / .nanoseconds(1)).rounded()))
            DispatchQueue.global().asyncAfter(deadline: .now() + .nanoseconds(nanoseconds)) { waiting.end(nil) }
        }
    }

    /// The waiting caller, resumed by the first of two calls.
    private final class Waiting<Value: Sendable>: Sendable {
        private let continuation: Mutex<CheckedContinuation<Result<Value, any Error>?, Never>?>

        init(_ continuation: CheckedContinuation<Result<Value, any Error>?, Never>) { self.continuation = Mutex(continuation) }

        func end(_ result: Result<Value, any Error>?) {
            let first = continuation.withLock { continuation in
                defer { continuation = nil }
                return continuation
            }
            first?.resume(returning: result)
        }
    }
}
