import Dispatch

/// Work that blocks a thread.
enum Blocking {
    /// Does work that blocks its thread until others have finished, on a thread that runs no tasks.
    ///
    /// Tasks share about one thread per core. A task that blocks its thread while it waits for another task may block the last one: then all wait
    /// forever. Closing a file is such work, because its readers return it in a task.
    static func perform<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            // A separate queue: the shared ones may run on the threads of the tasks.
            DispatchQueue(label: "Roost.Blocking").async { continuation.resume(with: Result(catching: work)) }
        }
    }
}
