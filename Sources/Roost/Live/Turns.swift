/// Runs the asynchronous work of one live object in the order of the requests, one piece after the other.
@MainActor
final class Turns {
    private var last: Task<Void, Never>?

    /// Runs the work after all earlier work is done.
    func take<Value: Sendable>(_ work: @escaping @MainActor () async throws -> Value) async throws -> Value {
        let previous = last
        let task = Task {
            await withTaskCancellationHandler {
                await previous?.value
            } onCancel: {
                previous?.cancel()
            }
            return try await work()
        }
        last = Task {
            await withTaskCancellationHandler {
                _ = await task.result
            } onCancel: {
                task.cancel()
            }
        }
        return try await task.value
    }

    /// Cancels the work that is under way, and what waits for its turn.
    func cancel() { last?.cancel() }
}
