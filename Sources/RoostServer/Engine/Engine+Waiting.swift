import RoostAPI
import RoostCore

extension Engine {
    /// Runs an operation and waits for its answer as JSON: empty if an earlier call with the same key has done it.
    func perform(_ operation: some Handled, for caller: Caller) async throws -> [UInt8] {
        try await answer(to: operation, for: caller).bytes
    }

    /// Runs an operation and waits for its answer as JSON, which counts until it is let go: empty if an earlier call with the same key has done it.
    ///
    /// - Parameters:
    ///   - keyField: The key's place in the request, for errors.
    ///   - callerMemory: The ledger of a limited caller. The operation isn't run but refused while it is used up. Nil if the caller isn't limited.
    ///   - requestSizeBytes: How many bytes the request itself holds there and in the server's ledger, which don't count against it.
    func answer(
        to operation: some Handled, key: IdempotencyKey? = nil, keyField: String = IdempotencyKey.member, for caller: Caller,
        callerMemory: ByteLedger? = nil, requestSizeBytes: Int = 0
    ) async throws -> HeldAnswer {
        var traits = Job.Traits(operation, for: caller)
        // Such a query finds channels to watch, which the rule refuses without a connection.
        traits.channelQuery = nil
        return try await withCheckedThrowingContinuation { continuation in
            let job = Job(
                traits, caller: caller, callerMemory: callerMemory, found: Job.Found(requestSizeBytes: requestSizeBytes),
                run: { context in
                    guard let response = try operation.handle(once: key, field: keyField, in: &context) else { return [] }
                    return try JSONWriter.bytes(of: response)
                },
                destination: .request { continuation.resume(with: $0) })
            submit(job) { continuation.resume(throwing: $0) }
        }
    }

    /// Runs a rule and waits for its answer.
    @discardableResult
    func perform(
        _ traits: Job.Traits, for caller: Caller, run: @escaping @Sendable (inout Context) throws -> [UInt8]
    ) async throws -> [UInt8] {
        try await withCheckedThrowingContinuation { continuation in
            let job = Job(traits, caller: caller, run: run, destination: .waiting { continuation.resume(with: $0) })
            submit(job) { continuation.resume(throwing: $0) }
        }
    }

    private func submit(_ job: Job, refused: (RoostError) -> Void) {
        do throws(RoostError) {
            if job.traits.isReadOnly { try submit(read: job) } else { try submit(write: job) }
        } catch {
            refused(error)
        }
    }
}
