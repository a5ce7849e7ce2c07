import RoostAPI
import RoostCore

extension Engine {
    /// Runs an operation and waits for its answer as JSON: empty if an earlier call with the same key has done it.
    func perform(_ operation: some Handled, key: IdempotencyKey? = nil, for caller: Caller) async throws -> [UInt8] {
        try await perform(
            type(of: operation).name, for: caller, scope: operation.scope(for: caller),
            presenceQuestion: operation.presenceQuestion, isReadOnly: type(of: operation).isReadOnly,
            isSignal: type(of: operation).isSignal, toleratesDelay: type(of: operation).toleratesDelay, userRate: operation.rate,
            sentClientId: operation.sentClientId
        ) { context in
            guard let response = try operation.handle(once: key, in: &context) else { return [] }
            return try JSONWriter.bytes(of: response)
        }
    }

    @discardableResult
    func perform(
        _ operation: String, for caller: Caller, scope: Scope, presenceQuestion: PresenceQuestion = .none,
        isReadOnly: Bool,
        isSignal: Bool = false, toleratesDelay: Bool = false, userRate: UserRate? = nil, sentClientId: ClientID? = nil,
        _ run: @escaping @Sendable (inout Context) throws -> [UInt8]
    ) async throws -> [UInt8] {
        try await withCheckedThrowingContinuation { continuation in
            let job = Job(
                operation: operation, caller: caller, scope: scope, isSignal: isSignal, toleratesDelay: toleratesDelay,
                userRate: userRate, sentClientId: sentClientId, presenceQuestion: presenceQuestion, run: run,
                destination: .waiting { continuation.resume(with: $0) })
            do {
                if isReadOnly { try submit(read: job) } else { try submit(write: job) }
            } catch {
                continuation.resume(throwing: error)
            }
        }
    }
}
