import RoostAPI
import RoostCore

extension Engine {
    /// Runs an operation and waits for its answer as JSON: empty if an earlier call with the same key has done it.
    func perform(_ operation: some Handled, key: IdempotencyKey? = nil, for caller: Caller) async throws -> [UInt8] {
        var traits = Job.Traits(operation, for: caller)
        // Such a query finds channels to watch, which the rule refuses without a connection.
        traits.channelQuery = nil
        return try await perform(traits, for: caller) { context in
            guard let response = try operation.handle(once: key, in: &context) else { return [] }
            return try JSONWriter.bytes(of: response)
        }
    }

    /// Runs a rule and waits for its answer.
    @discardableResult
    func perform(
        _ traits: Job.Traits, for caller: Caller, run: @escaping @Sendable (inout Context) throws -> [UInt8]
    ) async throws -> [UInt8] {
        try await withCheckedThrowingContinuation { continuation in
            let job = Job(traits, caller: caller, run: run, destination: .waiting { continuation.resume(with: $0) })
            do {
                if traits.isReadOnly { try submit(read: job) } else { try submit(write: job) }
            } catch {
                continuation.resume(throwing: error)
            }
        }
    }
}
