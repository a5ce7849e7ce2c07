/// Has the asynchronous work of one live object done in the order in which it was asked for, one piece after the other.
@MainActor
final class Turns {
    private var last: Task<Void, Never>?

    /// Does the work when all that was asked for before is done.
    func take<Value: Sendable>(_ work: @escaping @MainActor () async throws -> Value) async throws -> Value {
        let previous = last
        let task = Task {
            await previous?.value
            return try await work()
        }
        last = Task { _ = await task.result }
        return try await task.value
    }
}
