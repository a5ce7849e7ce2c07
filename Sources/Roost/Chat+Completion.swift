extension Chat {
    /// Runs async work with the chat and calls back with its result, for code that doesn't use `async`.
    ///
    ///     chat.perform { try await $0.channel("general").send("hi") } completion: { result in
    ///         if case .failure(let error) = result { show(error) }
    ///     }
    ///
    /// The work runs on the main actor, where live objects live, so it can use all of the SDK. Work starts in the order of the calls and runs
    /// concurrently. The chat is kept alive until the work has ended.
    ///
    /// - Parameters:
    ///   - work: The work to do with the chat.
    ///   - completion: Called once, on the main actor, with the work's result or error. If `perform` is called on the main actor, it returns before
    ///     the completion runs. Work that is cancelled before it starts doesn't run, and fails with `CancellationError`; work that is cancelled later
    ///     ends as its calls do.
    /// - Returns: The task, for cancelling the work. It ends after the completion. It may be ignored.
    @discardableResult
    public func perform<Value>(
        _ work: @escaping @MainActor (Chat) async throws -> Value,
        completion: @escaping @MainActor (Result<Value, any Error>) -> Void
    ) -> Task<Void, Never> {
        Task { @MainActor in
            do {
                try Task.checkCancellation()
                let value = try await work(self)
                completion(.success(value))
            } catch {
                completion(.failure(error))
            }
        }
    }
}
