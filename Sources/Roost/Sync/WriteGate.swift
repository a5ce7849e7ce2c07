import NIOConcurrencyHelpers
import RoostAPI

/// Lets writes of this device's files pass, or keeps them back: the system ends an app in the background that holds locks of files which it shares.
///
/// It is our own. GRDB's notifications for that are the process's, and would suspend the app's own databases too.
final class WriteGate: Sendable {
    private struct State {
        var isClosed = false
        var countUnderWay = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = NIOLockedValueBox(State())

    var isClosed: Bool { state.withLockedValue { $0.isClosed } }

    /// Writes, unless it is closed.
    ///
    /// - Throws: `RoostError` with `unavailable` while it is closed; what `write` throws.
    func pass<Value: Sendable>(_ write: () async throws -> Value) async throws -> Value {
        try state.withLockedValue { state in
            guard !state.isClosed else {
                throw RoostError(.unavailable, "The app is in the background, where it doesn't write files that it shares.")
            }
            state.countUnderWay += 1
        }
        defer { end() }
        return try await write()
    }

    private func end() {
        let waiting = state.withLockedValue { state -> [CheckedContinuation<Void, Never>] in
            state.countUnderWay -= 1
            guard state.countUnderWay == 0 else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Keeps writes back from now on. Once none is under way, lets go of what they need, and returns. If it was opened meanwhile, nothing is let go of.
    ///
    /// Finding that no write is under way and letting go are one step: the gate isn't opened in between, and no write begins.
    ///
    /// - Parameter letGo: Called at most once. It mustn't use the gate.
    func close(_ letGo: () -> Void = {}) async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLockedValue { state in
                state.isClosed = true
                if state.countUnderWay > 0 { state.waiting.append(continuation) }
                return state.countUnderWay == 0
            }
            if isIdle { continuation.resume() }
        }
        state.withLockedValue { state in
            // If it was opened and closed again since, a write may be under way that began in between. Whoever closed it last waits for that one.
            if state.isClosed, state.countUnderWay == 0 { letGo() }
        }
    }

    /// Lets writes pass again.
    func open() { state.withLockedValue { $0.isClosed = false } }

    /// Takes back what writes need, and lets them pass again, in one step.
    ///
    /// - Parameter takeBack: It mustn't use the gate.
    /// - Throws: What `takeBack` throws. The gate stays closed then.
    func open(after takeBack: () throws -> Void) throws {
        try state.withLockedValue { state in
            try takeBack()
            state.isClosed = false
        }
    }
}
