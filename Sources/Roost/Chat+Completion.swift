extension Chat {
    /// Runs async work of the chat for code that is called back.
    ///
    ///     chat.perform { try await $0.channel("general").send("hi") } completion: { result in
    ///         if case .failure(let error) = result { show(error) }
    ///     }
    ///
    /// The work runs on the main actor, where live objects are: all of the SDK can be used in it. Works begin in the order in which they are given, and don't
    /// wait for one another. The chat stays until the work has ended.
    ///
    /// - Parameters:
    ///   - work: What to do with the chat.
    ///   - completion: Called once, on the main actor, with what the work returned or threw. If `perform` is called on the main actor, it has returned by then.
    ///     Work that is cancelled before it begins isn't done, and fails with `CancellationError`; work that is cancelled later ends as its calls do.
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
