import NIOConcurrencyHelpers

/// A database that is used concurrently, and can be replaced by another one meanwhile.
///
/// GRDB's connections mustn't be used once they are closed: SQLite would follow a null pointer. Every use of the database is a lease on it; a
/// replaced database is returned when its last lease has ended, and may then be closed.
final class Leases<Database: Sendable>: Sendable {
    private struct State {
        var current: Database
        /// Counts the replacements.
        var generation = 0
        /// The number of leases on the database of each generation.
        var useCounts: [Int: Int] = [:]
        var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
    }

    private let state: NIOLockedValueBox<State>

    init(_ database: Database) { state = NIOLockedValueBox(State(current: database)) }

    /// Uses the database. A replacement waits for the end of the use.
    func use<Value: Sendable>(_ body: (Database) async throws -> Value) async rethrows -> Value {
        let (database, generation) = state.withLockedValue { state in
            state.useCounts[state.generation, default: 0] += 1
            return (state.current, state.generation)
        }
        defer { end(generation) }
        return try await body(database)
    }

    private func end(_ generation: Int) {
        let waiting = state.withLockedValue { state -> CheckedContinuation<Void, Never>? in
            let count = state.useCounts[generation, default: 1] - 1
            state.useCounts[generation] = count > 0 ? count : nil
            return count > 0 ? nil : state.waiting.removeValue(forKey: generation)
        }
        waiting?.resume()
    }

    /// Replaces the database. Returns the former one once its last lease has ended.
    func replace(with database: Database) async -> Database {
        let (former, generation) = state.withLockedValue { state in
            defer { (state.current, state.generation) = (database, state.generation + 1) }
            return (state.current, state.generation)
        }
        await withCheckedContinuation { continuation in
            let isUsed = state.withLockedValue { state in
                guard state.useCounts[generation] != nil else { return false }
                state.waiting[generation] = continuation
                return true
            }
            if !isUsed { continuation.resume() }
        }
        return former
    }
}
