/// Runs the asynchronous work of one live object in the order of the requests, one piece after the other.
@MainActor
final class Turns {
    private let order = CallOrder()
    /// Cancels each unfinished piece of work, by its number.
    private var cancellations: [Int: @Sendable () -> Void] = [:]
    private var lastNumber = 0

    /// Runs the work after all earlier work is done, even if the caller's task is cancelled.
    func take<Value: Sendable>(_ work: @escaping @MainActor () async throws -> Value) async throws -> Value {
        try await begin(work).value
    }

    /// Runs the work after all earlier work is done, unless the caller's task is cancelled. Cancelling it cancels the work if it is running; if it is
    /// still waiting for its turn, it doesn't run. Earlier and later work continues.
    func takeUnlessCancelled<Value: Sendable>(_ work: @escaping @MainActor () async throws -> Value) async throws -> Value {
        let task = begin(work)
        return try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            task.cancel()
        }
    }

    /// Cancels running and waiting work.
    func cancel() { for cancel in cancellations.values { cancel() } }

    private func begin<Value: Sendable>(_ work: @escaping @MainActor () async throws -> Value) -> Task<Value, any Error> {
        lastNumber += 1
        let number = lastNumber
        let turn = order.take()
        let task = Task {
            defer {
                cancellations[number] = nil
                turn.pass()
            }
            if !turn.hasCome { try await turn.comes() }
            try Task.checkCancellation()
            return try await work()
        }
        cancellations[number] = { task.cancel() }
        return task
    }
}
