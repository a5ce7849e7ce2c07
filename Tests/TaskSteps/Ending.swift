/// Waits for a task that is expected to end.
///
/// - Returns: Its result; nil if it hasn't ended by the deadline.
package func result<Value: Sendable>(
    of task: Task<Value, any Error>, within deadline: Duration = .seconds(45)
) async -> Result<Value, any Error>? {
    let (results, continuation) = AsyncStream.makeStream(of: Result<Value, any Error>.self)
    Task {
        continuation.yield(await task.result)
        continuation.finish()
    }
    let alarm = Task {
        try await Task.sleep(for: deadline)
        continuation.finish()
    }
    defer { alarm.cancel() }
    for await result in results { return result }
    return nil
}
