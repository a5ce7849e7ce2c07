import Dispatch

/// Waiting that holds a thread.
enum Blocking {
    /// Does something that holds its thread until others have finished, on a thread that no task runs on.
    ///
    /// Tasks share about one thread a core. One that holds such a thread while it waits for another task may hold the last: then all wait for
    /// ever. Closing a file is of that kind, since who reads it gives it back in a task.
    static func perform<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            // A queue of its own, as the shared ones may run on the threads of the tasks.
            DispatchQueue(label: "Roost.Blocking").async { continuation.resume(with: Result(catching: work)) }
        }
    }
}
